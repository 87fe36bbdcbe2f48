/**
 * What V8's collector did on this thread, and when: all of it. `PerformanceObserver` tells of the pauses alone, not of the steps of
 * marking that V8 does between two of them wherever something is allocated, which take tens of milliseconds of a large heap.
 */
import { Session } from 'node:inspector';

export interface Collection {
  /** As `performance.now` has them. */
  readonly from: number;
  readonly to: number;
  /** Of this thread's own time: others of the collector work at the same time, and it may wait for them. */
  readonly cpuMs: number;
}

/** As the trace has them: microseconds by the machine's monotonic clock. */
interface TracedSpan {
  readonly name: string;
  readonly ph: string;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly tdur: number;
}

type Span = Pick<TracedSpan, 'ts' | 'dur' | 'tdur'>;

/** Of a collection as a whole. What each of its parts took is told in others, more of them than a trace keeps while the machine is busy. */
const CATEGORY = 'v8';
const NAMES = 'V8.GC';

/** Begins to watch; the answer ends it, and tells what there was, the first first. */
export async function watchCollections(): Promise<() => Promise<Collection[]>> {
  const session = new Session();
  session.connect();
  const spans: Span[] = [];
  session.on('NodeTracing.dataCollected', ({ params: { value } }) => {
    // The first thread of a process has its number.
    for (const { name, ph, tid, ts, dur, tdur } of value as TracedSpan[])
      if (ph === 'X' && tid === process.pid && name.startsWith(NAMES)) spans.push({ ts, dur, tdur });
  });
  await new Promise<void>((resolve, reject) =>
    session.post('NodeTracing.start', { traceConfig: { includedCategories: [CATEGORY] } }, (error) =>
      error === null ? resolve() : reject(error),
    ),
  );
  return async () => {
    const complete = new Promise<void>((resolve) => session.once('NodeTracing.tracingComplete', () => resolve()));
    session.post('NodeTracing.stop');
    await complete;
    session.disconnect();
    return outermost(spans);
  };
}

/** Spans within others are parts of them. */
function outermost(spans: readonly Span[]): Collection[] {
  const originMs = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  const found: Collection[] = [];
  let end = Number.NEGATIVE_INFINITY;
  for (const { ts, dur, tdur } of spans.toSorted((a, b) => a.ts - b.ts || b.dur - a.dur)) {
    if (ts + dur <= end) continue;
    end = ts + dur;
    found.push({ from: ts / 1000 - originMs, to: end / 1000 - originMs, cpuMs: tdur / 1000 });
  }
  return found;
}
