import { describe, expect, it } from 'vitest';
import { CREDIT_SPENT_WITHIN_MS } from '@penstock/bus';
import { Dispatch, type Credit, type ReadyStages } from '@penstock/scheduler/testing';

/** Stages that are granted once, in an order that is kept. */
class Queue {
  readonly dispatch: Dispatch;
  readonly granted: string[] = [];
  readonly credits: Credit[] = [];
  readonly #waiting = new Set<string>();
  now = 0;

  constructor(weightOf?: (key: string) => number, keySlots?: number) {
    this.dispatch = new Dispatch({ weightOf, keySlots });
  }

  offer(
    stage: string,
    more: Partial<Pick<ReadyStages, 'key' | 'priority' | 'labels' | 'least' | 'boundTo'>> = {},
  ): void {
    const { key = 'k', priority = 0, labels = [], least, boundTo = () => undefined } = more;
    this.#waiting.add(stage);
    this.dispatch.offer({
      key,
      priority,
      labels,
      labelSet: labels.join(',') + JSON.stringify(least ?? ''),
      least,
      count: 1,
      since: () => undefined,
      boundTo,
      waits: () => this.#waiting.has(stage),
      grant: (_, credit) => {
        this.granted.push(stage);
        this.credits.push(credit);
        return this.#waiting.delete(stage);
      },
      rest() {
        return this;
      },
    });
  }

  cancel(stage: string): void {
    this.#waiting.delete(stage);
  }

  lease(session: string, runner = session, labels: readonly string[] = []): void {
    this.dispatch.sessionSeen({ runner, session, labels, slots: 1, attempts: [] });
  }

  credit(session: string, ...credits: number[]): string[] {
    const before = this.granted.length;
    this.dispatch.addCredits(this.now, { runner: session, session, credits });
    this.dispatch.match(this.now);
    return this.granted.slice(before);
  }
}

describe('the order (DISPATCH-1)', () => {
  it('first come, first served within a key; higher priority first', () => {
    const queue = new Queue();
    queue.lease('r');
    queue.offer('a');
    queue.offer('b');
    queue.offer('urgent', { priority: 1, key: 'other' });
    expect(queue.credit('r', 1, 2, 3)).toEqual(['urgent', 'a', 'b']);
  });

  it('keys take turns, whatever they have waiting', () => {
    const queue = new Queue();
    queue.lease('r');
    for (let index = 0; index < 4; index++) queue.offer(`big${index}`, { key: 'big' });
    queue.offer('small0', { key: 'small' });
    queue.offer('small1', { key: 'small' });
    expect(queue.credit('r', 1, 2, 3, 4, 5, 6)).toEqual(['big0', 'small0', 'big1', 'small1', 'big2', 'big3']);
  });

  it('turns are by weight', () => {
    const queue = new Queue((key) => (key === 'heavy' ? 3 : 1));
    queue.lease('r');
    for (let index = 0; index < 40; index++) {
      queue.offer(`h${index}`, { key: 'heavy' });
      queue.offer(`l${index}`, { key: 'light' });
    }
    const granted = queue.credit('r', ...Array.from({ length: 40 }, (_, index) => index + 1));
    expect(granted.filter((stage) => stage.startsWith('h'))).toHaveLength(30);
  });

  it("a key with 2,000 waiting stages delays another key's single stage by at most one slot's turnover", () => {
    const queue = new Queue();
    queue.lease('r');
    for (let index = 0; index < 2_000; index++) queue.offer(`big${index}`, { key: 'big' });
    let credit = 0;
    for (let round = 0; round < 500; round++) queue.credit('r', ++credit);
    queue.offer('single', { key: 'small' });
    const next = [...queue.credit('r', ++credit), ...queue.credit('r', ++credit)];
    expect(next).toContain('single');
  });

  it('a key that was idle has saved nothing up', () => {
    const queue = new Queue();
    queue.lease('r');
    queue.offer('early', { key: 'idle' });
    queue.credit('r', 1);
    for (let index = 0; index < 100; index++) queue.offer(`busy${index}`, { key: 'busy' });
    for (let credit = 2; credit < 52; credit++) queue.credit('r', credit);
    for (let index = 0; index < 10; index++) queue.offer(`late${index}`, { key: 'idle' });
    const granted = queue.credit('r', ...Array.from({ length: 10 }, (_, index) => 100 + index));
    expect(granted.filter((stage) => stage.startsWith('late')).length).toBeLessThanOrEqual(6);
  });
});

describe('who can take a stage (DISPATCH-2)', () => {
  it('a session can that has all of its labels', () => {
    const queue = new Queue();
    queue.lease('small', 'small', ['linux']);
    queue.lease('big', 'big', ['linux', 'gpu']);
    queue.offer('train', { labels: ['gpu', 'linux'] });
    expect(queue.credit('small', 1)).toEqual([]);
    expect(queue.credit('big', 1)).toEqual(['train']);
  });

  it('the runner that holds its workspace, also when it was bound after it was queued', () => {
    const queue = new Queue();
    queue.lease('r1');
    queue.lease('r2');
    const holder: { runner?: string } = {};
    queue.offer('b', { boundTo: () => holder.runner });
    holder.runner = 'r1';
    expect(queue.credit('r2', 1)).toEqual([]);
    expect(queue.credit('r1', 1)).toEqual(['b']);
  });
});

describe('credits (DISPATCH-3, P11)', () => {
  it("are not spent before their session's lease is known, nor after it is over", () => {
    const queue = new Queue();
    queue.offer('a');
    expect(queue.credit('r', 1)).toEqual([]);
    queue.lease('r');
    queue.dispatch.match(queue.now);
    expect(queue.granted).toEqual(['a']);
    queue.offer('b');
    queue.dispatch.sessionGone('r');
    expect(queue.credit('r', 2)).toEqual([]);
  });

  it('of a session that is over before the next match are not spent either', () => {
    const queue = new Queue();
    queue.lease('r');
    queue.dispatch.addCredits(queue.now, { runner: 'r', session: 'r', credits: [1] });
    queue.offer('a');
    queue.dispatch.sessionGone('r');
    queue.dispatch.match(queue.now);
    expect(queue.granted).toEqual([]);
    queue.lease('other');
    expect(queue.credit('other', 1)).toEqual(['a']);
  });

  it('of a session that is over while it had found nothing are not spent either', () => {
    const queue = new Queue();
    queue.lease('r');
    expect(queue.credit('r', 1)).toEqual([]);
    queue.dispatch.sessionGone('r');
    queue.offer('a');
    queue.dispatch.match(queue.now);
    expect(queue.granted).toEqual([]);
  });

  it('are over after their time', () => {
    const queue = new Queue();
    queue.lease('r');
    queue.credit('r', 1);
    queue.now = CREDIT_SPENT_WITHIN_MS;
    queue.offer('a');
    queue.dispatch.match(queue.now);
    expect(queue.granted).toEqual([]);
  });

  it('take one grant each, however often they are offered', () => {
    const queue = new Queue();
    queue.lease('r');
    queue.offer('a');
    queue.offer('b');
    expect(queue.credit('r', 1)).toEqual(['a']);
    expect(queue.credit('r', 1)).toEqual([]);
    expect(queue.credit('r', 2)).toEqual(['b']);
  });

  it('that are withdrawn are answered, once, and open no more', () => {
    const queue = new Queue();
    queue.lease('r');
    queue.credit('r', 1, 2);
    expect(queue.dispatch.withdraw('r', [1, 7])).toEqual([1]);
    expect(queue.dispatch.withdraw('r', [1])).toEqual([]);
    queue.offer('a');
    queue.offer('b');
    expect(queue.credit('r', 1)).toEqual(['a']);
    expect(queue.credits).toMatchObject([{ credit: 2 }]);
  });
});

describe('what a stage asks for (DISPATCH-2)', () => {
  it('goes to a runner that has as much, and waits for one where none has', () => {
    const queue = new Queue();
    const lease = (runner: string, memoryBytes: number): void =>
      queue.dispatch.sessionSeen({
        runner,
        session: runner,
        labels: [],
        slots: 1,
        capacity: { cpu: 4, memoryBytes },
        attempts: [],
      });
    lease('small', 100);
    queue.offer('large', { least: { memoryBytes: 200 } });
    queue.offer('wide', { least: { cpu: 8 } });
    expect(queue.credit('small', 1)).toEqual([]);
    expect(queue.dispatch.unserved().toArray()).toEqual([
      { labels: [], least: { memoryBytes: 200 }, count: 1 },
      { labels: [], least: { cpu: 8 }, count: 1 },
    ]);
    expect(queue.dispatch.demand().flat()).toContainEqual({ labels: [], least: { cpu: 8 }, count: 1, below: 1 });
    lease('big', 300);
    expect(queue.dispatch.unserved().toArray()).toEqual([{ labels: [], least: { cpu: 8 }, count: 1 }]);
    expect(queue.credit('big', 1)).toEqual(['large']);
    // It has got more: a machine that was changed.
    lease('small', 500);
    queue.offer('larger', { least: { memoryBytes: 400 } });
    expect(queue.credit('small', 2)).toEqual(['larger']);
  });

  it('of a runner that does not say what it has is taken to be there', () => {
    const queue = new Queue();
    queue.lease('r');
    queue.offer('large', { least: { memoryBytes: 2 ** 50 } });
    expect(queue.credit('r', 1)).toEqual(['large']);
  });
});

describe('the share of a key while others wait (DISPATCH-5)', () => {
  it('follows the slots that a runner has from now on', () => {
    const queue = new Queue();
    const lease = { runner: 'r', session: 'r', labels: [], attempts: [] };
    queue.dispatch.sessionSeen({ ...lease, slots: 2 });
    queue.dispatch.waitsElsewhere('another', [[]], queue.now);
    queue.dispatch.keySlots.add('big', 'r', 1);
    queue.offer('second', { key: 'big' });
    expect(queue.credit('r', 1)).toEqual([]);
    queue.dispatch.sessionSeen({ ...lease, slots: 8 });
    queue.dispatch.match(queue.now);
    expect(queue.granted).toEqual(['second']);
  });

  it('is free again when its partition is forgotten, whatever it had', () => {
    const queue = new Queue();
    queue.dispatch.sessionSeen({ runner: 'r', session: 'r', labels: [], slots: 2, attempts: [] });
    queue.dispatch.waitsElsewhere('another', [[]], queue.now);
    const partition = { isGone: false };
    for (const [runner, attempts] of [
      ['r', 3],
      ['gone', 2],
    ] as const)
      queue.dispatch.keySlots.add('big', runner, attempts, partition);
    queue.offer('next', { key: 'big' });
    expect(queue.credit('r', 1)).toEqual([]);
    queue.dispatch.keySlots.gone(partition);
    queue.dispatch.match(queue.now);
    expect([queue.granted, queue.dispatch.keySlots.total]).toEqual([['next'], 0]);
  });

  it('is counted anew where its partition comes back, and what was before leaves memory some keys a second', () => {
    const { keySlots } = new Queue().dispatch;
    const [before, after] = [{ isGone: false }, { isGone: false }];
    for (let key = 0; key < 5_000; key++) keySlots.add(`k${key}`, 'r', 2, before);
    keySlots.gone(before);
    keySlots.add('k0', 'r', 1, after);
    expect([keySlots.total, keySlots.size, keySlots.has('k0'), keySlots.has('k1')]).toEqual([1, 5_000, true, false]);
    keySlots.forgetGone();
    expect(keySlots.size).toBeGreaterThan(1);
    for (let second = 0; second < 5; second++) keySlots.forgetGone();
    expect([keySlots.total, keySlots.size]).toEqual([1, 1]);
  });
});

describe('what is kept', () => {
  it('demand counts what waits, per set of labels', () => {
    const queue = new Queue();
    queue.offer('a');
    queue.offer('b', { labels: ['gpu'] });
    queue.offer('c', { labels: ['gpu'] });
    expect(queue.dispatch.demand().flat()).toEqual([
      { labels: [], count: 1, below: 1 },
      { labels: ['gpu'], count: 2, below: 2 },
    ]);
  });

  it('stages that wait no more leave queues that nobody looks at', () => {
    const queue = new Queue();
    queue.offer('a', { boundTo: () => 'dead', key: 'x' });
    queue.offer('b', { boundTo: () => 'dead', key: 'y', priority: 3 });
    queue.cancel('a');
    queue.cancel('b');
    expect(queue.dispatch.waiting).toBe(2);
    queue.dispatch.forgetIdle(0);
    expect(queue.dispatch.waiting).toBe(0);
    expect(queue.dispatch.demand().flat()).toEqual([]);
  });
});

describe('a runner that has begun anew', () => {
  it('P12: is granted nothing for what its earlier session offered, whose lease lives on for a while', () => {
    const queue = new Queue();
    queue.lease('before', 'r1');
    queue.dispatch.addCredits(0, { runner: 'r1', session: 'before', credits: [1, 2] });
    queue.lease('now', 'r1');
    queue.lease('before', 'r1');
    queue.offer('a');
    queue.dispatch.match(0);
    expect(queue.granted).toEqual([]);
    queue.dispatch.addCredits(0, { runner: 'r1', session: 'now', credits: [1] });
    queue.dispatch.match(0);
    expect(queue.credits).toEqual([{ runner: 'r1', session: 'now', credit: 1 }]);
  });
});
