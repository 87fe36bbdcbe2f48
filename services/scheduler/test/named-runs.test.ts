/** Sessions that serve one run and no other (`penstock runner --once`), against the order in which others are served. */
import { Dispatch } from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';

interface Offered {
  readonly run: string;
  readonly key?: string;
  readonly count?: number;
  readonly labels?: readonly string[];
  readonly runner?: string;
}

class World {
  readonly dispatch = new Dispatch();
  readonly granted: string[] = [];
  #credit = 0;

  /** Stages of a run that wait, called `<run>0`, `<run>1`, … */
  offer({ run, key = 'k', count = 1, labels = [], runner }: Offered): { cancel(): void } {
    const waiting = new Set(Array.from({ length: count }, (_, index) => index));
    const { granted } = this;
    this.dispatch.offer({
      runId: run,
      key,
      priority: 0,
      labels,
      labelSet: labels.join(','),
      count,
      since: () => undefined,
      boundTo: () => runner,
      waits: (index) => waiting.has(index),
      grant: (index) => {
        granted.push(`${run}${index}`);
        return waiting.delete(index);
      },
      rest() {
        throw new Error('nothing here is bound later');
      },
    });
    return { cancel: () => waiting.clear() };
  }

  seen(runner: string, labels: readonly string[] = []): void {
    this.dispatch.sessionSeen({ runner, session: runner, labels, slots: 4, attempts: [] });
  }

  /** What it is granted for so many credits; `only`: the run that it names. */
  credits(runner: string, count: number, only?: string, key = 'k'): string[] {
    const from = this.granted.length;
    const credits = Array.from({ length: count }, () => (this.#credit += 1));
    this.dispatch.addCredits(0, {
      runner,
      session: runner,
      credits,
      ...(only === undefined ? {} : { only: { runId: only, key } }),
    });
    return this.match(from);
  }

  match(from = this.granted.length): string[] {
    this.dispatch.match(0);
    this.dispatch.assertInvariants();
    return this.granted.slice(from);
  }
}

describe('DISPATCH-7: a session that has named a run', () => {
  it('is granted all that waits of it, wherever it stands, and nothing else', () => {
    const world = new World();
    world.seen('r');
    for (const run of ['a', 'b', 'c']) world.offer({ run, count: 2 });
    world.offer({ run: 'd', key: 'other' });
    expect(world.credits('r', 4, 'b')).toEqual(['b0', 'b1']);
    expect(world.match()).toEqual([]);
  });

  it('is granted what of its run comes later, and others are served as if it were not there', () => {
    const world = new World();
    world.seen('once');
    world.seen('any');
    world.offer({ run: 'a' });
    expect(world.credits('once', 3, 'b')).toEqual([]);
    world.offer({ run: 'b', count: 3 });
    world.offer({ run: 'c' });
    expect(world.match()).toEqual(['b0', 'b1', 'b2']);
    expect(world.credits('any', 3)).toEqual(['a0', 'c0']);
  });

  it('names no second run, and is not free again by an offer that names none', () => {
    const world = new World();
    world.seen('r');
    world.credits('r', 1, 'a');
    for (const run of ['a', 'b']) world.offer({ run, count: 2 });
    expect(world.match()).toEqual(['a0']);
    expect(world.credits('r', 1, 'b')).toEqual(['a1']);
    expect(world.credits('r', 2)).toEqual([]);
  });

  it('is granted nothing of its run that needs other labels, or goes to another runner', () => {
    const world = new World();
    world.seen('r', ['linux']);
    world.offer({ run: 'a', labels: ['gpu'] });
    world.offer({ run: 'a', runner: 'elsewhere' });
    world.offer({ run: 'a', labels: ['linux'], runner: 'r' });
    expect(world.credits('r', 3, 'a')).toEqual(['a0']);
  });

  it('leaves to others what of its run it has not taken, once it is gone', () => {
    const world = new World();
    world.seen('once');
    world.seen('any');
    world.offer({ run: 'a', count: 3 });
    expect(world.credits('once', 1, 'a')).toEqual(['a0']);
    world.dispatch.sessionGone('once');
    expect(world.credits('any', 3)).toEqual(['a1', 'a2']);
  });

  it('leaves no demand behind for what it was granted from the middle of a line', () => {
    const world = new World();
    world.seen('r');
    world.offer({ run: 'a' });
    world.offer({ run: 'b', count: 2 });
    world.credits('r', 2, 'b');
    world.dispatch.forgetIdle(0);
    world.dispatch.assertInvariants();
    expect(
      world.dispatch
        .demand()
        .flat()
        .map(({ count }) => count),
    ).toEqual([1]);
  });

  it('lets go of what of its run was cancelled', () => {
    const world = new World();
    world.seen('r');
    const first = world.offer({ run: 'a', count: 2 });
    world.offer({ run: 'a' });
    first.cancel();
    expect(world.credits('r', 2, 'a')).toEqual(['a0']);
  });

  it('what was taken from a lane that the look of this round has passed is cleared up by the next', () => {
    const world = new World();
    world.seen('r');
    world.offer({ run: 'first' });
    for (let set = 0; set < 9_000; set += 1) world.offer({ run: `many${set}`, labels: [`l${set}`], key: 'other' });
    world.offer({ run: 'named' });
    world.dispatch.forgetIdle(0);
    expect(world.credits('r', 1, 'named')).toEqual(['named0']);
    expect(world.dispatch.waiting).toBe(9_002);
    for (let calls = 0; calls < 8; calls += 1) world.dispatch.forgetIdle(0);
    expect(world.dispatch.waiting).toBe(9_001);
    world.dispatch.assertInvariants();
  });
});
