/** What a partition and its dispatch remember is bounded, however long they live. */
import { describe, expect, it } from 'vitest';
import { Dispatch, type ReadyStages } from '@penstock/scheduler/testing';
import { Harness, HOUR_MS, stage, text } from './support.ts';

const one = text([stage('a')]);

function waiting(isWaiting: () => boolean): ReadyStages {
  return {
    key: 'ada',
    priority: 0,
    labels: ['gpu'],
    labelSet: 'gpu',
    count: 1,
    waits: isWaiting,
    since: () => undefined,
    boundTo: () => undefined,
    grant: () => true,
    rest() {
      return this;
    },
  };
}

describe('bounded memory', () => {
  it('P6: stages of cancelled runs do not pile up behind one that no runner can take', () => {
    const dispatch = new Dispatch();
    dispatch.offer(waiting(() => true));
    for (let index = 0; index < 10_000; index++) {
      let waits = true;
      dispatch.offer(waiting(() => waits));
      waits = false;
    }
    expect(dispatch.waiting).toBeLessThan(1_000);
    dispatch.sessionSeen({ runner: 'r1', session: 's', labels: ['gpu'], slots: 1, attempts: [] });
    dispatch.addCredits(0, { runner: 'r1', session: 's', credits: [1, 2] });
    dispatch.match(0);
    expect(dispatch.waiting).toBe(0);
  });

  it('runs are admitted by the memory that they take: beyond it creates are UNAVAILABLE, and room comes back', () => {
    const world = new Harness();
    const large = text(Array.from({ length: 2_000 }, (_, index) => stage(`s${index}`)));
    const { id } = world.create(large);
    world.settle();
    const ofOne = world.load.liveBytes;
    expect(ofOne).toBeGreaterThan(1024 ** 2);
    Object.assign(world.load, { liveBytesMax: ofOne });
    expect(world.create(one, { key: 'bob' }).replies).toMatchObject([{ ok: false, code: 'UNAVAILABLE' }]);
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    world.project();
    expect(world.load.liveBytes).toBe(0);
    world.create(one, { key: 'bob' });
    world.settle();
    expect(world.load.liveRuns).toBe(1);
  });

  it('HELD-3: each set of labels that a file asks for counts as the three KiB that it takes among those that wait, once for all runs of the file', () => {
    const world = new Harness();
    const bytesOf = (labelOf: (index: number) => string): number => {
      const yaml = text(Array.from({ length: 500 }, (_, index) => stage(`s${index}`, { runsOn: [labelOf(index)] })));
      const before = world.load.liveBytes;
      world.create(yaml);
      const first = world.load.liveBytes - before;
      world.create(yaml);
      expect(world.load.liveBytes - before).toBeLessThan(2 * first - 500);
      return first;
    };
    const ofOne = bytesOf(() => 'l100');
    expect(bytesOf((index) => `l${100 + index}`) - ofOne).toBeGreaterThan(499 * 3 * 1024);
  });

  it('a key may take a quarter of the memory for live runs, and the others go on', () => {
    const world = new Harness();
    const large = text(Array.from({ length: 200 }, (_, index) => stage(`s${index}`)));
    world.create(large);
    world.settle();
    Object.assign(world.load, { liveBytesMax: 1.5 * world.load.liveBytes });
    expect(world.create(one).replies).toMatchObject([{ ok: false, code: 'UNAVAILABLE' }]);
    const other = world.create(one, { key: 'bob' });
    world.settle();
    expect(other.replies).toMatchObject([{ ok: true, created: true }]);
  });

  it('hundreds of thousands of stages wait in one queue, and what waits no more is cleared out of it', () => {
    const dispatch = new Dispatch();
    let waits = true;
    for (let index = 0; index < 300_000; index++) dispatch.offer(waiting(() => waits));
    expect(dispatch.waiting).toBe(300_000);
    waits = false;
    for (let index = 0; index < 300_000; index++) dispatch.offer(waiting(() => index === 299_999));
    expect(dispatch.waiting).toBeLessThan(300_000);
  });

  it('P27: of a run that was approved, or given up, nothing is kept for the time for which it would have waited', () => {
    const world = new Harness();
    const heads = [1, 2, 3, 4, 5].map((number) => {
      const pullRequest = { number, branch: 'main', fork: true };
      const origin = { kind: 'webhook', provider: 'git_host_a', repository: 'o/r', ref: 'r', pullRequest } as const;
      return world.create(one, { origin, held: 'approval' }).id;
    });
    world.settle();
    const [, , approved = '', ...cancelled] = heads;
    world.partition.approve({ runId: approved, tenants: ['ada'], by: 'grace' }, () => {});
    for (const runId of [approved, ...cancelled]) world.partition.cancel({ runId, tenants: ['ada'] }, () => {});
    world.settle();
    world.project();
    expect(world.load.liveRuns).toBe(0);
    // Whoever waited still would be due by now.
    world.boot += 31 * 24 * HOUR_MS;
    expect(world.partition.nextWake()).toBeUndefined();
  });

  it('P30: of a rerun that has left memory nothing is kept, however long the run stays that it repeats', () => {
    const world = new Harness();
    const { id: parent } = world.create(one);
    world.settle();
    const reruns = [1, 2].map(() => world.create(one, { rerun: { parent } }).id);
    world.settle();
    for (const runId of reruns) world.partition.cancel({ runId, tenants: ['ada'] }, () => {});
    world.settle();
    world.project();
    expect([...world.partition.liveRuns].map(({ id }) => id)).toEqual([parent]);
    // ADOPTIONS-3
    expect(() => world.bare.assertInvariants()).not.toThrow();
  });

  it('P7: an id that its client dated ahead is asked about once it is remembered no more', () => {
    const world = new Harness();
    world.later(2 * 60_000);
    const id = world.id({ ageMs: -4 * 60_000 });
    world.create(one, { id });
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    world.project();
    expect(world.load.liveRuns).toBe(0);
    world.later(HOUR_MS + 60_000);
    world.stored = true;
    const asked = world.askedStore.length;
    expect(world.create(one, { id }).replies).toMatchObject([{ ok: true, created: false, run: null }]);
    expect(world.askedStore.length).toBe(asked + 1);
  });
});
