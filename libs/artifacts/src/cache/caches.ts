/**
 * Makes the archive of a cache from a stage's folders, and lays one out in them. Both is done by a process of its own with the
 * rights of the stage's user, which ends with the signal; this module owns it.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { open, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ArtifactsFailed } from '../errors.ts';
import { isOfHome } from './cached-paths.ts';
import type { CacheFolders, CacheUser, Packed, PackRequest, Unpacked, UnpackRequest } from './child.ts';

export interface CacheOptions extends CacheFolders {
  /** As the stage names them. */
  readonly paths: readonly string[];
  /** Whose rights the folders are read and written with; absent: those of this process. */
  readonly user?: CacheUser | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Of the files of a cache, before they are packed and after they are unpacked. */
const CACHE_BYTES_MAX = 20 * 1024 ** 3;
const LAST_WORDS_BYTES = 2_000;
const ANSWER_BYTES_MAX = 64 * 1024;
const PACKER = fileURLToPath(new URL('packer.ts', import.meta.url));
const UNPACKER = fileURLToPath(new URL('unpacker.ts', import.meta.url));

export type PackedFiles = Exclude<Packed, { readonly fault: string }>;

/** `take` gets the archive as it is made, and is waited for. @throws ArtifactsFailed; what `take` throws; the signal's reason */
export async function packCache(
  { workspace, home, paths, user, signal }: CacheOptions,
  take: (bytes: Buffer) => Promise<void> | void,
): Promise<PackedFiles> {
  const child = new CacheChild(PACKER, undefined, signal);
  try {
    child.ask({ workspace, home, paths, user, bytesMax: CACHE_BYTES_MAX } satisfies PackRequest);
    for await (const bytes of child.output) await take(bytes);
    const packed = await child.answer<Packed>();
    if ('fault' in packed) throw new ArtifactsFailed('artifacts', packed.fault);
    return packed;
  } finally {
    await child.close();
  }
}

/**
 * `archive`: a descriptor of it, read from its beginning. What lies on two file systems is gone through twice: no rename leads from one
 * to the other. @throws ArtifactsFailed; the signal's reason
 */
export async function unpackCache(
  options: CacheOptions,
  archive: number,
  replace: boolean,
): Promise<{ readonly files: number; readonly bytes: number }> {
  const { workspace, home, paths } = options;
  if (home === undefined || (await areOnOne(workspace, home))) return await unpackOnce(options, archive, replace);
  const [inHome, others] = [paths.filter(isOfHome), paths.filter((path) => !isOfHome(path))];
  const first = await unpackOnce({ ...options, home: undefined, paths: others }, archive, replace);
  const second = await unpackOnce({ ...options, workspace: home, paths: inHome }, archive, replace);
  return { files: first.files + second.files, bytes: first.bytes };
}

/**
 * Moves what lies in `from/workspace` into a workspace that stages may be at work in, whole subtrees by one rename. `from`: the user's, on
 * the same file system. @throws ArtifactsFailed; the signal's reason
 */
export async function moveInto(
  { workspace, user, signal }: Pick<CacheOptions, 'workspace' | 'user' | 'signal'>,
  from: string,
  replace: boolean,
): Promise<void> {
  await askUnpacker(undefined, signal, { workspace, paths: [], user, bytesMax: 0, staging: '', from, replace });
}

async function areOnOne(...paths: readonly string[]): Promise<boolean> {
  const devices = await Promise.all(paths.map(async (path) => (await stat(path)).dev));
  return new Set(devices).size <= 1;
}

async function unpackOnce(
  options: CacheOptions,
  archive: number,
  replace: boolean,
): Promise<{ readonly files: number; readonly bytes: number }> {
  // A description of its own: what others have read of it does not count.
  const own = await open(`/proc/self/fd/${archive}`, 'r');
  try {
    return await unpackFrom(options, own.fd, replace);
  } finally {
    await own.close();
  }
}

async function unpackFrom(
  { workspace, home, paths, user, signal }: CacheOptions,
  archive: number,
  replace: boolean,
): Promise<{ readonly files: number; readonly bytes: number }> {
  const staging = `.penstock-cache-${randomUUID()}`;
  return await askUnpacker(archive, signal, {
    ...{ workspace, home, paths, user, staging, replace },
    bytesMax: CACHE_BYTES_MAX,
  });
}

async function askUnpacker(
  archive: number | undefined,
  signal: AbortSignal | undefined,
  request: UnpackRequest,
): Promise<{ readonly files: number; readonly bytes: number }> {
  const child = new CacheChild(UNPACKER, archive, signal);
  try {
    child.ask(request);
    const unpacked = await child.answer<Unpacked>();
    if ('fault' in unpacked) throw new ArtifactsFailed('artifacts', unpacked.fault);
    return unpacked;
  } finally {
    await child.close();
  }
}

class CacheChild {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #signal: AbortSignal | undefined;
  #lastWords = '';
  #answer = '';

  constructor(program: string, archive: number | undefined, signal: AbortSignal | undefined) {
    this.#signal = signal;
    this.#child = spawn(process.execPath, [program], {
      cwd: '/',
      env: {},
      stdio: ['pipe', 'pipe', 'pipe', 'pipe', archive ?? 'ignore'],
    });
    this.#exited = once(this.#child, 'close').catch(() => {});
    this.#child.stdin?.on('error', () => {});
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#lastWords = `${this.#lastWords}${bytes.toString('utf8')}`.slice(-LAST_WORDS_BYTES);
    });
    this.#child.stdio[3]?.on('data', (bytes: Buffer) => {
      this.#answer = `${this.#answer}${bytes.toString('utf8')}`.slice(0, ANSWER_BYTES_MAX);
    });
    signal?.addEventListener('abort', this.#kill, { once: true });
    if (signal?.aborted === true) this.#kill();
  }

  get output(): AsyncIterable<Buffer> {
    return this.#child.stdout as AsyncIterable<Buffer>;
  }

  ask(request: PackRequest | UnpackRequest): void {
    this.#child.stdin?.end(`${JSON.stringify(request)}\n`);
  }

  async answer<T>(): Promise<T> {
    this.#child.stdout?.resume();
    await this.#exited;
    this.#signal?.throwIfAborted();
    if (!this.#answer.endsWith('\n'))
      throw new ArtifactsFailed('artifacts', 'the files could not be read or written', {
        cause: new Error(this.#lastWords),
      });
    return JSON.parse(this.#answer) as T;
  }

  async close(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#kill);
    this.#kill();
    await this.#exited;
  }

  readonly #kill = (): void => {
    this.#child.kill('SIGKILL');
  };
}
