/** Which container engine this machine has, and how it is to be started so that a container runs here. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EngineClient } from './engine-client.ts';

export type FoundEngine =
  | { readonly kind: 'podman'; readonly command: readonly string[] }
  | { readonly kind: 'docker'; readonly socketPath: string };

export interface EngineSearch {
  readonly engine: FoundEngine | null;
  /** Where there is none: what was tried and what it said. */
  readonly why: string;
}

const PROBE_MS_MAX = 30_000;
/** What an engine answers when its runtime came as far as the program, which is not there. */
const NOT_FOUND_CODE = 127;
const DOCKER_SOCKET = '/var/run/docker.sock';
const run = promisify(execFile);

export async function findEngine(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<EngineSearch> {
  if (process.platform !== 'linux') return { engine: null, why: 'containers run on Linux only' };
  const podman = await findPodman();
  if (podman.engine !== null) return podman;
  const host = env['DOCKER_HOST'];
  const socketPath =
    host === undefined ? DOCKER_SOCKET : host.startsWith('unix://') ? host.slice('unix://'.length) : '';
  const docker = await findDocker(socketPath);
  return docker.engine === null ? { engine: null, why: `${podman.why}; ${docker.why}` } : docker;
}

async function findPodman(): Promise<EngineSearch> {
  // Without systemd nobody else manages control groups.
  const manager = existsSync('/run/systemd/system') ? [] : ['--cgroup-manager=cgroupfs'];
  let why = '';
  for (const runtime of [[], ['--runtime=runc'], ['--runtime=crun']]) {
    const command = ['podman', ...manager, ...runtime];
    const said = await probe(command);
    if (said === null) return { engine: { kind: 'podman', command }, why: '' };
    why ||= `podman: ${said}`;
    if (said === 'it is not installed') break;
  }
  return { engine: null, why };
}

/** Null: a container ran, but for its program, which an empty root has not. */
async function probe([file = '', ...flags]: readonly string[]): Promise<string | null> {
  const root = mkdtempSync(join(tmpdir(), 'penstock-probe-'));
  try {
    const limit = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024', '--log-driver', 'none'];
    await run(file, [...flags, 'run', '--rm', '--network', 'none', ...limit, '--rootfs', root, '/nothing'], {
      timeout: PROBE_MS_MAX,
    });
    return 'it ran what is not there';
  } catch (error) {
    const { code, stderr = '', message } = error as Error & { code?: number | string; stderr?: string };
    if (code === NOT_FOUND_CODE) return null;
    if (code === 'ENOENT') return 'it is not installed';
    return (stderr.trim().split('\n').at(-1) || message).slice(0, 300);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function findDocker(socketPath: string): Promise<EngineSearch> {
  if (!existsSync(socketPath)) return { engine: null, why: 'docker: there is no socket of its engine' };
  const client = new EngineClient(socketPath);
  try {
    const { status } = await client.call({ method: 'GET', path: '/_ping', timeoutMs: 5_000 });
    if (status === 200) return { engine: { kind: 'docker', socketPath }, why: '' };
    return { engine: null, why: `docker: its engine answers with status ${status}` };
  } catch (error) {
    return { engine: null, why: `docker: ${error instanceof Error ? error.message : String(error)}` };
  } finally {
    client.close();
  }
}
