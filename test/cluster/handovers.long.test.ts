import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HANDOVER_POINTS } from './handover-points.ts';
import { startHandovers, type Handovers } from './handovers.ts';

let handovers: Handovers;

beforeAll(async () => {
  handovers = await startHandovers(2 * HANDOVER_POINTS.length);
}, 120_000);
afterAll(() => handovers.stop(), 60_000);

describe('kill -9 at any point of what a stage is given and leaves', { timeout: 300_000 }, () => {
  it.each(['runner', 'scheduler', 'broker'] as const)(
    'of the %s: each stage ends as its retry says, with what it left or nothing',
    async (victim) => {
      expect(await handovers.killAt(victim, HANDOVER_POINTS)).toBe(2 * HANDOVER_POINTS.length);
    },
  );

  it('leaves nothing in the object storage after the sweep', async () => {
    expect(await handovers.swept()).toEqual([]);
  });

  it('leaves the secret in no file (P31)', () => {
    expect(handovers.leaked()).toEqual([]);
  });
});
