/** The spans of runs: for what is committed, once, with ids that whoever takes a run over makes again. */
import type { RunEvent } from '@penstock/run';
import { RunTracer } from '@penstock/scheduler/testing';
import { spanIdOf, traceIdOf, type SpanRecord } from '@penstock/telemetry/traces';
import { describe, expect, it } from 'vitest';
import { createdOf } from './restored-runs.ts';
import { Harness, NOW, stage, text } from './support.ts';

function traced(keeps = true): { readonly world: Harness; readonly spans: SpanRecord[]; readonly tracer: RunTracer } {
  const spans: SpanRecord[] = [];
  const tracer = new RunTracer({
    keeps: () => keeps,
    send: (span) => void spans.push(span),
    close: () => Promise.resolve(),
  });
  return { world: new Harness({ meter: tracer }), spans, tracer };
}

const PUSH = {
  kind: 'webhook',
  provider: 'git_host_a',
  repository: 'acme/demo',
  ref: 'refs/heads/main',
  commit: 'c0ffee',
  requestId: 'r-1',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
} as const;

describe('the trace of a run', () => {
  it('has a span of the run, and for each attempt one with its waiting in it', () => {
    const { world, spans, tracer } = traced();
    const retry = { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure'] } as const;
    const { id } = world.create(text([stage('a', { retry })]), { origin: PUSH });
    const createdAt = world.now;
    world.settle();
    world.later(2_000);
    world.session('r1-1', { credits: 2 });
    world.settle();
    const grantedAt = world.now;
    world.later(3_000);
    world.result(world.job(0), 'failed');
    world.settle();
    expect(spans.map(({ name }) => name)).toEqual(['stage a', 'queue']);
    world.later(1_500);
    world.settle();
    world.result(world.job(world.jobs.length - 1));
    world.settle();
    expect(spans.map(({ name }) => name)).toEqual(['stage a', 'queue', 'stage a', 'queue', 'pipeline run']);
    const [first, queue, second, , run] = spans;
    expect(first).toMatchObject({
      spanId: spanIdOf(id, 'a', 1),
      parentSpanId: spanIdOf(id),
      from: createdAt,
      failed: true,
      attributes: { 'cicd.pipeline.task.name': 'a', 'cicd.pipeline.task.run.result': 'failure', 'error.type': 'exit' },
    });
    expect(queue).toMatchObject({ parentSpanId: first?.spanId, from: createdAt, to: grantedAt });
    expect(second).toMatchObject({ spanId: spanIdOf(id, 'a', 2), failed: false });
    expect(run).toMatchObject({
      spanId: spanIdOf(id),
      from: createdAt,
      serves: true,
      link: PUSH.traceparent,
      attributes: {
        'cicd.pipeline.run.id': id,
        'cicd.pipeline.result': 'success',
        'penstock.request.id': 'r-1',
        'penstock.trigger': 'push',
        'vcs.provider.name': 'github',
        'vcs.repository.name': 'acme/demo',
        'vcs.ref.head.name': 'main',
        'vcs.ref.head.revision': 'c0ffee',
      },
    });
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([traceIdOf(id)]));
    expect(tracer.traceparent({ runId: id, stage: 'a', attempt: 2 })).toBe(
      `00-${traceIdOf(id)}-${spanIdOf(id, 'a', 2)}-01`,
    );
  });

  it('of a run that is cancelled ends with it, and with what ran', () => {
    const { world, spans } = traced();
    const { id } = world.create(text([stage('a')]));
    world.settle();
    world.session('r1-1', { credits: 1 });
    world.settle();
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    expect(spans).toEqual([]);
    world.settle();
    expect(spans.find(({ name }) => name === 'pipeline run')?.attributes['cicd.pipeline.result']).toBe('cancellation');
  });

  it('takes a look or two at each event, however many stages a run has, also where it was taken over', () => {
    const spans: SpanRecord[] = [];
    const tracer = new RunTracer({
      keeps: () => true,
      send: (span) => void spans.push(span),
      close: () => Promise.resolve(),
    });
    const names = Array.from({ length: 300 }, (_, index) => `s${index}`);
    const grant = { attempt: 1, runner: 'r', session: 's', credit: 1 };
    const { state, plan, events } = createdOf(text(names.map((name) => stage(name)))).restored([
      { type: 'stages_queued', at: NOW + 1_000, stages: names },
      ...names.map((name): RunEvent => ({ type: 'stage_started', at: NOW + 2_000, stage: name, ...grant })),
      ...names.map((name): RunEvent => ({
        type: 'stage_completed',
        at: NOW + 3_000,
        stage: name,
        attempt: 1,
        status: 'SUCCESS',
      })),
    ]);
    let looks = 0;
    const counted = new Proxy(events, {
      get: (all, key) => {
        looks += 1;
        return Reflect.get(all, key) as unknown;
      },
    });
    const run = { state, plan, events: counted };
    for (let version = events.length - names.length + 1; version <= events.length; version += 1)
      tracer.committed({ run, from: version, to: version });
    expect(looks).toBeLessThan(3 * events.length);
    expect(spans).toHaveLength(2 * names.length);
    for (const { from, to } of spans.filter(({ name }) => name === 'queue'))
      expect([from, to]).toEqual([NOW + 1_000, NOW + 2_000]);
  });

  it('that the sampler leaves out has no spans, and says so to its stages', () => {
    const { world, spans, tracer } = traced(false);
    const { id } = world.create(text([stage('a')]));
    world.settle();
    world.session('r1-1', { credits: 1 });
    world.settle();
    world.result(world.job(0));
    world.settle();
    expect(spans).toEqual([]);
    expect(tracer.traceparent({ runId: id, stage: 'a', attempt: 1 })).toMatch(/-00$/u);
  });
});
