/**
 * The boot clock: milliseconds since the machine's start, with the time in which it was suspended, whatever is done to the wall
 * clock. Everything that is measured or waited for in memory goes by it (P5).
 */
import { uptime } from 'node:os';

/** Reading the machine's own takes a system call and a file: in between, time goes on by the clock that stands still in a suspension. */
const LOOK_MS = 50;

/** Where the two clocks are read; a test has its own. */
export interface ClockSources {
  /** Stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Goes on, and may be a little behind, for it is coarse. */
  uptimeMs(): number;
}

const machine: ClockSources = {
  monotonicMs: () => performance.now(),
  uptimeMs: () => uptime() * 1000,
};

/** A clock that never goes back; after a suspension it may be behind for LOOK_MS. */
export function bootClock({ monotonicMs, uptimeMs }: ClockSources = machine): () => number {
  let ahead = Number.NEGATIVE_INFINITY;
  let lookedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const monotonic = monotonicMs();
    if (monotonic - lookedAt >= LOOK_MS) {
      lookedAt = monotonic;
      ahead = Math.max(ahead, uptimeMs() - monotonic);
    }
    return monotonic + ahead;
  };
}

/** Of this machine: comparable between its processes, to about 10 ms. */
export const bootMs: () => number = bootClock();
