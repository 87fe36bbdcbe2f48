import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startHandovers, type Handovers } from './handovers.ts';

// Two points of twelve, and one of three that are killed; `handovers.long.test.ts` has them all.
const POINTS = ['secret answered', 'list stored'] as const;
let handovers: Handovers;

beforeAll(async () => {
  handovers = await startHandovers(2 * POINTS.length);
}, 120_000);
afterAll(() => handovers.stop(), 60_000);

describe('kill -9 while a stage gets its secret, or what it leaves is stored', { timeout: 300_000 }, () => {
  it.each(['scheduler'] as const)(
    'of the %s: each stage ends as its retry says, with what it left or nothing',
    async (victim) => {
      expect(await handovers.killAt(victim, POINTS)).toBe(2 * POINTS.length);
    },
  );

  it('leaves nothing in the object storage after the sweep', async () => {
    expect(await handovers.swept()).toEqual([]);
  });

  it('leaves the secret in no file (P31)', () => {
    expect(handovers.leaked()).toEqual([]);
  });
});
