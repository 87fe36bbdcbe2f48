/**
 * The read ends of a helper's two output pipes. They hand bytes to the sink of the stage that runs, and stop reading while
 * that sink is busy, so that the pipes fill and the stage's processes wait.
 *
 * Real pipes and not sockets, as Node's own stdio would be: `echo x >/dev/stderr` fails on a socket.
 *
 * Two pipes carry no common order, so it is put together from what there is (ADR 17):
 *
 * PIPES-1. What one stream wrote and was read before the other wrote stays before it.
 * PIPES-2. Where both have something to read, the one that was written to last comes last, as far as the kernel's clock of
 *     files (some milliseconds) tells them apart; else the order in which they became readable.
 * PIPES-3. A pipe is found empty by reading it. Only one that was empty when the stage before ended, and has not been written to
 *     since by that clock, which had gone on by the time at which this stage began, is not read once more. Nobody can set the clock back.
 */
import { fchownSync, fstatSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import type { OutputSink } from '../contract/port.ts';

const READ_BYTES = 64 * 1024;
/** Shared by all pipes: each is filled and handed on within one callback. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
/** What is read of a pipe while the other's bytes wait in the first. */
const aheadBuffer = Buffer.allocUnsafeSlow(READ_BYTES);
/** Longer than the kernel's clock of files stands still on any machine. */
const FILE_CLOCK_MS = 20;

export class OutputPipes {
  readonly #stdout: OutputPipe;
  readonly #stderr: OutputPipe;

  constructor(stdoutFd: number, stderrFd: number) {
    this.#stdout = new OutputPipe('stdout', stdoutFd, () => this.#stderr);
    this.#stderr = new OutputPipe('stderr', stderrFd, () => this.#stdout);
  }

  /** Whoever may write to them by their names under /proc. */
  giveTo(uid: number, gid: number): void {
    this.#stdout.giveTo(uid, gid);
    this.#stderr.giveTo(uid, gid);
  }

  attach(sink: OutputSink): void {
    this.#stdout.attach(sink);
    this.#stderr.attach(sink);
  }

  /** Hands over what is left. Only when no process can write any more: then empty pipes are the end. */
  finish(): void | Promise<void> {
    const [stdoutAt, stderrAt] = [this.#stdout.writtenAt(), this.#stderr.writtenAt()];
    const written: OutputPipe[] = [];
    if (!this.#stdout.isUntouched(stdoutAt)) written.push(this.#stdout);
    if (!this.#stderr.isUntouched(stderrAt)) written.push(this.#stderr);
    // A program's complaint is its last word, where nothing tells.
    return finishInTurn(stderrAt < stdoutAt ? written.reverse() : written);
  }

  close(): void {
    this.#stdout.close();
    this.#stderr.close();
  }
}

function finishInTurn(pipes: readonly OutputPipe[]): void | Promise<void> {
  for (const [index, pipe] of pipes.entries()) {
    const pending = pipe.finish();
    if (pending !== undefined) return pending.then(() => finishInTurn(pipes.slice(index + 1)));
  }
}

class OutputPipe {
  readonly #stream: 'stdout' | 'stderr';
  readonly #fd: number;
  readonly #other: () => OutputPipe;
  readonly #socket: Socket;
  #sink: OutputSink | null = null;
  #blocked: Promise<void> | null = null;
  /** Of the last write when it was last read. */
  #readUpTo = 0;
  /** Of the last write when it was last found empty, with nobody to write to it any more. */
  #emptyAt = Number.NaN;
  /** PIPES-3: what `writtenAt` says while the stage has written nothing; NaN: that cannot be told. */
  #untouchedAt = Number.NaN;

  constructor(stream: 'stdout' | 'stderr', fd: number, other: () => OutputPipe) {
    this.#stream = stream;
    this.#fd = fd;
    this.#other = other;
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

  giveTo(uid: number, gid: number): void {
    fchownSync(this.#fd, uid, gid);
  }

  attach(sink: OutputSink): void {
    this.#sink = sink;
    this.#untouchedAt = Date.now() - this.#emptyAt > FILE_CLOCK_MS ? this.#emptyAt : Number.NaN;
  }

  isUntouched(writtenAt: number): boolean {
    if (writtenAt !== this.#untouchedAt || this.#blocked !== null) return false;
    this.#sink = null;
    return true;
  }

  finish(): void | Promise<void> {
    if (this.#blocked !== null) return this.#blocked.then(() => this.finish());
    const writtenAt = this.writtenAt();
    for (;;) {
      const bytes = this.#readNow(readBuffer);
      if (bytes <= 0) break;
      const pending = this.#sink?.write(this.#stream, readBuffer.subarray(0, bytes));
      if (!(pending instanceof Promise)) continue;
      // A sink that fails does not keep the stage from ending.
      return pending.catch(() => {}).then(() => this.finish());
    }
    this.#emptyAt = writtenAt;
    this.#sink = null;
  }

  close(): void {
    this.#sink = null;
    this.#socket.destroy();
  }

  /**
   * Milliseconds by the kernel's clock of files; of a closed pipe 0. Of its last change, for the stage can say that it was written to at another
   * time: what it has left unread would be the next one's.
   */
  writtenAt(): number {
    return this.#socket.destroyed ? 0 : fstatSync(this.#fd).ctimeMs;
  }

  #onBytes(bytes: number): boolean {
    this.#readUpTo = this.writtenAt();
    this.#other().#handOverIfWrittenBefore(this.#readUpTo);
    const pending = this.#sink?.write(this.#stream, readBuffer.subarray(0, bytes));
    if (!(pending instanceof Promise)) return true;
    this.#wait(pending);
    return false;
  }

  /** PIPES-2. */
  #handOverIfWrittenBefore(time: number): void {
    if (this.#blocked !== null || this.#sink === null) return;
    const writtenAt = this.writtenAt();
    if (writtenAt <= this.#readUpTo || writtenAt >= time) return;
    this.#readUpTo = writtenAt;
    const bytes = this.#readNow(aheadBuffer);
    if (bytes <= 0) return;
    const pending = this.#sink.write(this.#stream, aheadBuffer.subarray(0, bytes));
    if (!(pending instanceof Promise)) return;
    this.#socket.pause();
    this.#wait(pending);
  }

  #wait(pending: Promise<void>): void {
    this.#blocked = pending.then(
      () => this.#unblock(),
      () => this.#unblock(),
    );
  }

  #unblock(): void {
    this.#blocked = null;
    this.#socket.resume();
  }

  /** 0 at the end or where nothing is there. */
  #readNow(buffer: Buffer): number {
    if (this.#socket.destroyed) return 0;
    // An empty pipe is the usual case and Node's way to say so is an exception: without its stack it costs a tenth.
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    try {
      return readSync(this.#fd, buffer, 0, READ_BYTES, null);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
      throw error;
    } finally {
      Error.stackTraceLimit = limit;
    }
  }
}
