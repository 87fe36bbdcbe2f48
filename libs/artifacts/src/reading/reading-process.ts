/**
 * A process of its own that reads a stage's files with the rights of the stage's user, as its parent has it: asked by lines of
 * JSON, answering by frames (`frames.ts`). It is killed by the signal, and by `close`.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { ArtifactsFailed } from '../errors.ts';
import { letGo } from '../let-go.ts';
import { HEAD_BYTES, readHead, type FrameHead, type FrameKind } from './frames.ts';

/** Kept of what it says when it dies. */
const LAST_WORDS_BYTES = 2_000;
const NOTHING = Buffer.alloc(0);

export class ReadingProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #bytes: AsyncIterator<Buffer>;
  readonly #signal: AbortSignal | undefined;
  #pending: Buffer = NOTHING;
  /** All that the pending bytes are the end of. */
  #memory: Buffer = NOTHING;
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
    return await this.#rest(await this.#head());
  }

  async #head(): Promise<FrameHead> {
    const head = readHead(await this.#take(HEAD_BYTES));
    if (head === undefined) throw this.died();
    return head;
  }

  /** To the end of an answer, of whose present frame so much has not been read. */
  async #skip(left: number): Promise<void> {
    await this.#take(left);
    while ((await this.next()) !== undefined);
  }

  #forget(): void {
    this.#pending = NOTHING;
    letGo(this.#memory);
    this.#memory = NOTHING;
  }

  async #rest({ kind, length }: FrameHead): Promise<{ readonly kind: FrameKind; readonly bytes: Buffer } | undefined> {
    const bytes = await this.#take(length);
    if (kind === 'end') return undefined;
    if (kind === 'fail') {
      const { reason, message } = JSON.parse(bytes.toString('utf8')) as {
        readonly reason: 'artifacts' | 'quota';
        readonly message: string;
      };
      throw new ArtifactsFailed(reason, message);
    }
    return { kind, bytes };
  }

  /** The answer to what was asked last, all of it of this kind. */
  async *answer(wanted: FrameKind): AsyncGenerator<Uint8Array, void> {
    for await (const piece of this.lend(wanted)) yield Uint8Array.from(piece);
  }

  /**
   * The answer to what was asked last, all of it of this kind, in pieces as they come. Each is taken back when the next one is
   * asked for. What is not read of it is gone through, so that the next answer is the next one's.
   */
  async *lend(wanted: FrameKind): AsyncGenerator<Uint8Array, void> {
    let left = 0;
    let isOver = false;
    try {
      for (;;) {
        const head = await this.#head();
        if (head.kind !== wanted) {
          isOver = true;
          if ((await this.#rest(head)) === undefined) return;
          throw this.died();
        }
        for (left = head.length; left > 0;) {
          const all = this.#pending.length === 0 ? await this.#read() : this.#pending;
          const piece = all.subarray(0, left);
          left -= piece.length;
          this.#pending = all.subarray(piece.length);
          yield piece;
          if (this.#pending.length === 0) this.#forget();
        }
      }
    } finally {
      if (!isOver) await this.#skip(left).catch(() => {});
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
      const value = await this.#read();
      parts.push(value);
      have += value.length;
    }
    const all = parts.length === 1 ? this.#pending : Buffer.concat(parts);
    if (parts.length > 1) this.#memory = all;
    this.#pending = all.subarray(count);
    return all.subarray(0, count);
  }

  async #read(): Promise<Buffer> {
    const { value, done } = (await this.#bytes.next()) as IteratorResult<Buffer, undefined>;
    if (done === true || value === undefined) throw this.died();
    this.#memory = value;
    return value;
  }
}
