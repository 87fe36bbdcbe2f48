/** The look for what is over: some queues at a time, and each within a bounded number of calls. */
import { describe, expect, it } from 'vitest';
import { IdleWalk } from '../src/dispatch/idle-walk.ts';
import { ReadyClass } from '../src/dispatch/ready-class.ts';
import type { ReadyStages } from '../src/dispatch/ready-stage.ts';

function withKeys(count: number): ReadyClass {
  const ready = new ReadyClass('class', { labels: ['os=linux'], labelSet: 'os=linux' }, undefined);
  for (let key = 0; key < count; key += 1) ready.newLane(over(`k${key}`), 0);
  return ready;
}

function over(key: string): ReadyStages {
  const stages: ReadyStages = {
    key,
    tenant: undefined,
    priority: 0,
    labels: ['os=linux'],
    labelSet: 'os=linux',
    count: 1,
    since: () => undefined,
    boundTo: () => undefined,
    waits: () => false,
    grant: () => false,
    rest: () => stages,
  };
  return stages;
}

/** Of a whole walk. */
function callsOf(walk: IdleWalk): { readonly calls: number; readonly lanes: number } {
  let [calls, lanes, ended] = [0, 0, false];
  while (!ended) {
    walk.take(
      () => (lanes += 1),
      () => (ended = true),
    );
    calls += 1;
  }
  // The call that finds its end begins none.
  walk.take(
    () => {},
    () => {},
  );
  return { calls, lanes };
}

describe('the look for queues that are over', () => {
  it('comes by each queue within some thirty calls, also where one class has very many keys', () => {
    const walk = new IdleWalk(new Map([['class', withKeys(200_000)]]));
    callsOf(walk);
    const { calls, lanes } = callsOf(walk);
    expect(lanes).toBeGreaterThan(150_000);
    expect(calls).toBeLessThanOrEqual(31);
  });

  it('looks at few of them in a call', () => {
    const walk = new IdleWalk(new Map([['class', withKeys(20_000)]]));
    let looked = 0;
    walk.take(
      () => (looked += 1),
      () => {},
    );
    expect(looked).toBe(5_000);
  });
});
