/** P13, P16: attempts whose session is over, and whose runner has their result in a later session. */
import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

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
