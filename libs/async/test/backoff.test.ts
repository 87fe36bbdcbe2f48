import { describe, expect, it } from 'vitest';
import { backoffMs, withoutJitter } from '../src/index.ts';

describe('the backoff', () => {
  it('doubles with every failure and ends at its bound', () => {
    const waits = [1, 2, 3, 4, 5, 6].map((failures) =>
      backoffMs(failures, { firstMs: 100, maxMs: 1_000, random: withoutJitter }),
    );
    expect(waits).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  it('takes the upper half of the wait from the random number', () => {
    const waits = [0, 0.5, 0.999].map((share) => backoffMs(3, { firstMs: 100, maxMs: 1_000, random: () => share }));
    expect(waits).toEqual([200, 300, expect.closeTo(400, 0)]);
  });

  it('stays at its bound after more failures than a number can double', () => {
    expect(backoffMs(100_000, { firstMs: 25, maxMs: 5_000, random: withoutJitter })).toBe(5_000);
  });

  it('is random where no random number is given, and never outside the half', () => {
    const waits = Array.from({ length: 200 }, () => backoffMs(1, { firstMs: 100, maxMs: 1_000 }));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(50);
    expect(Math.max(...waits)).toBeLessThan(100);
    expect(new Set(waits).size).toBeGreaterThan(1);
  });
});
