/**
 * Whether a figure grows: the middle one of the last quarter of what was measured against the middle one of the first. Single peaks, as
 * of a collector that has not run for a while, move neither. Pure.
 */

/** How far a figure may be up at the end. */
export interface Allowance {
  /** In its own unit, whatever it began with. */
  readonly floor: number;
  /** Of what it began with. */
  readonly share: number;
  /** For each run that has ended meanwhile: of what is kept of runs for a while. */
  readonly perRun?: number | undefined;
}

export interface Trend {
  readonly first: number;
  readonly last: number;
  readonly growth: number;
  readonly allowed: number;
  readonly isGrowing: boolean;
}

/** `samples` are those after the warm-up, in their order; at least four. */
export function trendOf(samples: readonly number[], { floor, share, perRun = 0 }: Allowance, runs: number): Trend {
  if (samples.length < 4) throw new RangeError(`${samples.length} samples say nothing about growth`);
  const quarter = Math.floor(samples.length / 4);
  const first = median(samples.slice(0, quarter));
  const last = median(samples.slice(-quarter));
  const allowed = Math.max(floor, first * share) + perRun * runs;
  return { first, last, growth: last - first, allowed, isGrowing: last - first > allowed };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
