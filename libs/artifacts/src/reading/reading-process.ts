/**
 * A process of its own that reads a stage's files with the rights of the stage's user, as its parent has it: asked by lines of
 * JSON, answering by frames (`frames.ts`). It is killed by the signal, and by `close`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { ArtifactsFailed } from '../errors.ts';
import { HEAD_BYTES, readHead, type FrameKind } from './frames.ts';

/** Kept of what it says when it dies. */
const LAST_WORDS_BYTES = 2_000;

export class ReadingProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #bytes: AsyncIterator<Buffer>;
  readonly #signal: AbortSignal | undefined;
  #pending: Buffer = Buffer.alloc(0);
  #lastWords = '';

  /** `program`: a file that Node runs; `options`: of Node. */
  constructor(program: string, signal: AbortSignal | undefined, options: readonly string[] = []) {
    this.#signal = signal;
    this.#child = spawn(process.execPath, [...options, program], {
      cwd: '/',
      env: {},
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#exited = once(this.#child, 'close').catch(() => {});
    this.#child.stdin?.on('error', () => {});
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      this.#lastWords = `${this.#lastWords}${bytes.toString('utf8')}`.slice(-LAST_WORDS_BYTES);
    });
    this.#bytes = (this.#child.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    signal?.addEventListener('abort', this.#kill, { once: true });
    if (signal?.aborted === true) this.#kill();
  }

  ask(request: object): void {
    this.#child.stdin?.write(`${JSON.stringify(request)}\n`);
  }

  /** The next frame that is none of an end. @throws ArtifactsFailed */
  async next(): Promise<{ readonly kind: FrameKind; readonly bytes: Buffer } | undefined> {
    const head = readHead(await this.#take(HEAD_BYTES));
    if (head === undefined) throw this.died();
    const bytes = await this.#take(head.length);
    if (head.kind === 'end') return undefined;
    if (head.kind === 'fail') {
      const { reason, message } = JSON.parse(bytes.toString('utf8')) as {
        readonly reason: 'artifacts' | 'quota';
        readonly message: string;
      };
      throw new ArtifactsFailed(reason, message);
    }
    return { kind: head.kind, bytes };
  }

  /** The answer to what was asked last, all of it of this kind. */
  async *answer(wanted: FrameKind): AsyncGenerator<Uint8Array, void> {
    for (let next = await this.next(); next !== undefined; next = await this.next()) {
      if (next.kind !== wanted) throw this.died();
      yield next.bytes;
    }
  }

  async close(): Promise<void> {
    this.#signal?.removeEventListener('abort', this.#kill);
    this.#child.stdin?.end();
    this.#kill();
    await this.#exited;
  }

  died(): Error {
    this.#signal?.throwIfAborted();
    return new ArtifactsFailed('artifacts', 'the files could not be read', { cause: new Error(this.#lastWords) });
  }

  readonly #kill = (): void => {
    this.#child.kill('SIGKILL');
  };

  async #take(count: number): Promise<Buffer> {
    const parts = [this.#pending];
    for (let have = this.#pending.length; have < count;) {
      const { value, done } = (await this.#bytes.next()) as IteratorResult<Buffer, undefined>;
      if (done === true || value === undefined) throw this.died();
      parts.push(value);
      have += value.length;
    }
    const all = parts.length === 1 ? this.#pending : Buffer.concat(parts);
    this.#pending = all.subarray(count);
    return all.subarray(0, count);
  }
}
