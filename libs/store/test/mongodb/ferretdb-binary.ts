/**
 * FerretDB's binary, built once and kept outside the checkout under a hash of its Go module. Test files that need it at the
 * same time build it once: one of them holds the lock file, the others wait for the binary.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const MODULE = fileURLToPath(new URL('../../../../test/support/ferretdb/', import.meta.url));
/** The first build took 76 s on two busy cores, downloads included. */
const BUILD_MS_MAX = 5 * 60_000;
const LOOK_MS = 100;

export async function ferretdbBinary(
  go: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly path: string } | { readonly problem: string }> {
  const folder = join(cacheFolder(env), `ferretdb-${moduleHash()}-${process.platform}-${process.arch}`);
  const path = join(folder, 'ferretdb');
  if (existsSync(path)) return { path };
  const lock = `${folder}.lock`;
  const deadline = Date.now() + BUILD_MS_MAX;
  try {
    await mkdir(folder, { recursive: true });
    while (!(await takeLock(lock))) {
      if (Date.now() > deadline)
        return { problem: `another process holds ${lock} for more than ${BUILD_MS_MAX / 60_000} minutes` };
      await pause(LOOK_MS);
    }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
  try {
    if (existsSync(path)) return { path };
    // Under another name first: whoever finds the binary finds all of it.
    const unfinished = `${path}-${randomUUID()}`;
    const problem = await build(go, unfinished, env);
    if (problem !== null) return { problem };
    await rename(unfinished, path);
    return { path };
  } finally {
    await rm(lock, { force: true });
  }
}

async function build(go: string, output: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  const child = spawn(go, ['build', '-trimpath', '-buildvcs=false', '-o', output, '.'], {
    cwd: MODULE,
    env: { ...env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: BUILD_MS_MAX,
    killSignal: 'SIGKILL',
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-4_000);
  });
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  if (code === 0) return null;
  await rm(output, { force: true });
  return `go build ended with ${code ?? signal}: ${said.trim().split('\n').at(-1) ?? ''}`;
}

/** The lock names its holder; one whose holder has ended is void. Should two take over a void one, both build, and either binary will do. */
async function takeLock(lock: string): Promise<boolean> {
  try {
    await writeFile(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== 'EEXIST') throw error;
  }
  const holder = Number(await readFile(lock, 'utf8').catch(() => ''));
  // Empty for the moment between its creation and its writing.
  if (holder > 0 && !lives(holder)) await rm(lock, { force: true });
  return false;
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { readonly code?: unknown }).code === 'EPERM';
  }
}

function moduleHash(): string {
  const hash = createHash('sha256');
  for (const file of ['main.go', 'go.mod', 'go.sum']) hash.update(readFileSync(join(MODULE, file))).update('\0');
  return hash.digest('hex').slice(0, 16);
}

/** As the bootstrap has it: a relative XDG_CACHE_HOME is to be ignored. */
function cacheFolder(env: NodeJS.ProcessEnv): string {
  const named = env['XDG_CACHE_HOME'];
  return named !== undefined && isAbsolute(named)
    ? join(named, 'penstock')
    : join(env['HOME'] ?? homedir(), '.cache', 'penstock');
}
