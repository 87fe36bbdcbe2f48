/** P13, P16: attempts whose session is over, and whose runner has their result in a later session. */
import { LossPause } from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';
import { createdOf } from './restored-runs.ts';
import { Harness, NOW, stage, text } from './support.ts';

/** An attempt of the session `r1-s`, which a lease of `r1-t` lists. */
function heldByLaterSession(): Harness {
  const world = new Harness();
  world.session('r1-s', { credits: 1 });
  world.create(text([stage('a')]));
  world.settle();
  const { runId, stage: name, attempt, session, credit } = world.job(0);
  world.session('r1-t', { runner: 'r1', attempts: [{ runId, stage: name, attempt, session, credit }] });
  world.dispatch.sessionGone('r1-s');
  world.partition.sessionLost('r1-s', 'r1');
  world.later(60_000);
  world.settle();
  return world;
}

describe('an attempt whose result is listed by a later session of its runner (P13)', () => {
  it('is not lost with its own session, and its result is taken', () => {
    const world = heldByLaterSession();
    expect(world.events()).not.toContain('run_completed');
    const { replies } = world.result(world.job(0));
    world.settle();
    expect(replies).toMatchObject([{ ok: true, answer: 'committed' }]);
    expect(world.events().slice(-2)).toEqual(['stage_completed', 'run_completed']);
    expect(world.jobs).toHaveLength(1);
  });

  it('is lost once that session is over too', () => {
    const world = heldByLaterSession();
    world.dispatch.sessionGone('r1-t');
    world.partition.sessionLost('r1-t', 'r1');
    world.later(1_000);
    world.settle();
    expect(world.events().slice(-2)).toEqual(['stage_completed', 'run_completed']);
    expect(world.result(world.job(0)).replies).toMatchObject([{ ok: true, answer: 'obsolete' }]);
  });

  it('is lost once that session lists it no more', () => {
    const world = heldByLaterSession();
    world.session('r1-t', { runner: 'r1' });
    world.later(1_000);
    world.settle();
    expect(world.events()).toContain('run_completed');
  });
});

describe('an owner that was connected a moment ago (P5)', () => {
  /** Its session's lease has run out while nobody could renew it. */
  const ranOut = (): Harness => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(text([stage('a')]));
    world.settle();
    world.mayDeclareLoss = false;
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.later(10_000);
    world.settle();
    return world;
  };

  it('P5: declares no loss before one lease has passed', () => {
    const world = ranOut();
    expect(world.events()).not.toContain('stage_completed');
    world.mayDeclareLoss = true;
    world.later(1_000);
    world.settle();
    expect(world.events().slice(-2)).toEqual(['stage_completed', 'run_completed']);
  });

  it('P5, P13: takes the result of a runner that comes back meanwhile with a session that lists it', () => {
    const world = ranOut();
    const { runId, stage: name, attempt, session, credit } = world.job(0);
    world.session('r1-t', { runner: 'r1', attempts: [{ runId, stage: name, attempt, session, credit }] });
    world.mayDeclareLoss = true;
    world.later(60_000);
    world.settle();
    expect(world.events()).not.toContain('stage_completed');
    const { replies } = world.result(world.job(0));
    world.settle();
    expect(replies).toMatchObject([{ ok: true, answer: 'committed' }]);
  });

  it('P5, P16: makes known no loss that was declared when the broker went away, and takes the result', () => {
    const world = ranOut();
    const { runId, stage: name, attempt, session, credit } = world.job(0);
    world.storesMarks = false;
    world.mayDeclareLoss = true;
    world.later(1_000);
    const [first] = world.waitingLogs;
    expect(first?.stands()).toBe(true);
    // The broker was away and is back: its runner says only now what it holds.
    world.mayDeclareLoss = false;
    expect(first?.stands()).toBe(false);
    world.session('r1-t', { runner: 'r1', attempts: [{ runId, stage: name, attempt, session, credit }] });
    world.mayDeclareLoss = true;
    world.later(60_000);
    world.settle();
    expect(world.waitingLogs).toHaveLength(1);
    const { replies } = world.result(world.job(0));
    world.settle();
    expect(replies).toMatchObject([{ ok: true, answer: 'committed' }]);
  });

  it('P5: declares the losses of very many turn after turn', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 1_000 } });
    const count = 250;
    world.session('r1-s', { credits: count });
    for (let run = 0; run < count; run++) world.create(text([stage('a')]));
    world.settle();
    world.mayDeclareLoss = false;
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    world.later(10_000);
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) world.partition.tick();
    const ended = (): number => world.events().filter((type) => type === 'stage_completed').length;
    expect(ended()).toBe(0);
    world.mayDeclareLoss = true;
    world.later(1_000);
    world.settle();
    expect(ended()).toBeGreaterThan(0);
    expect(ended()).toBeLessThan(count);
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) {
      world.partition.tick();
      world.settle();
    }
    expect(ended()).toBe(count);
  });

  it('P5: declares a loss anew that stood no more', () => {
    const world = ranOut();
    world.storesMarks = false;
    world.mayDeclareLoss = true;
    world.later(1_000);
    world.mayDeclareLoss = false;
    expect(world.waitingLogs[0]?.stands()).toBe(false);
    world.later(1_000);
    expect(world.waitingLogs).toHaveLength(1);
    world.mayDeclareLoss = true;
    world.later(1_000);
    expect(world.waitingLogs).toHaveLength(2);
    world.waitingLogs[1]?.closed(7);
    world.settle();
    expect(world.events().slice(-2)).toEqual(['stage_completed', 'run_completed']);
  });

  it('P5: declares none at the take-over of a run either', () => {
    const started = {
      type: 'stage_started',
      at: NOW,
      stage: 'a',
      attempt: 1,
      runner: 'r1',
      session: 'r1-s',
      credit: 1,
    } as const;
    const queued = { type: 'stages_queued', at: NOW, stages: ['a'] } as const;
    const world = new Harness({ start: false });
    world.mayDeclareLoss = false;
    const runs = [createdOf(text([stage('a')])).restored([queued, started])];
    world.start({ sequence: 100, commitNumber: 1, runs });
    world.later(1_000);
    expect(world.closedLogs).toEqual([]);
    world.mayDeclareLoss = true;
    world.later(1_000);
    expect(world.closedLogs).toHaveLength(1);
  });
});

describe('the pause after a connection (P5)', () => {
  it('P5: lasts one lease by the boot clock, from the start and from each connection on', () => {
    let boot = 100_000;
    const pause = new LossPause({ runnerLeaseMs: 15_000 }, { bootNow: () => boot });
    expect(pause.isOver).toBe(false);
    boot += 15_000;
    expect(pause.isOver).toBe(true);
    pause.begin();
    boot += 14_999;
    expect(pause.isOver).toBe(false);
    boot += 1;
    expect(pause.isOver).toBe(true);
  });

  it('P17: is none where nothing that held a lease can be alive, until the broker is connected anew', () => {
    const pause = new LossPause({ runnerLeaseMs: 15_000, leasesProvenDead: true }, { bootNow: () => 100_000 });
    expect(pause.isOver).toBe(true);
    pause.begin();
    expect(pause.isOver).toBe(false);
  });
});
