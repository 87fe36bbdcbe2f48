/**
 * The boot clock: milliseconds since the machine's start, with the time in which it was suspended, whatever is done to the wall
 * clock. Everything that is measured or waited for in memory goes by it (P5).
 */
import { uptime } from 'node:os';

/** Reading the machine's own takes a system call and a file: in between, time goes on by the clock that stands still in a suspension. */
const LOOK_MS = 50;
const FIRST_LOOKS = 5;

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

/**
 * A clock that never goes back; after a suspension it may be behind for LOOK_MS. It is never ahead of the machine's, however long
 * this process stands still between two lines, or what is waited for would end so much too early for as long as it lives.
 */
export function bootClock({ monotonicMs, uptimeMs }: ClockSources = machine): () => number {
  let ahead = Number.NEGATIVE_INFINITY;
  let lookedAt = Number.NEGATIVE_INFINITY;
  const look = (): number => {
    const uptimeAt = uptimeMs();
    // Read after it: the difference is at most what it was when the machine's was read.
    const monotonic = monotonicMs();
    ahead = Math.max(ahead, uptimeAt - monotonic);
    lookedAt = monotonic;
    return monotonic;
  };
  // What a first look misses, a later one would add in the midst of a wait.
  for (let looks = 0; looks < FIRST_LOOKS; looks += 1) look();
  return () => {
    let monotonic = monotonicMs();
    if (monotonic - lookedAt >= LOOK_MS) monotonic = look();
    return monotonic + ahead;
  };
}

/** Of this machine: comparable between its processes, to about 10 ms. */
export const bootMs: () => number = bootClock();
