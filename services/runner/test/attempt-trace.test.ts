/** What a runner adds to the trace of a run, and what the stage goes on with. */
import type { Job } from '@penstock/bus';
import { spanIdOf, traceIdOf, traceparentFor, type SpanRecord, type Tracer } from '@penstock/telemetry/traces';
import { describe, expect, it } from 'vitest';
import { AttemptTrace } from '../src/attempt/attempt-trace.ts';

const RUN = 'run-1';
const PARENT = spanIdOf(RUN, 'a', 2);
const jobOf = (traceparent: string | undefined): Job =>
  ({ runId: RUN, stage: 'a', attempt: 2, ...(traceparent === undefined ? {} : { traceparent }) }) as Job;
const kept = traceparentFor(traceIdOf(RUN), PARENT, true);

function sending(): { readonly tracer: Tracer; readonly spans: SpanRecord[] } {
  const spans: SpanRecord[] = [];
  const tracer = {
    keeps: () => false,
    send: (span: SpanRecord) => void spans.push(span),
    close: () => Promise.resolve(),
  };
  return { tracer, spans };
}

/** The wall clock is set back by an hour between two moments. */
function clock(): { wallNow(): number; bootNow(): number; pass(ms: number): void } {
  let [wall, boot] = [1_800_000_000_000, 0];
  return {
    wallNow: () => wall,
    bootNow: () => boot,
    pass: (ms) => {
      boot += ms;
      wall += ms - 3_600_000;
    },
  };
}

describe('the trace of an attempt', () => {
  it('is two spans below that of its scheduler, the stage going on below the second', () => {
    const { tracer, spans } = sending();
    const time = clock();
    const trace = new AttemptTrace(jobOf(kept), tracer, time);
    expect(trace.environment).toEqual({
      TRACEPARENT: traceparentFor(traceIdOf(RUN), spanIdOf(RUN, 'a', 2, 'execute'), true),
    });
    time.pass(500);
    trace.begun(false);
    time.pass(2_000);
    trace.ended(3);
    expect(spans.map(({ name, from, to }) => [name, to - from])).toEqual([
      ['start', 500],
      ['execute', 2_000],
    ]);
    for (const span of spans) expect(span).toMatchObject({ traceId: traceIdOf(RUN), parentSpanId: PARENT });
    expect(spans[1]).toMatchObject({
      spanId: spanIdOf(RUN, 'a', 2, 'execute'),
      attributes: { 'process.exit.code': 3 },
    });
  });

  it('of a stage that is taken up again has no second start, and without a process there is none', () => {
    const { tracer, spans } = sending();
    const again = new AttemptTrace(jobOf(kept), tracer, clock());
    again.begun(true);
    again.ended(undefined);
    new AttemptTrace(jobOf(kept), tracer, clock()).ended(0);
    expect(spans.map(({ name }) => name)).toEqual(['execute']);
  });

  it('is that of its scheduler alone where this runner sends none, or the run is left out', () => {
    expect(new AttemptTrace(jobOf(kept), undefined, clock()).environment).toEqual({ TRACEPARENT: kept });
    const { tracer, spans } = sending();
    const leftOut = traceparentFor(traceIdOf(RUN), PARENT, false);
    const trace = new AttemptTrace(jobOf(leftOut), tracer, clock());
    trace.begun(false);
    trace.ended(0);
    expect(trace.environment).toEqual({ TRACEPARENT: leftOut });
    expect(spans).toEqual([]);
  });

  it('is none where its scheduler sends none, whatever the job says instead', () => {
    const { tracer } = sending();
    expect(new AttemptTrace(jobOf(undefined), tracer, clock()).environment).toEqual({});
    expect(new AttemptTrace(jobOf('$(touch x)'), tracer, clock()).environment).toEqual({});
  });
});
