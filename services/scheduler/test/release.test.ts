import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

const one = text([stage('a')]);

describe('a partition that is handed back (P3)', () => {
  it('takes no request from the moment at which it is to be released: its next commit is `released`', () => {
    const world = new Harness();
    world.session('r1-s', { credits: 2 });
    const { id } = world.create(one);
    world.settle();
    let released = 0;
    world.partition.release(() => (released += 1));
    expect(released).toBe(1);
    const commits = world.appended.length;
    const { replies } = world.create(one);
    world.partition.cancel({ runId: id, tenants: ['ada'] }, (reply) => void replies.push(reply as never));
    const result = world.result(world.job(0));
    world.settle();
    expect([...replies, ...result.replies]).toEqual([]);
    expect(world.appended).toHaveLength(commits);
  });

  it('is released once what was decided before is stored, and grants nothing meanwhile', () => {
    const world = new Harness();
    const { replies } = world.create(one);
    let released = 0;
    world.partition.release(() => (released += 1));
    world.session('r1-s', { credits: 1 });
    expect(released).toBe(0);
    world.settle();
    expect(released).toBeGreaterThan(0);
    expect(replies).toMatchObject([{ ok: true }]);
    expect(world.jobs).toEqual([]);
  });
});
