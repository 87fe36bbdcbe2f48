/** Quotas of a key (P23): how many of its runs go on at once, and how many a month begins. */
import { describe, expect, it } from 'vitest';
import { monthEnd, monthOf, type RunEvent } from '@penstock/run';
import { createdOf } from './restored-runs.ts';
import { Harness, NOW, stage, text } from './support.ts';

const one = text([stage('a')]);
const UNLIMITED = 2_147_483_647;
const atOnce = (maxConcurrent: number): { limits: { pipelineRunLimit: number; maxConcurrent: number } } => ({
  limits: { pipelineRunLimit: UNLIMITED, maxConcurrent },
});
const aMonth = (pipelineRunLimit: number): { limits: { pipelineRunLimit: number; maxConcurrent: number } } => ({
  limits: { pipelineRunLimit, maxConcurrent: UNLIMITED },
});
const held = { type: 'run_held', at: NOW, reason: 'quota' } as const;
const queued = { type: 'stages_queued', at: NOW, stages: ['a'] } as const;

describe('runs at once', () => {
  it('P23: over maxConcurrent a run is held as QUEUED, and admitted in the commit that ends another', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 3 });
    const [first, second, third] = [
      world.create(one, atOnce(1)),
      world.create(one, atOnce(1)),
      world.create(one, atOnce(1)),
    ];
    world.settle();
    expect([first, second, third].map(({ replies: [reply] }) => reply?.ok === true && reply.run?.status)).toEqual([
      'RUNNING',
      'QUEUED',
      'QUEUED',
    ]);
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id]);
    world.result(world.job(0));
    expect(world.acknowledge().runs.map(({ id, events }) => [id, events.map(({ type }) => type)])).toEqual([
      [first.id, ['stage_completed', 'run_completed']],
      [second.id, ['run_admitted', 'stages_queued', 'stage_started']],
    ]);
    world.settle();
    world.result(world.job(1));
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id, second.id, third.id]);
  });

  it('P23: who asks what a key has used is told what is committed, projected or not', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 3 });
    const used = (key: string, at = NOW): unknown => {
      let told: unknown;
      world.partition.get({ runIds: [], usage: { key, month: monthOf(at) } }, (reply) => {
        told = reply.ok ? reply.usage : reply;
      });
      return told;
    };
    const { replies } = world.create(one, atOnce(1));
    world.create(one, atOnce(1));
    expect([replies, used('ada')]).toEqual([[], { runs: 0, stageMs: 0, active: 0 }]);
    world.settle();
    expect(used('ada')).toEqual({ runs: 2, stageMs: 0, active: 1 });
    expect(used('eve')).toEqual({ runs: 0, stageMs: 0, active: 0 });
    expect(used('ada', monthEnd(monthOf(NOW)))).toMatchObject({ runs: 0, active: 1 });
  });

  it('P23: other keys, and runs without limits, are not held', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 9 });
    world.create(one, atOnce(1));
    world.create(one, { key: 'eve', ...atOnce(1) });
    world.create(one, { key: 'service' });
    world.create(one, { key: 'service' });
    world.create(one, { key: 'grand', ...atOnce(UNLIMITED) });
    world.create(one, { key: 'grand', ...atOnce(UNLIMITED) });
    world.settle();
    expect(world.jobs).toHaveLength(6);
  });

  it('P23: a cancelled run keeps its concurrency slot until its processes are gone; a held one gives nothing back', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 3 });
    const [first, second, third] = [
      world.create(one, atOnce(1)),
      world.create(one, atOnce(1)),
      world.create(one, atOnce(1)),
    ];
    world.settle();
    for (const { id } of [first, second]) world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id]);
    world.stops[0]?.answer('gone');
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id, third.id]);
  });

  it('P23: the limits of the newest run hold for all of the key', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 9 });
    const ids = [1, 1, 1, 3].map((places) => world.create(one, atOnce(places)).id);
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual(ids.slice(0, 3));
    expect(world.create(one, atOnce(1)).replies).toEqual([]);
    world.settle();
    for (const index of [0, 1]) world.result(world.job(index));
    world.settle();
    expect(world.jobs).toHaveLength(3);
    world.result(world.job(2));
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual(ids);
  });

  it('P23: a run that is held for its group and its quota goes on when it has both, and nobody waits for it meanwhile', () => {
    const grouped = text([stage('a')], { concurrency: { group: ['main'], cancelInProgress: false } });
    const world = new Harness();
    world.session('r1-s', { credits: 9 });
    const first = world.create(grouped, atOnce(2));
    const behind = world.create(grouped, atOnce(2));
    const [second, third] = [world.create(one, atOnce(2)), world.create(one, atOnce(2))];
    world.settle();
    // Its turn has not come, so it takes no place.
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id, second.id]);
    world.result(world.job(0));
    world.settle();
    // Created before the third: its turn has come, and so has its place.
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([first.id, second.id, behind.id]);
    world.result(world.job(1));
    world.settle();
    expect(world.jobs.at(-1)?.message.runId).toBe(third.id);
  });

  it('P23: thousands that end as soon as they go on are admitted one after the other', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 10_000 } });
    Object.assign(world.load, { liveRunsMax: 10_000 });
    world.session('r1-s', { credits: 1 });
    world.create(one, atOnce(1));
    for (let index = 0; index < 5_000; index++) {
      world.create(text([]), atOnce(1));
      if (index % 256 === 0) world.settle();
    }
    world.settle();
    expect(world.events().filter((type) => type === 'run_completed')).toHaveLength(0);
    world.result(world.job(0));
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) world.later(0);
    world.settle();
    expect(world.events().filter((type) => type === 'run_completed')).toHaveLength(5_001);
  }, 240_000);

  it('P23: a take-over knows who has a concurrency slot, who waits in which order, and how many may go on', () => {
    const limits = { maxConcurrent: 1 };
    const goesOn = createdOf(one, limits).restored([queued]);
    const later = createdOf(one, { ...limits, at: NOW + 2 }).restored([held]);
    const sooner = createdOf(one, { ...limits, at: NOW + 1 }).restored([held]);
    const usages = [{ tenant: 'ada', key: 'ada', maxConcurrent: 1, months: [] }];
    const world = new Harness({ runs: [later, goesOn, sooner], usages });
    world.session('r1-s', { credits: 3 });
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([goesOn.id]);
    world.result(world.job(0));
    world.settle();
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([goesOn.id, sooner.id]);
    // Nothing was left of it but what the counter says: the newest run has left memory.
    expect(world.create(one, atOnce(1)).replies).toEqual([]);
    world.settle();
    expect(world.jobs).toHaveLength(2);
  });

  it('P23: a key that has begun no run for months keeps its concurrency slots', () => {
    const goesOn = createdOf(one, { maxConcurrent: 3 }).restored([queued]);
    const waits = createdOf(one, { maxConcurrent: 1, at: NOW + 1 }).restored([held]);
    const world = new Harness({ runs: [waits, goesOn] });
    world.settle();
    expect(world.events()).toEqual([]);
  });

  it('P23: a concurrency slot that was free when the owner died is taken by the next', () => {
    const waiting = createdOf(one, { maxConcurrent: 1 }).restored([held]);
    const world = new Harness({
      runs: [waiting],
      usages: [{ tenant: 'ada', key: 'ada', maxConcurrent: 1, months: [] }],
    });
    world.settle();
    expect(world.events()).toEqual(['run_admitted', 'stages_queued']);
  });
});

describe('runs a month', () => {
  const refused = { ok: false, code: 'QUOTA_EXCEEDED' };

  it('P23: over pipelineRunLimit a create is refused with the limit and the end of the month, and counts nothing', () => {
    const world = new Harness();
    world.create(one, aMonth(2));
    world.create(one, aMonth(2));
    const third = world.create(one, aMonth(2));
    expect(third.replies).toEqual([]);
    world.settle();
    const [reply] = third.replies;
    expect(reply).toMatchObject({
      ...refused,
      message: 'the limit of 2 runs a month is used up; the next month begins at 2027-02-01T00:00:00.000Z',
      retryAfterSecs: (monthEnd('2027-01') - NOW) / 1000,
    });
    expect(world.create(one, aMonth(3)).replies).toEqual([]);
    world.settle();
    expect(created(world).map(({ runOfMonth }) => runOfMonth)).toEqual([1, 2, 3]);
  });

  it('P23: a refusal goes by what is committed, and is said by an owner that is sure to be it (P4)', () => {
    const world = new Harness();
    world.create(one, aMonth(1));
    const second = world.create(one, aMonth(1));
    expect(second.replies).toEqual([]);
    world.mayAct = false;
    world.settle();
    expect(second.replies).toEqual([]);
    world.mayAct = true;
    expect(world.create(one, aMonth(1)).replies).toMatchObject([refused]);
  });

  it('P23: creating twice with one id counts once, and so does one that was refused as no pipeline', () => {
    const world = new Harness();
    const { id } = world.create(one, aMonth(2));
    world.create(one, { id, ...aMonth(2) });
    expect(world.create('stages: [', aMonth(2)).replies).toMatchObject([{ code: 'BAD_USER_INPUT' }]);
    world.create(one, aMonth(2));
    world.settle();
    expect(world.create(one, aMonth(2)).replies).toMatchObject([refused]);
  });

  it('P23: each key has its own month, and each month its own count', () => {
    const world = new Harness();
    world.create(one, aMonth(1));
    expect(world.create(one, { key: 'eve', ...aMonth(1) }).replies).toEqual([]);
    world.settle();
    expect(world.create(one, aMonth(1)).replies).toMatchObject([refused]);
    world.later(monthEnd('2027-01') - NOW);
    expect(world.create(one, aMonth(1)).replies).toEqual([]);
    world.settle();
    expect(world.create(one, aMonth(1)).replies).toMatchObject([refused]);
  });

  it('P23: the refused id comes again as a run that has ended with the reason quota, which counts nothing', () => {
    const world = new Harness();
    world.create(one, aMonth(1));
    const { id } = world.create(one, aMonth(1));
    const { replies } = world.create('', {
      id,
      ended: { pipelineName: 'org/repository', status: 'FAILED', reason: 'quota' },
      ...aMonth(1),
    });
    world.settle();
    expect(replies).toMatchObject([
      {
        ok: true,
        created: true,
        run: { id, status: 'FAILED', reason: 'quota', pipelineName: 'org/repository', stages: [] },
      },
    ]);
    expect(created(world).at(-1)).not.toHaveProperty('runOfMonth');
    expect(world.create(one, aMonth(2)).replies).toEqual([]);
  });

  it('P23: a take-over goes on counting where the store and the open runs say', () => {
    const usages = [
      {
        tenant: 'ada',
        key: 'ada',
        maxConcurrent: null,
        months: [{ month: '2027-01', runs: 4, stageMs: 0, isStored: true }],
      },
    ];
    const world = new Harness({ usages, runs: [createdOf(one, { key: 'eve', runOfMonth: 7 }).restored([queued])] });
    world.settle();
    expect(world.create(one, aMonth(4)).replies).toMatchObject([refused]);
    expect(world.create(one, { key: 'eve', ...aMonth(7) }).replies).toMatchObject([refused]);
    world.create(one, aMonth(5));
    world.settle();
    expect(created(world).map(({ runOfMonth }) => runOfMonth)).toEqual([5]);
  });
});

describe('what is told to the store of a key', () => {
  it('P23: is committed, and only what has changed', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one, atOnce(1));
    expect(world.partition.takeCounters()).toEqual([]);
    world.create(one, atOnce(1));
    world.settle();
    const row = { tenant: 'ada', key: 'ada', month: '2027-01', runs: 2, stageMs: 0, active: 1, maxConcurrent: 1 };
    expect(world.partition.takeCounters()).toEqual([row]);
    expect(world.partition.takeCounters()).toEqual([]);
    world.partition.stillDirty([], [row]);
    expect(world.partition.takeCounters()).toEqual([row]);
    world.now += 1_500;
    world.result(world.job(0));
    world.settle();
    expect(world.partition.takeCounters()).toEqual([{ ...row, stageMs: 1_500 }]);
  });

  it('P23: forgets the months before the last of very many keys tick after tick', () => {
    const keys = Array.from({ length: 1_200 }, (_, index) => `k${index}`);
    const old = { month: '2026-11', runs: 3, stageMs: 0, isStored: true };
    const usages = keys.map((key) => ({ tenant: key, key, maxConcurrent: null, months: [old] }));
    const world = new Harness({ usages });
    const known = (): number => {
      let count = 0;
      for (const key of keys)
        world.bare.get({ runIds: [], usage: { key, month: old.month } }, (reply) => {
          if (reply.ok && reply.usage?.runs === old.runs) count += 1;
        });
      return count;
    };
    world.later(1_000);
    const first = known();
    for (let second = 0; second < 10; second++) world.later(1_000);
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(keys.length);
    expect(known()).toBe(0);
  });

  it("P23: what a key has now stands in its newest month, also where that is the one of an earlier owner's clock", () => {
    const months = [{ month: '2027-02', runs: 3, stageMs: 0, isStored: true }];
    const world = new Harness({
      runs: [createdOf(one).restored([queued])],
      usages: [{ tenant: 'ada', key: 'ada', maxConcurrent: 5, months }],
    });
    expect(world.partition.takeCounters()).toMatchObject([{ month: '2027-02', runs: 3, active: 1, maxConcurrent: 5 }]);
    for (const { id } of world.partition.liveRuns) world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.create(one, atOnce(2));
    world.settle();
    expect(world.partition.takeCounters().find(({ month }) => month === '2027-02')).toMatchObject({
      active: 1,
      maxConcurrent: 2,
    });
    expect(world.create(one, aMonth(1)).replies).toMatchObject([{ code: 'QUOTA_EXCEEDED' }]);
  });

  it('P23: what was decided in a month and acknowledged in the next counts in the first', () => {
    const world = new Harness();
    world.create(one, aMonth(5));
    world.settle();
    world.partition.takeCounters();
    world.create(one, aMonth(5));
    world.later(monthEnd('2027-01') - NOW);
    world.settle();
    expect(world.partition.takeCounters()).toMatchObject([{ month: '2027-01', runs: 2 }]);
  });
});

function created(world: Harness): Extract<RunEvent, { type: 'run_created' }>[] {
  return world.appended.flatMap(({ commit }) =>
    commit.runs.flatMap(({ events }) => events.filter((event) => event.type === 'run_created')),
  );
}
