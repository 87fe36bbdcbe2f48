/**
 * Standard error as where a log goes. It may be a file on a full disk, a pipe whose reader has stopped (`| less`), a terminal that takes
 * nothing (^S): what cannot be written is lost and counted, nothing is thrown at who logs, and the next line is tried.
 *
 *  STDERR-1 Who logs waits WAIT_MS_MAX for a reader, and not again before that one reads: leases are renewed in the same thread.
 *  STDERR-2 A line is written whole or not at all, but for one that a reader has left half read: its rest comes before any other line.
 *  STDERR-3 When lines can be written again, the first one says how many were lost.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';

const STANDARD_ERROR = 2;
const WAIT_MS_MAX = 50;
const LOOK_MS = 5;
const NOTHING = Buffer.alloc(0);
/** Nobody wakes who sleeps on it. */
const sleeper = new Int32Array(new SharedArrayBuffer(4));

class StandardError {
  readonly #descriptor = ownDescriptor();
  #rest: Buffer = NOTHING;
  #lost = 0;
  #isStuck = false;

  write(line: string, lostLine: (lost: number) => string): void {
    const until = this.#isStuck ? 0 : performance.now() + WAIT_MS_MAX;
    const text = this.#lost === 0 ? line : lostLine(this.#lost) + line;
    this.#lost = this.#writeRest(until) && this.#begin(text, until) ? 0 : this.#lost + 1;
  }

  /** False: nothing of it was written. */
  #begin(text: string, until: number): boolean {
    this.#rest = Buffer.from(text);
    const { length } = this.#rest;
    if (this.#writeRest(until) || this.#rest.length < length) return true;
    this.#rest = NOTHING;
    return false;
  }

  /** False: some of it is left. */
  #writeRest(until: number): boolean {
    while (this.#rest.length > 0) {
      try {
        this.#rest = this.#rest.subarray(writeSync(this.#descriptor, this.#rest));
        this.#isStuck = false;
      } catch (error) {
        const isFull = (error as NodeJS.ErrnoException).code === 'EAGAIN';
        this.#isStuck = isFull && performance.now() >= until;
        if (!isFull || this.#isStuck) return false;
        Atomics.wait(sleeper, 0, 0, LOOK_MS);
      }
    }
    return true;
  }
}

let standardError: StandardError | undefined;

/** One for all logs of a thread. `lostLine` says how many of them were lost. */
export function writeStandardError(line: string, lostLine: (lost: number) => string): void {
  standardError ??= new StandardError();
  standardError.write(line, lostLine);
}

/**
 * One that does not wait. It is a description of its own: that of descriptor 2 is shared with whoever started us. A socket has none, nor
 * what another user has opened for us: there a reader that has stopped is waited for.
 */
function ownDescriptor(): number {
  try {
    const stat = fstatSync(STANDARD_ERROR);
    if (!stat.isFIFO() && !stat.isCharacterDevice()) return STANDARD_ERROR;
    return openSync(
      `/proc/self/fd/${STANDARD_ERROR}`,
      constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK | constants.O_NOCTTY,
    );
  } catch {
    return STANDARD_ERROR;
  }
}
