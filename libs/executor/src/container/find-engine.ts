/** Which container engine this machine has, and how it is to be started so that a container runs here. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { EngineClient } from './engine-client.ts';

export type FoundEngine =
  | { readonly kind: 'podman'; readonly command: readonly string[] }
  | { readonly kind: 'docker'; readonly socketPath: string };

export interface EngineSearch {
  readonly engine: FoundEngine | null;
  /** Where there is none: what was tried and what it said. */
  readonly why: string;
  /** One is there and runs no container: it is to be mended, not installed. */
  readonly isInstalled: boolean;
}

const NOT_INSTALLED = 'it is not installed';
const PROBE_MS_MAX = 30_000;
/** What an engine answers when its runtime came as far as the program, which is not there. */
const NOT_FOUND_CODE = 127;
const DOCKER_SOCKET = '/var/run/docker.sock';
const run = promisify(execFile);

export async function findEngine(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<EngineSearch> {
  if (process.platform !== 'linux') return { engine: null, why: 'containers run on Linux only', isInstalled: false };
  const podman = await findPodman(env);
  if (podman.engine !== null) return podman;
  const host = env['DOCKER_HOST'];
  const socketPath =
    host === undefined ? DOCKER_SOCKET : host.startsWith('unix://') ? host.slice('unix://'.length) : '';
  const docker = await findDocker(socketPath);
  return docker.engine === null
    ? {
        engine: null,
        why: `${podman.why}; ${docker.why}`,
        isInstalled: podman.isInstalled || docker.isInstalled,
      }
    : docker;
}

async function findPodman(env: Readonly<Record<string, string | undefined>>): Promise<EngineSearch> {
  // Without systemd nobody else manages control groups.
  const manager = existsSync('/run/systemd/system') ? [] : ['--cgroup-manager=cgroupfs'];
  let why = '';
  for (const runtime of [[], ['--runtime=runc'], ['--runtime=crun']]) {
    const command = ['podman', ...manager, ...runtime];
    const said = await probe(command, env['PATH'] ?? process.env['PATH'] ?? '');
    if (said === null) return { engine: { kind: 'podman', command }, why: '', isInstalled: true };
    why ||= `podman: ${said}`;
    if (said === NOT_INSTALLED) break;
  }
  return { engine: null, why, isInstalled: why !== `podman: ${NOT_INSTALLED}` };
}

/** Null: a container ran, but for its program, which an empty root has not. */
async function probe([file = '', ...flags]: readonly string[], path: string): Promise<string | null> {
  const root = mkdtempSync(join(tmpdir(), 'penstock-probe-'));
  try {
    const limit = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024', '--log-driver', 'none'];
    await run(file, [...flags, 'run', '--rm', '--network', 'none', ...limit, '--rootfs', root, '/nothing'], {
      timeout: PROBE_MS_MAX,
      env: { ...process.env, PATH: path },
    });
    return 'it ran what is not there';
  } catch (error) {
    const { code, stderr = '', message } = error as Error & { code?: number | string; stderr?: string };
    if (code === NOT_FOUND_CODE) return null;
    if (code === 'ENOENT') return NOT_INSTALLED;
    if (code === 'EACCES') return whyNotExecuted(file, path);
    return (stderr.trim().split('\n').at(-1) || message).slice(0, 300);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** The kernel refuses alike what may not be executed, and a search through a folder that may not be entered. */
function whyNotExecuted(file: string, path: string): string {
  const there = path
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, file))
    .find(isFile);
  if (there === undefined) return NOT_INSTALLED;
  try {
    accessSync(there, constants.X_OK);
    return `${there} is there, and what it is to be run by may not be executed`;
  } catch {
    return `${there} is there, and this user may not execute it`;
  }
}

/** False also of what this user may not look at. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

async function findDocker(socketPath: string): Promise<EngineSearch> {
  if (!existsSync(socketPath))
    return { engine: null, why: 'docker: there is no socket of its engine', isInstalled: false };
  const client = new EngineClient(socketPath);
  try {
    const { status } = await client.call({ method: 'GET', path: '/_ping', timeoutMs: 5_000 });
    if (status === 200) return { engine: { kind: 'docker', socketPath }, why: '', isInstalled: true };
    return { engine: null, why: `docker: its engine answers with status ${status}`, isInstalled: true };
  } catch (error) {
    return { engine: null, why: `docker: ${whyNotReached(error, socketPath)}`, isInstalled: true };
  } finally {
    client.close();
  }
}

function whyNotReached(error: unknown, socketPath: string): string {
  try {
    accessSync(socketPath, constants.R_OK | constants.W_OK);
  } catch {
    return `its engine is there, and this user may not open ${socketPath} (its owner may, and its group where the file's mode lets it)`;
  }
  return error instanceof Error ? error.message : String(error);
}
