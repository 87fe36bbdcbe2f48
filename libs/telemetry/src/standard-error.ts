/**
 * Standard error as where a log goes. It may be a file on a full disk, a pipe whose reader has stopped (`| less`), a terminal that takes
 * nothing (^S): what cannot be written is kept as far as there is room, then lost and counted. Nothing is thrown at who logs.
 *
 *  STDERR-1 Lines wait here for a reader that is slow, up to HELD_BYTES_MAX; they go on as soon as it reads, and when the process ends.
 *  STDERR-2 Who logs waits WAIT_MS_MAX where there is no room, and not again before something was read: leases are renewed in the same thread.
 *  STDERR-3 A line is written whole or not at all, but for the last one of a process that ends; in the order of logging. No thread begins
 *     a line while another is in the middle of one: a pipe takes a long one in parts.
 *  STDERR-4 When there is room again, the first line says how many were lost.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { leaveLineTurn, takeLineTurn } from './line-turn.ts';

const STANDARD_ERROR = 2;
const HELD_BYTES_MAX = 1024 * 1024;
const WAIT_MS_MAX = 50;
/** For a line of another thread, which is written in microseconds where there is room; not where others wait here already. */
const TURN_MS_MAX = 2;
/** For a reader that goes on reading while the process ends. */
const END_MS_MAX = 1_000;
const LOOK_MS = 5;
const LOOK_LATER_MS = 100;
/** Nobody wakes who sleeps on it. */
const sleeper = new Int32Array(new SharedArrayBuffer(4));

class StandardError {
  readonly #descriptor = ownDescriptor();
  readonly #held: Buffer[] = [];
  /** The first of them is written in part. */
  #isInLine = false;
  #heldBytes = 0;
  #lost = 0;
  #isStuck = false;
  #isEnding = false;
  readonly #later: NodeJS.Timeout;

  constructor() {
    // A timer that has come due is set by `refresh` again, and this one by the first line that has to wait.
    this.#later = setTimeout(() => this.#drain(), LOOK_LATER_MS).unref();
    process.once('exit', () => this.end());
  }

  write(line: string, lostLine: (lost: number) => string): void {
    const text = Buffer.from(this.#lost === 0 ? line : lostLine(this.#lost) + line);
    // One that is larger than all there is room for has it where nothing else waits.
    const room = Math.max(0, HELD_BYTES_MAX - text.length);
    this.#drain();
    if (this.#heldBytes > room && !this.#isStuck) this.#isStuck = !this.#drain(WAIT_MS_MAX, room);
    if (this.#heldBytes > room) {
      this.#lost += 1;
      return;
    }
    this.#lost = 0;
    this.#held.push(text);
    this.#heldBytes += text.length;
    this.#drain();
  }

  /** What is held is written as long as somebody reads. */
  end(): void {
    this.#isEnding = true;
    this.#drain(WAIT_MS_MAX);
  }

  /** Writes until no more than `leave` bytes are held. False: they were not taken in `waitMs`, or nothing can be written at all. */
  #drain(waitMs = 0, leave = 0): boolean {
    const endsAt = performance.now() + END_MS_MAX;
    let until = performance.now() + waitMs;
    for (let [first] = this.#held; first !== undefined && this.#heldBytes > leave; [first] = this.#held) {
      const written = this.#write(first);
      if (written !== 'later' && written !== 'broken') {
        this.#isStuck = false;
        this.#heldBytes -= written;
        if (written === first.length) this.#held.shift();
        else this.#held[0] = first.subarray(written);
        if (this.#isEnding) until = Math.min(endsAt, performance.now() + waitMs);
      } else if (written === 'broken' || performance.now() >= until) {
        this.#later.refresh();
        return false;
      } else Atomics.wait(sleeper, 0, 0, LOOK_MS);
    }
    return true;
  }

  /** How much of it was written. `later`: there is no room, or another thread is in the middle of a line. */
  #write(line: Buffer): number | 'later' | 'broken' {
    // The other may end with the process before it has written the rest.
    if (!takeLineTurn(this.#held.length === 1 ? TURN_MS_MAX : 0) && !this.#isEnding) return 'later';
    try {
      const written = writeSync(this.#descriptor, line);
      this.#isInLine = written < line.length;
      return written;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? 'later' : 'broken';
    } finally {
      if (!this.#isInLine) leaveLineTurn();
    }
  }
}

let standardError: StandardError | undefined;

/** One for all logs of a thread. `lostLine` says how many of them were lost. */
export function writeStandardError(line: string, lostLine: (lost: number) => string): void {
  standardError ??= new StandardError();
  standardError.write(line, lostLine);
}

/** For who ends the process without its event `exit`. */
export function endStandardError(): void {
  standardError?.end();
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
