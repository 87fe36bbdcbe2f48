import {
  ConcurrencySlots,
  CommitCycle,
  Dispatch,
  InvariantSamples,
  KeyCounts,
  type FoundRun,
  type LiveRun,
} from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';
import { createdOf } from './restored-runs.ts';
import { Harness, NOW, settings, stage, text } from './support.ts';

const one = text([stage('a')]);
const queued = { type: 'stages_queued', at: NOW, stages: ['a'] } as const;
const cancelled = { type: 'run_cancelled', at: NOW, cancelledStages: 1 } as const;
const ports = { append: () => {}, newCommitId: () => 'c1' };
const nobody = { turnOf: () => undefined, admit: () => {}, recall: () => {} };

function finish(slices: Iterator<void>): void {
  while (slices.next().done !== true);
}

function found(run: LiveRun): FoundRun {
  const { key, createdAt, group, held } = run.state;
  return { id: run.id, key, turn: createdAt, group, held, rests: false, isApart: run.settled, isOutside: false };
}

describe('concurrency slots', () => {
  it('say so when a run of the partition neither has a slot nor is held', () => {
    const run = createdOf(one).restored([queued]);
    const slots = new ConcurrencySlots(nobody);
    expect(() => slots.assertInvariants([run])).toThrow(
      `SLOTS-4 is broken: a run neither has a slot nor is held nor rests`,
    );
    finish(slots.restore([found(run)], () => 1));
    finish(slots.open());
    expect(() => slots.assertInvariants([run])).not.toThrow();
  });

  it('say so when a run that has settled keeps its slot', () => {
    const run = createdOf(one).restored([queued]);
    const slots = new ConcurrencySlots(nobody);
    finish(slots.restore([found(run)], () => 1));
    run.tell({ type: 'cancel', at: NOW });
    expect(() => slots.assertInvariants([run])).toThrow('SLOTS-1');
    slots.settled(run);
    expect(() => slots.assertInvariants([run])).not.toThrow();
  });

  it('say so when a slot is free and a run waits for it', () => {
    const run = createdOf(one).restored([{ type: 'run_held', at: NOW, reason: 'quota' }]);
    const slots = new ConcurrencySlots(nobody);
    finish(slots.restore([found(run)], () => 1));
    expect(() => slots.assertInvariants([run])).toThrow('SLOTS-2');
  });

  it('are wanted of those outside only where a run waits for one', () => {
    const first = createdOf(one).restored([queued]);
    const second = createdOf(one).restored([{ type: 'run_held', at: NOW, reason: 'quota' }]);
    const { key } = first.state;
    const slots = new ConcurrencySlots(nobody);
    expect(slots.use(key)).toEqual({ taken: 0, areWanted: false });
    finish(slots.restore([found(first)], () => 1));
    expect(slots.use(key)).toEqual({ taken: 1, areWanted: false });
    finish(slots.restore([found(second)], () => 1));
    expect(slots.use(key)).toEqual({ taken: 1, areWanted: true });
  });

  it('say so when a run has left memory and they have not heard of it', () => {
    const run = createdOf(one).restored([queued, cancelled]);
    const slots = new ConcurrencySlots(nobody);
    finish(slots.restore([found(run)], () => 1));
    expect(() => slots.assertInvariants([])).toThrow('SLOTS-4');
    slots.forget(run);
    expect(() => slots.assertInvariants([])).not.toThrow();
  });
});

describe('counts of keys', () => {
  it('say so when a run goes on and is not counted as active', () => {
    const run = createdOf(one).restored([queued]);
    const counts = new KeyCounts();
    expect(() => counts.assertInvariants([run])).toThrow('COUNTS-4');
    finish(counts.restore([], [run], NOW));
    expect(() => counts.assertInvariants([run])).not.toThrow();
  });

  it('say so when a run that has left memory is still active', () => {
    const counts = new KeyCounts();
    finish(counts.restore([], [createdOf(one).restored([queued])], NOW));
    expect(() => counts.assertInvariants([])).toThrow('COUNTS-4');
  });
});

describe('commits', () => {
  it('say so when a decision stands in no commit to come', () => {
    const run = createdOf(one).restored([queued]);
    const cycle = new CommitCycle(settings, ports);
    const decided = run.tell({ type: 'cancel', at: NOW });
    expect(() => cycle.assertInvariants([run])).toThrow('COMMIT-3 is broken: a decision stands in no commit to come');
    cycle.add(run, 3, decided?.events ?? []);
    expect(() => cycle.assertInvariants([run])).not.toThrow();
    cycle.send(NOW, 0);
    expect(() => cycle.assertInvariants([run])).not.toThrow();
    cycle.acknowledged(101);
    expect(() => cycle.assertInvariants([run])).not.toThrow();
    expect(run).toMatchObject({ committedVersion: 4, committedSequence: 101 });
  });

  it('hold all that is decided about a run from its joining on, under way and acknowledged, and nothing before', () => {
    const run = createdOf(one).restored([queued]);
    const cycle = new CommitCycle(settings, ports);
    const holds = [cycle.holdsAllOf(run)];
    const decided = run.tell({ type: 'cancel', at: NOW });
    holds.push(cycle.holdsAllOf(run));
    cycle.add(run, 3, decided?.events ?? []);
    holds.push(cycle.holdsAllOf(run));
    cycle.send(NOW, 0);
    holds.push(cycle.holdsAllOf(run));
    cycle.acknowledged(101);
    holds.push(cycle.holdsAllOf(run));
    expect(holds).toEqual([true, false, true, true, true]);
  });

  it('say so when events of a run join them out of their order', () => {
    const run = createdOf(one).restored([queued]);
    const cycle = new CommitCycle(settings, ports);
    cycle.add(run, 7, run.tell({ type: 'cancel', at: NOW })?.events ?? []);
    expect(() => cycle.assertInvariants([run])).toThrow('COMMIT-3');
  });
});

describe('the dispatch', () => {
  it("says so when a stage waits in another key's queue", () => {
    const dispatch = new Dispatch();
    const waiting = {
      key: 'ada',
      priority: 0,
      labels: [],
      labelSet: '',
      count: 1,
      waits: () => true,
      since: () => undefined,
      boundTo: () => undefined,
      grant: () => true,
      rest() {
        return this;
      },
    };
    dispatch.offer(waiting);
    expect(() => dispatch.assertInvariants()).not.toThrow();
    waiting.key = 'eve';
    expect(() => dispatch.assertInvariants()).toThrow('DISPATCH-2');
  });
});

describe('a partition', () => {
  it('finds what happened to a run behind its back', () => {
    const world = new Harness({ runs: [createdOf(one).restored([queued])] });
    for (const run of world.partition.liveRuns) run.tell({ type: 'cancel', at: NOW });
    expect(() => world.partition.assertInvariants()).toThrow('SLOTS-1');
  });
});

describe('samples in production', () => {
  it('look at each in turn, and log and count what is broken without stopping the tick', () => {
    const logged: unknown[] = [];
    const looked: string[] = [];
    const samples = new InvariantSamples({ error: (...line: readonly unknown[]) => void logged.push(line) });
    const sound = { sampleInvariants: () => void looked.push('sound') };
    const broken = {
      sampleInvariants: () => {
        looked.push('broken');
        throw new Error('SLOTS-1 is broken');
      },
    };
    for (let tick = 0; tick < 40; tick++) samples.tick([sound, broken]);
    expect(looked).toEqual(['broken', 'sound', 'broken', 'sound']);
    expect(samples.broken).toBe(2);
    expect(logged).toHaveLength(2);
  });

  it('look at nothing where nothing is owned', () => {
    const samples = new InvariantSamples({ error: () => expect.unreachable() });
    for (let tick = 0; tick < 40; tick++) samples.tick([]);
    expect(samples.broken).toBe(0);
  });
});

describe('samples of many', () => {
  it('a sample looks at some of the runs and queues, and the samples look at all of them in the end', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 10_000 } });
    Object.assign(world.load, { liveRunsMax: 10_000 });
    for (let index = 0; index < 5_500; index++) {
      world.create(one);
      if (index % 250 === 0) world.settle();
    }
    world.settle();
    for (let look = 0; look < 13; look++) {
      world.partition.sampleInvariants();
      world.dispatch.sampleInvariants();
    }
    const last = [...world.partition.liveRuns].at(-1);
    last?.tell({ type: 'cancel', at: NOW });
    const looks = (): void => {
      for (let look = 0; look < 13; look++) world.partition.sampleInvariants();
    };
    expect(looks).toThrow('SLOTS-1');
  });
});
