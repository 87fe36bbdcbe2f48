/** How long runs take, in numbers and over time. Pure. */
import type { Operations } from '../api/operations.ts';

type RunRow = Operations['Runs']['data']['runs'][number];

/** One run of the newest, with what is drawn of it. */
interface TimedRun {
  readonly run: RunRow;
  readonly ms: number;
}

export interface PipelineSummary {
  readonly name: string;
  /** The newest first. */
  readonly runs: readonly RunRow[];
  /** Of those that succeeded or failed, how many succeeded, 0 to 1; null where none did either. */
  readonly passed: number | null;
  readonly p50Ms: number | null;
}

/** By pipeline, that with the newest run first. `rows` are the newest first. */
export function summariesOf(rows: readonly RunRow[]): PipelineSummary[] {
  return [...Map.groupBy(rows, ({ pipelineName }) => pipelineName)].map(([name, runs]) => {
    const decided = decidedOf(runs);
    const passed = decided.filter(({ run }) => run.status === 'SUCCESS').length;
    return {
      name,
      runs,
      passed: decided.length === 0 ? null : passed / decided.length,
      p50Ms: percentile(
        decided.map(({ ms }) => ms),
        0.5,
      ),
    };
  });
}

/** Those that succeeded or failed: what was cancelled says nothing of how long it takes. */
function decidedOf(runs: readonly RunRow[]): TimedRun[] {
  return runs.flatMap((run) =>
    run.finishedAt !== null && (run.status === 'SUCCESS' || run.status === 'FAILED')
      ? [{ run, ms: Math.max(0, Date.parse(run.finishedAt) - Date.parse(run.startedAt)) }]
      : [],
  );
}

/** The least value that so large a part of all is at most; null of nothing. */
export function percentile(values: readonly number[], part: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? null;
}

export interface TrendPoint {
  readonly at: string;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

/** For each run, oldest first, what the `window` runs up to it took. `runs` are the newest first. */
export function trendOf(runs: readonly RunRow[], window: number): TrendPoint[] {
  const timed = decidedOf(runs).toReversed();
  return timed.map(({ run }, index) => {
    const taken = timed.slice(Math.max(0, index + 1 - window), index + 1).map(({ ms }) => ms);
    return { at: run.startedAt, p50Ms: percentile(taken, 0.5) ?? 0, p95Ms: percentile(taken, 0.95) ?? 0 };
  });
}
