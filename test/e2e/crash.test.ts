import { describe, expect, it } from 'vitest';
import { crashOnce } from './crash.ts';

// One moment of the kill; `crash.long.test.ts` has more, and `npm run crash -- --seed N` replays one.
describe('kill -9 of serve and of everything it started, in the middle of a 20-stage run', () => {
  it('a stage that is killed a moment before its runner counts as lost with it, and is retried (seed 19)', async () => {
    expect(await crashOnce({ seed: 19, retry: true })).toMatchObject({ status: 'SUCCESS' });
  });
});
