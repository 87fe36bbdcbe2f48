/**
 * The boot clock: milliseconds since the machine's start, with the time in which it was suspended, whatever is done to the wall
 * clock. Everything that is measured or waited for in memory goes by it (P5).
 */
import { openSync, readSync } from 'node:fs';
import { uptime } from 'node:os';

/** Reading the machine's own takes a file: in between, time goes on by the clock that stands still in a suspension. */
const LOOK_MS = 50;
const FIRST_LOOKS = 5;

/** Of the first of the file's two numbers. */
const UPTIME_BYTES = 32;
const uptimeText = Buffer.alloc(UPTIME_BYTES);
/** Null where there is none. */
let uptimeFd: number | null | undefined;

/** The machine's own, now. Node opens, reads and closes the file for each look, and a stage that starts is worth several. */
export function uptimeMs(): number {
  return (readUptime() ?? uptime()) * 1000;
}

function readUptime(): number | undefined {
  if (uptimeFd === undefined) {
    try {
      uptimeFd = openSync('/proc/uptime', 'r');
    } catch {
      uptimeFd = null;
    }
  }
  if (uptimeFd === null) return undefined;
  const bytes = readSync(uptimeFd, uptimeText, 0, UPTIME_BYTES, 0);
  const seconds = Number.parseFloat(uptimeText.toString('latin1', 0, bytes));
  return Number.isNaN(seconds) ? undefined : seconds;
}

/** Where the two clocks are read; a test has its own. */
export interface ClockSources {
  /** Stands still while the machine is suspended. */
  monotonicMs(): number;
  /** Goes on, and may be a little behind, for it is coarse. */
  uptimeMs(): number;
}

const machine: ClockSources = {
  monotonicMs: () => performance.now(),
  uptimeMs,
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
