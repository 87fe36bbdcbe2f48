import { describe, expect, it } from 'vitest';
import { Offers } from '../src/dispatch/offers.ts';
import type { ReadyStages } from '../src/dispatch/ready-stage.ts';

function queuedAt(runId: string, at: number | undefined): ReadyStages {
  return { runId, since: () => at } as unknown as ReadyStages;
}

describe('what a partition offers (OFFERED-1)', () => {
  it('goes in the order in which it was queued where a take-over has it by run, and in its own order from then on', () => {
    const offered: (string | undefined)[] = [];
    const offers = new Offers({ offer: ({ runId }) => void offered.push(runId) });
    offers.add(queuedAt('first, its second stage', 30));
    offers.add(queuedAt('second', 20));
    offers.add(queuedAt('third', 30));
    offers.add(queuedAt('fourth', 10));
    expect(offered).toEqual([]);
    offers.open();
    offers.add(queuedAt('meanwhile', 5));
    offers.goOn();
    offers.add(queuedAt('later', 1));
    expect(offered).toEqual(['fourth', 'second', 'first, its second stage', 'third', 'meanwhile', 'later']);
  });

  it('is put in order as it comes, and not all at once when the partition opens', () => {
    let asked = 0;
    const offers = new Offers({ offer: () => undefined });
    const ready = { since: () => (asked += 1) } as unknown as ReadyStages;
    for (let each = 0; each < 3; each += 1) offers.add(ready);
    expect(asked).toBe(3);
    offers.open();
    expect(asked).toBe(3);
  });

  it.each([
    ['from before', 'before'],
    ['that waits behind those', 'meanwhile'],
  ])('OFFERED-2: one %s at which the dispatch throws is offered again', (_, faulty) => {
    const offered: (string | undefined)[] = [];
    let throwsYet = true;
    const offers = new Offers({
      offer: ({ runId }) => {
        if (throwsYet && runId === faulty) {
          throwsYet = false;
          throw new Error('a fault of the dispatch');
        }
        offered.push(runId);
      },
    });
    offers.add(queuedAt('before', 1));
    offers.open();
    offers.add(queuedAt('meanwhile', 2));
    offers.add(queuedAt('later', 3));
    expect(() => offers.goOn()).toThrow('a fault of the dispatch');
    expect(offers.isBusy).toBe(true);
    offers.goOn();
    expect(offered).toEqual(['before', 'meanwhile', 'later']);
  });
});
