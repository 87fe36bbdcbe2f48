import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

describe('fairness over keys', () => {
  it("one key with 2,000 queued stages delays another key's single stage by at most one slot's turnover", () => {
    const world = new Harness();
    world.session('r1-s', { credits: 1 });
    world.create(text(Array.from({ length: 2_000 }, (_, index) => stage(`s${index}`))), { key: 'big' });
    world.settle();
    let credit = 1;
    /** The running stage ends, and its slot is free again. */
    const turnOver = (): string => {
      world.result(world.job(world.jobs.length - 1), 'success', { scheduler: 'me', credit: ++credit });
      world.settle();
      return world.job(world.jobs.length - 1).key;
    };
    for (let turn = 0; turn < 20; turn++) expect(turnOver()).toBe('big');
    world.create(text([stage('single')]), { key: 'small' });
    world.settle();
    expect([turnOver(), turnOver()]).toContain('small');
  });

  it('a run of higher priority goes before what has waited for longer, of its own key and of others', () => {
    const world = new Harness();
    world.create(text([stage('first')]));
    world.create(text([stage('second')]), { key: 'other' });
    const urgent = world.create(text([stage('third')]), { priority: 5 });
    world.settle();
    world.session('r1-s', { credits: 1 });
    world.settle();
    expect(world.job(0).runId).toBe(urgent.id);
  });
});
