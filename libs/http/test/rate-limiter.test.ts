import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CLIENTS_MAX, RateLimiter, WINDOW_MS } from '../src/rate-limiter.ts';

const granted = (limiter: RateLimiter, client: string, budget: number, now: number): boolean =>
  limiter.ask(client, budget, now).granted;

describe('the budget of a minute', () => {
  it('RATELIMIT-1: of a burst the budget is granted and the next one refused, with what remains counted down', () => {
    const limiter = new RateLimiter();
    const remaining = Array.from({ length: 240 }, (_, index) => limiter.ask('a', 240, index).remaining);
    expect(remaining).toEqual(Array.from({ length: 240 }, (_, index) => 239 - index));
    expect(limiter.ask('a', 240, 240)).toMatchObject({ granted: false, remaining: 0 });
  });

  it('RATELIMIT-1: the 241st is refused also where the 240 are spread over the whole minute', () => {
    const limiter = new RateLimiter();
    for (let index = 0; index < 240; index++) expect(granted(limiter, 'a', 240, index * 248)).toBe(true);
    expect(granted(limiter, 'a', 240, WINDOW_MS - 400)).toBe(false);
  });

  it('RATELIMIT-1, RATELIMIT-2, RATELIMIT-3: whatever the times are, no 60 s hold more than the budget, and nobody waits two seconds longer than has to be', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.integer({ min: 0, max: 9_000 }), { minLength: 1, maxLength: 120 }),
        (budget, gaps) => {
          const limiter = new RateLimiter();
          const times: number[] = [];
          let now = 1_000;
          for (const gap of gaps) {
            now += gap;
            const within = times.filter((time) => time > now - WINDOW_MS).length;
            const withSlack = times.filter((time) => time > now - WINDOW_MS - 2_000).length;
            const isGranted = granted(limiter, 'a', budget, now);
            expect(isGranted && within >= budget).toBe(false);
            expect(isGranted || withSlack >= budget).toBe(true);
            if (isGranted) times.push(now);
          }
        },
      ),
    );
  });

  it('what is given back counts for nothing, and what else was granted as long as before', () => {
    const limiter = new RateLimiter();
    for (const now of [0, 100, 30_000, 30_100]) expect(granted(limiter, 'a', 4, now)).toBe(true);
    limiter.giveBack('a', 100);
    limiter.giveBack('nobody', 100);
    expect([granted(limiter, 'a', 4, 31_000), granted(limiter, 'a', 4, 31_000)]).toEqual([true, false]);
    // One of the first two is left, and leaves with their time.
    limiter.giveBack('a', 30_000);
    limiter.giveBack('a', 30_000);
    expect([0, 0, 0].map(() => granted(limiter, 'a', 4, 60_000))).toEqual([true, true, false]);
    expect(granted(limiter, 'a', 4, 60_100)).toBe(true);
    limiter.giveBack('a', 15_000);
    expect(granted(limiter, 'a', 4, 60_200)).toBe(false);
  });

  it('after Retry-After, which is 1 to 60 s, one is granted, though refused requests came in between', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 10, maxLength: 60 }),
        (budget, gaps) => {
          const limiter = new RateLimiter();
          let now = 0;
          for (const gap of gaps) {
            now += gap;
            const { granted: isGranted, retryAfterSecs } = limiter.ask('a', budget, now);
            if (isGranted) continue;
            expect(retryAfterSecs).toBeGreaterThanOrEqual(1);
            expect(retryAfterSecs).toBeLessThanOrEqual(60);
            expect(granted(limiter, 'a', budget, now)).toBe(false);
            now += retryAfterSecs * 1_000;
            expect(granted(limiter, 'a', budget, now)).toBe(true);
          }
        },
      ),
    );
  });

  it('clients do not share it', () => {
    const limiter = new RateLimiter();
    expect([granted(limiter, 'a', 1, 0), granted(limiter, 'a', 1, 0), granted(limiter, 'b', 1, 0)]).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('a budget that shrinks, because there are more gateways, counts what was granted before', () => {
    const limiter = new RateLimiter();
    for (let index = 0; index < 4; index++) limiter.ask('a', 4, index);
    expect(limiter.ask('a', 2, 10)).toEqual({ granted: false, remaining: 0, retryAfterSecs: 60 });
  });
});

describe('memory', () => {
  it('RATELIMIT-4: a million addresses leave at most 50,000, those heard of last among them', () => {
    const limiter = new RateLimiter();
    let most = 0;
    for (let index = 0; index < 1_000_000; index++) {
      limiter.ask(`client ${index}`, 240, 1_000);
      most = Math.max(most, limiter.size);
    }
    expect(most).toBe(CLIENTS_MAX);
    for (let index = 975_000; index < 1_000_000; index++)
      expect(limiter.ask(`client ${index}`, 240, 1_000).remaining).toBe(238);
    expect(limiter.ask('client 0', 240, 1_000).remaining).toBe(239);
  });

  it('RATELIMIT-4: a client that goes on asking, refused or not, is not forgotten for those that come', () => {
    const limiter = new RateLimiter(4);
    limiter.ask('a', 1, 0);
    for (let index = 1; index <= 100; index++) {
      expect(granted(limiter, 'a', 1, index)).toBe(false);
      limiter.ask(`other ${index}`, 1, index);
      expect(limiter.size).toBeLessThanOrEqual(4);
    }
  });

  it('RATELIMIT-4: clients that are idle for two minutes are forgotten', () => {
    const limiter = new RateLimiter();
    for (let index = 0; index < 1_000; index++) limiter.ask(`client ${index}`, 240, 0);
    limiter.ask('a', 240, WINDOW_MS);
    expect(limiter.size).toBe(1_001);
    limiter.ask('a', 240, 2 * WINDOW_MS);
    expect(limiter.size).toBe(1);
  });

  it('a client whose own minute has passed while it was the oldest begins anew', () => {
    const limiter = new RateLimiter();
    limiter.ask('a', 2, 0);
    limiter.ask('b', 2, 0);
    expect(limiter.ask('a', 2, WINDOW_MS).remaining).toBe(1);
    expect(limiter.ask('a', 2, WINDOW_MS).remaining).toBe(0);
    expect(granted(limiter, 'a', 2, WINDOW_MS)).toBe(false);
  });
});
