/** Clocks that are an hour ahead or behind. */

/** The evidence of one load is from less than half of it. */
export const CLOCK_STEP_MS = 3_600_000;

/** What a clock said that may have been an hour off, told by what is known to have been at about that time. */
export function rightTime(at: number, about: number): number {
  return at + Math.round((about - at) / CLOCK_STEP_MS) * CLOCK_STEP_MS;
}
