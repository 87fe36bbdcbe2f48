/**
 * How long to wait before something that failed is tried again: the wait doubles with every failure up to a bound, and its upper
 * half is random, so that those who failed together do not come back together.
 */
export interface Backoff {
  /** The longest wait after the first failure. */
  readonly firstMs: number;
  /** No wait is longer. */
  readonly maxMs: number;
  /** A number from 0 to 1, without 1. Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
}

/** For one who waits alone, and for a simulation: every wait is the longest that it may be. */
export const withoutJitter = (): number => 1;

/** Milliseconds to wait after so many failures in a row, from 1 on. */
export function backoffMs(failures: number, { firstMs, maxMs, random = Math.random }: Backoff): number {
  const longestMs = Math.min(maxMs, firstMs * 2 ** (failures - 1));
  return longestMs * (0.5 + random() / 2);
}
