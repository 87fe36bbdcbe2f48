import { describe, expect, it } from 'vitest';
import { crashOnce } from './crash.ts';

// Ten moments of the kill; `npm run crash -- --seeds 200` tries more, and replays one with `--seed N`.
describe('kill -9 of serve and of everything it started, in the middle of a 20-stage run', () => {
  for (let seed = 1; seed <= 8; seed++) {
    it(`with retries on loss the run ends SUCCESS, nothing finished runs again, nothing overlaps (seed ${seed})`, async () => {
      expect(await crashOnce({ seed, retry: true })).toMatchObject({ status: 'SUCCESS' });
    });
  }
  it('a stage that is killed a moment before its runner counts as lost with it, and is retried (seed 19)', async () => {
    expect(await crashOnce({ seed: 19, retry: true })).toMatchObject({ status: 'SUCCESS' });
  });

  for (let seed = 9; seed <= 10; seed++) {
    it(`without retries the stage that ran is FAILED and the run interrupted (seed ${seed})`, async () => {
      expect((await crashOnce({ seed, retry: false })).status).toMatch(/^(?:FAILED|SUCCESS)$/u);
    });
  }
});
