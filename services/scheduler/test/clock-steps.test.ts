/** The wall clock is set, forward and back; what is waited for in memory goes by the boot clock and does not notice (P5). */
import { JOB_REPEAT_MS } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import { createdOf } from './restored-runs.ts';
import { Harness, HOUR_MS, NOW, stage, text } from './support.ts';

const one = text([stage('a')]);
const retried = text([stage('a', { retry: { max: 1, backoff: 'constant', delayMs: 2_000, on: ['failure'] } })]);

it('P5: wakes very many runs that are due in one moment turn after turn', () => {
  const world = new Harness({ settings: { queueTimeoutMs: 60_000, liveRunsPerKeyMax: 1_000 } });
  const count = 250;
  for (let run = 0; run < count; run++) world.create(one);
  world.settle();
  const ended = (): number => world.events().filter((type) => type === 'stage_completed').length;
  world.later(60_000);
  world.settle();
  expect(ended()).toBeGreaterThan(0);
  expect(ended()).toBeLessThan(count);
  while ((world.partition.nextWake() ?? Infinity) <= world.boot) {
    world.partition.tick();
    world.settle();
  }
  expect(ended()).toBe(count);
});

describe.each([
  ['back by an hour', -HOUR_MS],
  ['forward by an hour', HOUR_MS],
  ['forward by a day and back', 25 * HOUR_MS],
])('a wall clock set %s', (_how, byMs) => {
  it('P5: stops no grant and ends no credit', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.now += byMs;
    world.create(one);
    world.settle();
    expect(world.jobs).toHaveLength(1);
  });

  it('P5: keeps the time of a retry', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(retried);
    world.settle();
    world.result(world.job(0), 'failed');
    world.settle();
    world.now += byMs;
    world.later(1_900);
    expect(world.events().filter((type) => type === 'stages_queued')).toHaveLength(1);
    world.later(100);
    expect(world.events().filter((type) => type === 'stages_queued')).toHaveLength(2);
  });

  it('P5: keeps the time in which a runner has to come', () => {
    const world = new Harness({ settings: { queueTimeoutMs: 60_000 } });
    world.create(one);
    world.settle();
    world.now += byMs;
    world.later(59_000);
    expect(world.events()).not.toContain('stage_completed');
    world.later(1_000);
    expect(world.events()).toContain('stage_completed');
  });

  it('P5: keeps the time in which an attempt has to end', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one);
    world.settle();
    world.now += byMs;
    world.later(89_000);
    expect(world.events()).not.toContain('stage_stopping');
    world.later(1_000);
    expect(world.events()).toContain('stage_stopping');
  });

  it('P5: keeps the time at which a grant without an answer is repeated', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one);
    world.settle();
    world.now += byMs;
    world.later(JOB_REPEAT_MS - 100);
    expect(world.jobs).toHaveLength(1);
    world.later(100);
    expect(world.jobs).toHaveLength(2);
  });

  it('P5: keeps the time in which a runner may come back to its workspaces', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(text([stage('a'), stage('b', { after: ['a'] })]));
    world.settle();
    world.result(world.job(0));
    world.settle();
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.now += byMs;
    world.later(14_000);
    expect(world.events()).not.toContain('workspace_lost');
    world.later(1_000);
    expect(world.events()).toContain('workspace_lost');
  });

  it('P7: keeps the time for which the ids of closed runs are remembered', () => {
    const world = new Harness();
    world.now += 2 * HOUR_MS;
    world.boot += 2 * HOUR_MS;
    const { id } = world.create(text([]));
    world.settle();
    world.project();
    world.now += byMs;
    world.later(30 * 60_000);
    world.stored = false;
    expect(world.create(text([]), { id }).replies).toMatchObject([{ ok: true, created: false }]);
  });

  it('P5: lets the events of a run keep their order', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one);
    world.settle();
    world.now += byMs;
    world.result(world.job(0));
    world.settle();
    const times = world.appended.flatMap(({ commit }) =>
      commit.runs.flatMap(({ events }) => events.map(({ at }) => at)),
    );
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });
});

describe('a wait that an earlier owner has journaled', () => {
  it.each([
    ['ahead of ours', HOUR_MS, 60_000],
    ['behind ours', -HOUR_MS, 0],
    ['ours', -20_000, 40_000],
  ])(
    'P5: by a clock that was %s lasts no longer than it would anew, and is over at the earliest now',
    (_what, byMs, leftMs) => {
      const world = new Harness({
        settings: { queueTimeoutMs: 60_000 },
        runs: [
          createdOf(one).restored([{ type: 'stages_queued', at: NOW + byMs, stages: ['a'] }], {
            queueTimeoutMs: 60_000,
          }),
        ],
      });
      world.later(Math.max(0, leftMs - 1_000));
      expect(world.events().includes('stage_completed')).toBe(leftMs === 0);
      world.later(1_000);
      expect(world.events()).toContain('stage_completed');
    },
  );
});
