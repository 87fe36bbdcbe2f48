/**
 * The files that a stage has left: listed, and then read one after the other. It owns the process that reads them
 * (`collector.ts`), which `close` ends.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { ArtifactsFailed } from '../errors.ts';
import { KEPT_FILES_MAX, type KeptFile } from '../manifest.ts';
import { HEAD_BYTES, readHead, type CollectRequest, type FrameKind, type Listing, type ReadRequest } from './frames.ts';

export interface CollectOptions {
  /** An absolute path; it may be a stranger's folder. */
  readonly folder: string;
  readonly patterns: readonly string[];
  /** Whose rights it is read with; absent: those of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Of all files together. */
  readonly bytesMax: number;
  readonly filesMax?: number | undefined;
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined;
}

const COLLECTOR = fileURLToPath(new URL('collector.ts', import.meta.url));
/** Kept of what a collector says when it dies. */
const LAST_WORDS_BYTES = 2_000;

/** @throws ArtifactsFailed; the signal's reason */
export async function collectFiles(options: CollectOptions): Promise<Collection> {
  const collection = new Collection(options);
  try {
    await collection.list(options);
    return collection;
  } catch (error) {
    await collection.close();
    options.signal?.throwIfAborted();
    throw error;
  }
}

export class Collection {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #bytes: AsyncIterator<Buffer>;
  readonly #signal: AbortSignal | undefined;
  #pending: Buffer = Buffer.alloc(0);
  #lastWords = '';
  #listing: Listing = { files: [], leftOut: [], leftOutCount: 0, folders: [] };

  constructor({ signal }: Pick<CollectOptions, 'signal'>) {
    this.#signal = signal;
    this.#child = spawn(process.execPath, [COLLECTOR], { cwd: '/', env: {}, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#exited = once(this.#child, 'close').catch(() => {});
    this.#child.stdin?.on('error', () => {});
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#lastWords = `${this.#lastWords}${bytes.toString('utf8')}`.slice(-LAST_WORDS_BYTES);
    });
    this.#bytes = (this.#child.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    signal?.addEventListener('abort', this.#kill, { once: true });
    if (signal?.aborted === true) this.#kill();
  }

  get listing(): Listing {
    return this.#listing;
  }

  async list({ folder, user, patterns, bytesMax, filesMax = KEPT_FILES_MAX }: CollectOptions): Promise<void> {
    this.#ask({ path: folder, user, patterns, filesMax, bytesMax } satisfies CollectRequest);
    const parts: Buffer[] = [];
    for await (const part of this.#answer('list')) parts.push(Buffer.from(part));
    this.#listing = JSON.parse(Buffer.concat(parts).toString('utf8')) as Listing;
  }

  /** The content of a listed file, to be read to its end before the next. @throws ArtifactsFailed where it went meanwhile */
  async *read(file: KeptFile): AsyncGenerator<Uint8Array, void> {
    const index = this.#listing.files.indexOf(file);
    this.#ask({ index, sizeBytes: file.sizeBytes } satisfies ReadRequest);
    yield* this.#answer('data');
  }

  async close(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#kill);
    this.#child.stdin?.end();
    this.#kill();
    await this.#exited;
  }

  readonly #kill = (): void => {
    this.#child.kill('SIGKILL');
  };

  #ask(request: CollectRequest | ReadRequest): void {
    this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
  }

  async *#answer(wanted: FrameKind): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const head = readHead(await this.#take(HEAD_BYTES));
      if (head === undefined) throw this.#died();
      const bytes = await this.#take(head.length);
      if (head.kind === 'end') return;
      if (head.kind === 'fail') {
        const { reason, message } = JSON.parse(bytes.toString('utf8')) as {
          readonly reason: 'artifacts' | 'quota';
          readonly message: string;
        };
        throw new ArtifactsFailed(reason, message);
      }
      if (head.kind !== wanted) throw this.#died();
      yield bytes;
    }
  }

  async #take(count: number): Promise<Buffer> {
    const parts = [this.#pending];
    for (let have = this.#pending.length; have < count;) {
      const { value, done } = (await this.#bytes.next()) as IteratorResult<Buffer, undefined>;
      if (done === true || value === undefined) throw this.#died();
      parts.push(value);
      have += value.length;
    }
    const all = parts.length === 1 ? this.#pending : Buffer.concat(parts);
    this.#pending = all.subarray(count);
    return all.subarray(0, count);
  }

  #died(): Error {
    this.#signal?.throwIfAborted();
    return new ArtifactsFailed('artifacts', 'the files could not be read', { cause: new Error(this.#lastWords) });
  }
}
