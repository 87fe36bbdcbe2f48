/** A take-over of many runs, slice by slice: nobody sees a partition that is half open. */
import type { GetReply } from '@penstock/bus';
import type { RunEvent } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { createdOf } from './restored-runs.ts';
import { Harness, NOW, stage, text } from './support.ts';

const one = text([stage('a')]);
const queued = { type: 'stages_queued', at: NOW, stages: ['a'] } as const;
const RUNS = 3_000;

function startedOn(runner: string, credit: number): RunEvent {
  return { type: 'stage_started', at: NOW, stage: 'a', attempt: 1, runner, session: `${runner}-s`, credit };
}

describe('P3: a partition that takes over thousands of runs', () => {
  it('answers, offers and sends nothing before the last slice, and knows all of them then', () => {
    const world = new Harness({ start: false });
    world.dispatch.sessionSeen({ runner: 'r1', session: 'r1-s', labels: [], slots: 10_000, attempts: [] });
    world.dispatch.addCredits(world.boot, { runner: 'r1', session: 'r1-s', credits: [1, 2, 3] });
    const runs = Array.from({ length: RUNS }, (_, index) =>
      createdOf(one, { at: NOW + index }).restored(index % 2 === 0 ? [queued] : [queued, startedOn('r2', index)]),
    );
    const opening = world.bare.opening({ sequence: 100, commitNumber: 1, runs: runs.toReversed() });
    let slices = 0;
    const replies: GetReply[] = [];
    while (opening.next().done !== true) {
      slices += 1;
      world.partition.get({ runIds: [runs[0]?.id ?? ''] }, (reply) => void replies.push(reply));
      world.partition.creditsChanged();
      world.partition.tick();
      expect([world.dispatch.waiting, world.appended.length, world.jobs.length, world.closedLogs.length]).toEqual([
        0, 0, 0, 0,
      ]);
    }
    expect(slices).toBeGreaterThan(100);
    expect(replies).toEqual([]);
    expect(world.load.liveRuns).toBe(RUNS);
    world.partition.get({ runIds: [runs[0]?.id ?? ''] }, (reply) => void replies.push(reply));
    world.settle();
    expect(replies).toHaveLength(1);
    // The oldest first, whatever was offered first.
    expect(world.jobs.slice(0, 3).map(({ message }) => message.runId)).toEqual(
      [0, 2, 4].map((index) => runs[index]?.id),
    );
    // What is left is offered and taken up turn after turn, and of each run before anything else is done about it.
    expect(world.partition.nextWake()).toBe(world.boot);
    const last = runs[RUNS - 1];
    const { length } = world.closedLogs;
    world.partition.cancel({ runId: last?.id ?? '', tenants: ['ada'] }, () => {});
    expect(world.closedLogs.slice(length).map(({ runId }) => runId)).toEqual([last?.id]);
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) {
      world.partition.tick();
      world.settle();
    }
    expect(world.closedLogs).toHaveLength(RUNS / 2);
    expect(world.dispatch.waiting).toBe(RUNS / 2 - 3);
  });

  it('offers new runs behind those that it has found', () => {
    const world = new Harness({ start: false, settings: { liveRunsPerKeyMax: RUNS + 1 } });
    const runs = Array.from({ length: 2_400 }, (_, index) => createdOf(one, { at: NOW + index }).restored([queued]));
    Object.assign(world.load, { liveRunsMax: 10_000 });
    world.start({ sequence: 100, commitNumber: 1, runs });
    const { id } = world.create(one);
    world.settle();
    expect(world.dispatch.waiting).toBeLessThan(runs.length);
    world.session('r1-s', { credits: runs.length + 1 });
    while (world.jobs.length <= runs.length) {
      world.partition.tick();
      world.settle();
    }
    expect(world.jobs.map(({ message }) => message.runId)).toEqual([...runs.map((run) => run.id), id]);
  });

  it('leaves nothing behind where it is given up between two slices', () => {
    const world = new Harness({ start: false });
    const runs = Array.from({ length: 500 }, (_, index) => createdOf(one, { at: NOW + index }).restored([queued]));
    for (let slices = 1; slices < 30; slices++) {
      const opening = world.bare.opening({ sequence: 100, commitNumber: 1, runs });
      for (let left = slices; left > 0 && opening.next().done !== true; left -= 1);
      world.bare.close();
      expect(world.load).toMatchObject({ liveRuns: 0, liveBytes: 0 });
    }
  });
});
