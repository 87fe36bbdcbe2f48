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
});
