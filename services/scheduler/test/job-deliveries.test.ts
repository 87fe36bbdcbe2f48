import { describe, expect, it } from 'vitest';
import { JOB_REPEAT_MS } from '@penstock/bus';
import { Harness, stage, text } from './support.ts';

const one = text([stage('a')]);

function granted(): { readonly world: Harness; readonly id: string } {
  const world = new Harness();
  world.session('r1-s', { credits: 1 });
  const { id } = world.create(one);
  world.settle();
  return { world, id };
}

describe('grants (P12)', () => {
  it('"no responders" to the first send frees the grant, and the stage is offered again', () => {
    const { world } = granted();
    world.jobs[0]?.answer('no-responders');
    world.settle();
    world.credit('r1-s', 'r1', 2);
    world.settle();
    expect(world.jobs[1]?.message).toMatchObject({ attempt: 2, credit: 2 });
  });

  it('to a repeated send it is no answer: the lease decides', () => {
    const { world } = granted();
    world.jobs[0]?.answer('no-answer');
    world.later(2_000);
    expect(world.jobs[1]?.message).toMatchObject({ attempt: 1, repeated: true });
    world.jobs[1]?.answer('no-responders');
    expect(world.inFlight).toBe(0);
  });

  it('an answer to the first send that comes after the second is no answer either', () => {
    const { world } = granted();
    world.later(2_000);
    world.jobs[0]?.answer('no-responders');
    expect(world.inFlight).toBe(0);
  });

  it.each(['accepted', 'held'] as const)('"%s": it is sent no more', (answer) => {
    const { world } = granted();
    world.jobs[0]?.answer(answer);
    world.later(10_000);
    expect(world.jobs).toHaveLength(1);
  });

  it('a lease that lists it is an answer', () => {
    const { world } = granted();
    const { runId, stage: name, attempt, session, credit } = world.job(0);
    world.session('r1-s', { attempts: [{ runId, stage: name, attempt, session, credit }] });
    world.later(10_000);
    expect(world.jobs).toHaveLength(1);
  });

  it('a lease that lists another credit is not: what does not match all of it is dropped', () => {
    const { world } = granted();
    const { runId, stage: name, attempt, session } = world.job(0);
    world.session('r1-s', { attempts: [{ runId, stage: name, attempt, session, credit: 99 }] });
    world.later(10_000);
    expect(world.jobs).toHaveLength(2);
    expect(world.stops[0]?.message.credit).toBe(99);
  });

  it('a job that is too large for a message fails its stage', () => {
    const { world } = granted();
    world.jobs[0]?.answer('too-large');
    world.settle();
    expect(world.events()).toContain('run_completed');
  });

  it("nothing is sent outside the owner's limit; it is made up for", () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(one);
    world.mayAct = false;
    world.settle();
    expect(world.jobs).toEqual([]);
    world.mayAct = true;
    world.later(1_000);
    expect(world.jobs).toMatchObject([{ message: { repeated: false } }]);
  });

  it('nothing is sent for a run while a commit about it is in flight', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 2 });
    world.create(text([stage('a'), stage('b', { after: ['a'] }), stage('c')]));
    world.settle();
    world.jobs[1]?.answer('no-answer');
    world.result(world.job(0));
    expect(world.inFlight).toBe(1);
    world.later(4_000);
    expect(world.jobs).toHaveLength(2);
    world.settle();
    world.later(1_000);
    expect(world.jobs.length).toBeGreaterThan(2);
  });
});

describe('stops (P14)', () => {
  const cancelled = (): ReturnType<typeof granted> => {
    const both = granted();
    both.world.partition.cancel({ runId: both.id, tenants: ['ada'] }, () => {});
    return both;
  };

  it('no grant is sent after a cancel is decided, the stop goes out when it is committed', () => {
    const { world } = cancelled();
    expect(world.stops).toEqual([]);
    world.later(10_000);
    expect(world.jobs).toHaveLength(1);
    world.settle();
    expect(world.stops).toMatchObject([{ runner: 'r1', message: { stage: 'a', attempt: 1, reason: 'cancelled' } }]);
  });

  it('a grant without an answer is not repeated once its stop is committed', () => {
    const { world } = cancelled();
    world.settle();
    world.later(10_000);
    expect(world.jobs).toHaveLength(1);
  });

  it('a stop without an answer is repeated, one that is obeyed only at each lease that still lists it', () => {
    const { world } = cancelled();
    world.settle();
    world.later(2_000);
    expect(world.stops).toHaveLength(2);
    world.stops[1]?.answer('stopping');
    world.later(10_000);
    expect(world.stops).toHaveLength(2);
    const { runId, stage: name, attempt, session, credit } = world.job(0);
    world.session('r1-s', { attempts: [{ runId, stage: name, attempt, session, credit }] });
    expect(world.stops).toHaveLength(3);
  });

  it('an end that is not committed stops nobody (P13)', () => {
    const { world } = granted();
    const message = world.job(0);
    const { runId, stage: name, attempt, session, credit } = message;
    world.result(message);
    world.session('r1-s', { attempts: [{ runId, stage: name, attempt, session, credit }] });
    expect(world.stops).toEqual([]);
    world.settle();
    world.session('r1-s', { attempts: [{ runId, stage: name, attempt, session, credit }] });
    expect(world.stops).toHaveLength(1);
  });
});

describe('the log of an attempt that ends without a result (P21)', () => {
  it.each<[string, (world: Harness) => void]>([
    ['whose session is over', (world) => world.partition.sessionLost('r1-s', 'r1')],
    ['that its runner says is gone', (world) => world.stops[0]?.answer('gone')],
  ])('%s is closed by a mark before its end is committed', (_how, end) => {
    const { world, id } = granted();
    world.jobs[0]?.answer('accepted');
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    expect(world.closedLogs).toEqual([]);
    if (_how.includes('session')) world.dispatch.sessionGone('r1-s');
    end(world);
    expect(world.closedLogs).toEqual([{ key: 'ada', runId: id, runner: 'r1', stage: 'a', attempt: 1 }]);
    world.settle();
    const last = world.appended.at(-1)?.commit.runs[0]?.events;
    expect(last).toMatchObject([{ type: 'attempt_gone', logSequence: 1 }, { type: 'run_stopped' }]);
  });

  it('is not closed before its grant is committed, which another owner may go on without', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    const { id } = world.create(one);
    world.dispatch.sessionGone('r1-s');
    world.partition.sessionLost('r1-s', 'r1');
    expect(world.closedLogs).toEqual([]);
    world.acknowledge();
    expect(world.closedLogs).toEqual([{ key: 'ada', runId: id, runner: 'r1', stage: 'a', attempt: 1 }]);
  });

  it('that was never started needs no mark', () => {
    const { world, id } = granted();
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    world.jobs[0]?.answer('refused');
    world.settle();
    expect(world.closedLogs).toEqual([]);
    expect(world.appended.at(-1)?.commit.runs[0]?.events[0]).toMatchObject({ type: 'attempt_gone', logBytes: 0 });
  });
});

describe('many grants without an answer', () => {
  it('are sent again some in each turn, and all of them before it rests', () => {
    const world = new Harness({ settings: { liveRunsPerKeyMax: 10_000 } });
    Object.assign(world.load, { liveRunsMax: 10_000 });
    const count = 1_200;
    world.session('r1-s', { credits: count });
    for (let index = 0; index < count; index++) world.create(text([stage('a')]));
    world.settle();
    expect(world.jobs).toHaveLength(count);
    const turns: number[] = [];
    const turn = (milliseconds: number): void => {
      const before = world.jobs.length;
      world.later(milliseconds);
      turns.push(world.jobs.length - before);
    };
    turn(JOB_REPEAT_MS);
    while ((world.partition.nextWake() ?? Infinity) <= world.boot) turn(0);
    // The last one finds that none are left.
    expect(turns).toEqual([...Array.from({ length: 12 }, () => 100), 0]);
    expect(new Set(world.jobs.slice(count).map(({ message }) => message.runId)).size).toBe(count);
  });
});
