/**
 * The read end of one of a helper's output pipes. It hands bytes to the sink of the stage that runs, and stops reading
 * while that sink is busy, so that the pipe fills and the stage's processes wait.
 *
 * A real pipe and not a socket, as Node's own stdio would be: `echo x >/dev/stderr` fails on a socket.
 */
import { fchownSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import type { OutputSink } from '../contract/port.ts';

const READ_BYTES = 64 * 1024;
/** Shared by all pipes: it is filled and handed on within one callback. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

export class OutputPipe {
  readonly #stream: 'stdout' | 'stderr';
  readonly #fd: number;
  readonly #socket: Socket;
  #sink: OutputSink | null = null;
  #blocked: Promise<void> | null = null;

  constructor(stream: 'stdout' | 'stderr', fd: number) {
    this.#stream = stream;
    this.#fd = fd;
    const options = {
      fd,
      readable: true,
      writable: false,
      onread: { buffer: readBuffer, callback: (bytes: number) => this.#onBytes(bytes) },
    };
    this.#socket = new Socket(options);
    // A pipe ends when the last writer is gone; the helper's own end is seen through its process.
    this.#socket.on('error', () => {});
    this.#socket.resume();
  }

  /** Whoever may write to it by its name under /proc. */
  giveTo(uid: number, gid: number): void {
    fchownSync(this.#fd, uid, gid);
  }

  attach(sink: OutputSink): void {
    this.#sink = sink;
  }

  /** Hands over what is left. Only when no process can write any more: then an empty pipe is the end. */
  finish(): void | Promise<void> {
    if (this.#blocked !== null) return this.#blocked.then(() => this.finish());
    for (;;) {
      const bytes = this.#readNow();
      if (bytes <= 0) break;
      const pending = this.#sink?.write(this.#stream, readBuffer.subarray(0, bytes));
      if (pending instanceof Promise) return pending.then(() => this.finish());
    }
    this.#sink = null;
  }

  close(): void {
    this.#sink = null;
    this.#socket.destroy();
  }

  #onBytes(bytes: number): boolean {
    const pending = this.#sink?.write(this.#stream, readBuffer.subarray(0, bytes));
    if (!(pending instanceof Promise)) return true;
    this.#blocked = pending.then(
      () => this.#unblock(),
      () => this.#unblock(),
    );
    return false;
  }

  #unblock(): void {
    this.#blocked = null;
    this.#socket.resume();
  }

  /** 0 at the end or where nothing is there. */
  #readNow(): number {
    if (this.#socket.destroyed) return 0;
    // An empty pipe is the usual case and Node's way to say so is an exception: without its stack it costs a tenth.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    try {
      return readSync(this.#fd, readBuffer, 0, READ_BYTES, null);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
      throw error;
    } finally {
      Error.stackTraceLimit = limit;
    }
  }
}
