/**
 * Writes to one of our own descriptors, in order, without ever blocking this process: the terminal may be slow or
 * stopped (^S), and ^C and the timers of stages must be heard all the same. Node's own stdout blocks there.
 *
 *  OUTPUT-1 One write is under way at a time, and one begins within GATHER_MS; what comes meanwhile is gathered and goes out together.
 *  OUTPUT-2 Memory is bounded by the callers: `write` answers a promise once more than QUEUED_BYTES_MAX wait, and a caller
 *     that can wait does so before it brings more.
 *  OUTPUT-3 A reader that has gone (EPIPE), or a disk that is full, is announced once through `closed`, and `failure` says which it was;
 *     later writes are dropped, as after `discard`.
 */
import { write as writeToDescriptor } from 'node:fs';

const QUEUED_BYTES_MAX = 1024 * 1024;
/** So much is copied together for one write: a smaller block costs system calls, a larger one memory. */
const BLOCK_BYTES = 64 * 1024;
/**
 * Each write wakes a thread, which costs more than all else that is done for a line. Nobody sees the difference; what comes after a
 * pause goes out at once.
 */
const GATHER_MS = 10;
/** The pause between two tries on a descriptor that somebody else made non-blocking. */
const RETRY_MS_MIN = 2;
const RETRY_MS_MAX = 50;

export class OutputWriter {
  /** Resolves if nothing can be written any more; never otherwise. */
  readonly closed: Promise<void>;
  /** Why nothing can. */
  failure: NodeJS.ErrnoException | undefined;
  readonly #fd: number;
  #filling: Buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #filled = 0;
  #spare: Buffer | null = null;
  readonly #queue: Buffer[] = [];
  #queuedBytes = 0;
  #isWriting = false;
  #isScheduled = false;
  /** Set while what has come waits for more to come. */
  #gathering: NodeJS.Timeout | undefined;
  #wroteAtMs = -Infinity;
  #isClosed = false;
  #roomWaiters: (() => void)[] = [];
  #idleWaiters: (() => void)[] = [];
  #announceClosed: () => void = () => {};

  constructor(fd: number) {
    this.#fd = fd;
    this.closed = new Promise((resolve) => {
      this.#announceClosed = resolve;
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Takes a copy. The promise, if there is one, resolves when there is room again. */
  write(bytes: Buffer): void | Promise<void> {
    if (this.#isClosed) return;
    this.append(bytes);
    return this.room();
  }

  /** As `write`, for callers that ask for `room` after several. */
  append(bytes: Buffer, from = 0, to = bytes.length): void {
    if (this.#isClosed) return;
    let at = from;
    while (at < to) {
      if (this.#filled === this.#filling.length) this.#seal();
      const count = Math.min(to - at, this.#filling.length - this.#filled);
      bytes.copy(this.#filling, this.#filled, at, at + count);
      this.#filled += count;
      at += count;
    }
    this.#schedule();
  }

  room(): void | Promise<void> {
    if (this.#isClosed || this.#queuedBytes + this.#filled <= QUEUED_BYTES_MAX) return;
    return new Promise((resolve) => {
      this.#roomWaiters.push(resolve);
    });
  }

  /** Resolves when nothing waits any more and no write is under way: the process can exit, which waits for writes. */
  flush(): Promise<void> {
    if (!this.#isWriting && this.#queue.length === 0 && this.#filled === 0) return Promise.resolve();
    this.#writeAfterTurn();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  /** Drops what waits and what comes: nobody is to wait for this reader any longer. */
  discard(): void {
    this.#isClosed = true;
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#filled = 0;
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#wake();
  }

  #seal(): void {
    if (this.#filled === 0) return;
    this.#queue.push(this.#filling.subarray(0, this.#filled));
    this.#queuedBytes += this.#filled;
    this.#filling = this.#spare ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#spare = null;
    this.#filled = 0;
  }

  /** A block that is full has no more to wait for. */
  #schedule(): void {
    if (this.#isScheduled || this.#isWriting) return;
    const pauseMs = this.#queue.length > 0 ? 0 : this.#wroteAtMs + GATHER_MS - performance.now();
    if (pauseMs <= 0) this.#writeAfterTurn();
    else this.#gathering ??= setTimeout(() => this.#next(), pauseMs);
  }

  /** All that this turn of the event loop brings goes out in one write. */
  #writeAfterTurn(): void {
    if (this.#isScheduled || this.#isWriting) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#next();
    });
  }

  #next(): void {
    if (this.#isWriting || this.#isClosed) return;
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    if (this.#queue.length === 0) this.#seal();
    const block = this.#queue.shift();
    if (block === undefined) {
      this.#wake();
      return;
    }
    this.#isWriting = true;
    this.#wroteAtMs = performance.now();
    this.#writeAll(block, 0, RETRY_MS_MIN);
  }

  #writeAll(block: Buffer, from: number, retryMs: number): void {
    writeToDescriptor(this.#fd, block, from, block.length - from, null, (error, written) => {
      if (error?.code === 'EAGAIN') {
        setTimeout(() => this.#writeAll(block, from, Math.min(retryMs * 2, RETRY_MS_MAX)), retryMs);
      } else if (error !== null) {
        this.failure = error;
        this.#close();
      } else if (from + written < block.length) {
        this.#writeAll(block, from + written, RETRY_MS_MIN);
      } else {
        this.#isWriting = false;
        this.#queuedBytes = Math.max(0, this.#queuedBytes - block.length);
        if (block.buffer.byteLength === BLOCK_BYTES) this.#spare = Buffer.from(block.buffer, 0, BLOCK_BYTES);
        this.#wake();
        if (this.#idleWaiters.length > 0) this.#next();
        else if (this.#queue.length > 0 || this.#filled > 0) this.#schedule();
      }
    });
  }

  #close(): void {
    this.#isWriting = false;
    this.discard();
    this.#announceClosed();
  }

  #wake(): void {
    if (this.#queuedBytes + this.#filled <= QUEUED_BYTES_MAX) {
      const waiters = this.#roomWaiters;
      this.#roomWaiters = [];
      for (const resolve of waiters) resolve();
    }
    if (this.#queue.length === 0 && this.#filled === 0 && !this.#isWriting) {
      const waiters = this.#idleWaiters;
      this.#idleWaiters = [];
      for (const resolve of waiters) resolve();
    }
  }
}
