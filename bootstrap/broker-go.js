/**
 * The broker built from source by `go install`, where Go is on the machine. Go's own environment decides where modules come
 * from and how they are verified (its checksum database pins the version's content); only the target folder is ours.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { SourceFailed } from './errors.js';
import { findOnPath } from './find-on-path.js';

/** 40 s on two warm cores; a slow machine on a slow network still ends within this. */
const BUILD_MS_MAX = 8 * 60_000;

/** @returns the bytes of the binary. */
export async function brokerFromGo({ pins, env, cacheFolder, say }) {
  const go = findOnPath('go', env);
  if (!go) throw new SourceFailed('Go is not on the PATH');
  say(`Building nats-server ${pins.version} with Go (about a minute).`);
  const folder = mkdtempSync(join(cacheFolder, '.go-'));
  try {
    // In a folder of its own, so that no go.mod or go.work of a surrounding project is taken; cgo off as in the official
    // builds, so that no C compiler is needed.
    const buildEnv = { CGO_ENABLED: '0', ...env, GOBIN: folder, GOWORK: 'off' };
    await promisify(execFile)(go, ['install', `${pins.go.module}@v${pins.version}`], {
      cwd: folder,
      env: buildEnv,
      timeout: BUILD_MS_MAX,
      killSignal: 'SIGKILL',
    });
    const binary = ['nats-server', 'nats-server.exe']
      .map((name) => join(folder, name))
      .find((path) => existsSync(path));
    if (!binary) throw new SourceFailed('go install left no nats-server');
    return readFileSync(binary);
  } catch (error) {
    if (error instanceof SourceFailed) throw error;
    const lines = String(error.stderr ?? '')
      .trim()
      .split('\n');
    const reason = error.killed
      ? `it took longer than ${BUILD_MS_MAX / 60_000} minutes`
      : lines.at(-1) || error.message;
    throw new SourceFailed(`go install failed (${reason.trim()})`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
