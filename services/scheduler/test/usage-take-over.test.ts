/** What a new owner reads of its keys' usage: counters of the store, and the commits that they do not stand for (P23). */
import { describe, expect, it } from 'vitest';
import type { RunEvent } from '@penstock/run';
import type { RunCounter } from '@penstock/store';
import { loadUsages, type ReplayedEvents } from '../src/shell/usage-take-over.ts';

const NOW = Date.parse('2026-11-15T12:00:00Z');
const eventsOf = (runOfMonth: number, more: Partial<Extract<RunEvent, { type: 'run_created' }>> = {}): RunEvent[] => [
  {
    type: 'run_created',
    at: NOW,
    tenant: 'ada',
    key: 'ada',
    pipelineName: 'p',
    yaml: '-',
    priority: 0,
    origin: { kind: 'api' },
    runOfMonth,
    ...more,
  },
  { type: 'stages_queued', at: NOW, stages: ['a'] },
  { type: 'stage_started', at: NOW + 1_000, stage: 'a', attempt: 1, runner: 'r', session: 's', credit: 1 },
  { type: 'stage_completed', at: NOW + 3_500, stage: 'a', attempt: 1, status: 'SUCCESS', logBytes: 0 },
];
const counter = (more: Partial<RunCounter> = {}): RunCounter => ({
  partition: 0,
  tenant: 'ada',
  key: 'ada',
  month: '2026-11',
  runs: 4,
  stageMs: 10_000,
  active: 0,
  maxConcurrent: 3,
  incarnation: 1,
  sequence: 50,
  ...more,
});
const commit = (sequence: number, events: readonly RunEvent[], more: Partial<ReplayedEvents> = {}): ReplayedEvents => ({
  incarnation: 1,
  sequence,
  all: events,
  from: 1,
  count: events.length,
  ...more,
});

async function load(counters: readonly RunCounter[], replayed: readonly ReplayedEvents[], now = NOW): Promise<unknown> {
  return loadUsages(
    {
      async *countersOf(_partition, month) {
        yield* counters.filter((one) => one.month === month);
      },
    },
    0,
    replayed,
    now,
  );
}

describe('usage at a take-over (P23)', () => {
  it('P23: the counters alone, where the log says nothing more', async () => {
    expect(await load([counter()], [])).toEqual([
      {
        tenant: 'ada',
        key: 'ada',
        maxConcurrent: 3,
        months: [{ month: '2026-11', runs: 4, stageMs: 10_000, isStored: true }],
      },
    ]);
  });

  it('P23: commits behind a counter are added to it, those that it stands for are not', async () => {
    const months = (usages: unknown): unknown => (usages as { months: unknown }[])[0]?.months;
    expect(months(await load([counter()], [commit(50, eventsOf(4))]))).toEqual([
      { month: '2026-11', runs: 4, stageMs: 10_000, isStored: true },
    ]);
    expect(months(await load([counter()], [commit(51, eventsOf(5))]))).toEqual([
      { month: '2026-11', runs: 5, stageMs: 12_500, isStored: false },
    ]);
    const events = eventsOf(5);
    expect(
      months(await load([counter()], [commit(50, events, { count: 3 }), commit(51, events, { from: 4, count: 1 })])),
    ).toEqual([{ month: '2026-11', runs: 5, stageMs: 12_500, isStored: false }]);
  });

  it('P23: the concurrency slots are those of the newest run, in whichever month it was', async () => {
    const before = counter({ month: '2026-10', maxConcurrent: 1, sequence: 40 });
    expect(await load([before, counter({ maxConcurrent: null })], [])).toMatchObject([{ maxConcurrent: null }]);
    expect(await load([before], [])).toMatchObject([{ maxConcurrent: 1 }]);
    expect(await load([before, counter()], [commit(51, eventsOf(5, { maxConcurrent: 7 }))])).toMatchObject([
      { maxConcurrent: 7 },
    ]);
    expect(await load([before, counter()], [commit(51, eventsOf(5))])).toMatchObject([{ maxConcurrent: null }]);
    expect(await load([before, counter()], [commit(49, eventsOf(4, { maxConcurrent: 7 }))])).toMatchObject([
      { maxConcurrent: 3 },
    ]);
  });

  it('P23: the sequences of a log that was lost say nothing about those of the new one', async () => {
    expect(await load([counter()], [commit(7, eventsOf(5), { incarnation: 2 })])).toMatchObject([
      { months: [{ runs: 5, stageMs: 12_500 }] },
    ]);
    expect(await load([counter({ incarnation: 2, sequence: 3 })], [commit(40, eventsOf(4))])).toMatchObject([
      { months: [{ runs: 4, stageMs: 10_000 }] },
    ]);
  });

  it("P23: also months that an earlier owner's clock was in", async () => {
    const nextMonth = Date.parse('2026-11-30T23:59:59Z');
    expect(await load([counter({ month: '2026-12', runs: 2 })], [], nextMonth)).toMatchObject([
      { months: [{ month: '2026-12', runs: 2 }] },
    ]);
    expect(
      await load(
        [counter({ month: '2026-05', runs: 9 })],
        [commit(60, eventsOf(10, { at: Date.parse('2026-05-02T00:00:00Z') }))],
      ),
    ).toMatchObject([{ months: [{ month: '2026-05', runs: 10 }, { month: '2026-11' }] }]);
  });
});
