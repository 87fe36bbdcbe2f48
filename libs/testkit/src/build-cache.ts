/**
 * What tests build once and keep outside the checkout, under a hash of its sources. Test files that need it at the same time build
 * it once: one of them holds the lock file, the others wait for what it makes.
 */
import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export type Built = { readonly path: string } | { readonly problem: string };

export interface Build {
  /** Of the folder in the cache. */
  readonly name: string;
  readonly sources: readonly string[];
  /** Of the file or folder that is built. */
  readonly output: string;
  readonly env: NodeJS.ProcessEnv;
  /** Makes `output`; resolves with why it could not. */
  make(output: string): Promise<string | null>;
}

/** The first build of FerretDB took 76 s on two busy cores, downloads included. */
const BUILD_MS_MAX = 5 * 60_000;
const LOOK_MS = 100;

export async function builtOnce({ name, sources, output, env, make }: Build): Promise<Built> {
  const folder = join(cacheFolder(env), `${name}-${hashOf(sources)}-${process.platform}-${process.arch}`);
  const path = join(folder, output);
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
    // Under another name first: whoever finds it finds all of it.
    const unfinished = `${path}-${randomUUID()}`;
    const problem = await make(unfinished);
    if (problem !== null) {
      await rm(unfinished, { recursive: true, force: true });
      return { problem };
    }
    await rename(unfinished, path);
    return { path };
  } finally {
    await rm(lock, { force: true });
  }
}

/** Resolves with why it failed: the last line that the tool said. */
export async function runTool(
  tool: string,
  argv: readonly string[],
  options: { readonly cwd?: string; readonly env: NodeJS.ProcessEnv },
): Promise<string | null> {
  const child = spawn(tool, argv, {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: BUILD_MS_MAX,
    killSignal: 'SIGKILL',
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4_000);
    });
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return code === 0 ? null : `ended with ${code ?? signal}: ${said.trim().split('\n').at(-1) ?? ''}`;
}

export function programOnPath(name: string, env: NodeJS.ProcessEnv): string | undefined {
  return (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** The lock names its holder; one whose holder has ended is void. Should two take over a void one, both build, and either result will do. */
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

function hashOf(sources: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of sources) hash.update(readFileSync(file)).update('\0');
  return hash.digest('hex').slice(0, 16);
}

/** As the bootstrap has it: a relative XDG_CACHE_HOME is to be ignored. */
function cacheFolder(env: NodeJS.ProcessEnv): string {
  const named = env['XDG_CACHE_HOME'];
  return named !== undefined && isAbsolute(named)
    ? join(named, 'penstock')
    : join(env['HOME'] ?? homedir(), '.cache', 'penstock');
}
