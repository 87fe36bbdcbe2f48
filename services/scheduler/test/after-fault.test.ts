/** What a fault in a callback about one run has lost is found again: nothing else tells of it. */
import { expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

/** A run of one stage, which `r1-s` has, with the marks of logs stored when the test says so. */
function running(): { readonly world: Harness; readonly id: string } {
  const world = new Harness();
  world.storesMarks = false;
  world.session('r1-s', { credits: 1 });
  const { id } = world.create(text([stage('a')]));
  world.settle();
  world.jobs[0]?.answer('accepted');
  return { world, id };
}

function cancelled(): { readonly world: Harness; readonly id: string } {
  const { world, id } = running();
  world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
  world.settle();
  return { world, id };
}

function sessionLost(world: Harness): void {
  world.dispatch.sessionGone('r1-s');
  world.partition.sessionLost('r1-s', 'r1');
}

/** Where the callback of the log's mark would have come. */
function throwInstead(world: Harness, id: string): void {
  world.partition.quarantine(id, new Error('thrown in a callback'));
  world.settle();
}

const END = ['attempt_gone', 'run_stopped'];

it('P5, P21: the loss of an attempt of an ended run is made known again', () => {
  const { world, id } = cancelled();
  sessionLost(world);
  expect(world.waitingLogs).toHaveLength(1);
  throwInstead(world, id);
  world.later(5_000);
  expect(world.waitingLogs).toHaveLength(2);
  world.waitingLogs[1]?.closed(7);
  world.settle();
  expect(world.events().slice(-2)).toEqual(END);
  world.project();
  expect(world.load.liveRuns).toBe(0);
});

it('is tried again as often as it throws, and not at once', () => {
  const { world, id } = cancelled();
  sessionLost(world);
  for (let tries = 1; tries <= 3; tries++) {
    throwInstead(world, id);
    world.later(4_999);
    expect(world.waitingLogs).toHaveLength(tries);
    world.later(1);
    expect(world.waitingLogs).toHaveLength(tries + 1);
  }
  // Each of them may still be answered: the first counts.
  for (const { closed } of world.waitingLogs) closed(7);
  world.settle();
  expect(world.events().slice(-2)).toEqual(END);
});

it('P5: a run that is quarantined while the loss of its attempt is made known does not wait for a runner that never returns', () => {
  const { world, id } = running();
  sessionLost(world);
  throwInstead(world, id);
  expect(world.events()).toContain('run_quarantined');
  world.later(5_000);
  expect(world.waitingLogs).toHaveLength(2);
  world.waitingLogs[1]?.closed(7);
  world.settle();
  expect(world.events().slice(-2)).toEqual(END);
});

it('P14: a stop whose end was lost is sent again', () => {
  const { world, id } = cancelled();
  world.stops[0]?.answer('gone');
  expect(world.waitingLogs).toHaveLength(1);
  throwInstead(world, id);
  world.later(5_000);
  expect(world.stops).toHaveLength(2);
  world.stops[1]?.answer('gone');
  world.waitingLogs[1]?.closed(7);
  world.settle();
  expect(world.events().slice(-2)).toEqual(END);
});

it('waits while what was decided about the run is not committed', () => {
  const { world, id } = running();
  sessionLost(world);
  world.partition.quarantine(id, new Error('thrown in a callback'));
  world.later(5_000);
  expect(world.waitingLogs).toHaveLength(1);
  expect(world.partition.nextWake()).not.toBe(world.boot);
  world.settle();
  world.later(5_000);
  expect(world.waitingLogs).toHaveLength(2);
});
