import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { STRAIGHT_POINTS } from './handover-points.ts';
import { startHandovers, type Handovers } from './handovers.ts';

let handovers: Handovers;

beforeAll(async () => {
  handovers = await startHandovers(2 * STRAIGHT_POINTS.length, { straight: true });
}, 120_000);
afterAll(() => handovers.stop(), 60_000);

describe('kill -9 while what a stage leaves goes to its keeper past the broker', { timeout: 300_000 }, () => {
  it.each(['runner', 'scheduler', 'broker', 'registry'] as const)(
    'of the %s: each stage ends as its retry says, with what it left or nothing',
    async (victim) => {
      expect(await handovers.killAt(victim, STRAIGHT_POINTS)).toBe(2 * STRAIGHT_POINTS.length);
    },
  );

  it('leaves nothing in the object storage after the sweep', async () => {
    expect(await handovers.swept()).toEqual([]);
  });
});
