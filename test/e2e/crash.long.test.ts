import { describe, expect, it } from 'vitest';
import { crashOnce } from './crash.ts';

const SEEDS = Array.from({ length: 25 }, (_, index) => index + 1);
/** Every fifth without retries, as in `npm run crash -- --seeds 200`. */
const hasRetries = (seed: number): boolean => seed % 5 !== 0;

describe('kill -9 of serve and of everything it started, in the middle of a 20-stage run', () => {
  it.each(SEEDS.filter(hasRetries))(
    'with retries on loss the run ends SUCCESS, nothing finished runs again, nothing overlaps (seed %i)',
    async (seed) => {
      expect(await crashOnce({ seed, retry: true })).toMatchObject({ status: 'SUCCESS' });
    },
  );

  it.each([9, ...SEEDS.filter((seed) => !hasRetries(seed))])(
    'without retries the stage that ran is FAILED and the run interrupted (seed %i)',
    async (seed) => {
      expect((await crashOnce({ seed, retry: false })).status).toMatch(/^(?:FAILED|SUCCESS)$/u);
    },
  );
});
