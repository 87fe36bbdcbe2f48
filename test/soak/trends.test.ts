import { describe, expect, it } from 'vitest';
import { trendOf } from './trends.ts';

const FLAT = { floor: 10, share: 0.1 };

describe('a trend', () => {
  it('is no growth where a figure goes up and down, or has one peak at the end', () => {
    expect(trendOf([100, 120, 90, 110, 95, 118, 102, 99], FLAT, 0).isGrowing).toBe(false);
    expect(trendOf([100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 900], FLAT, 0)).toMatchObject({
      first: 100,
      last: 100,
      isGrowing: false,
    });
  });

  it('is growth where it goes up by more than is allowed, from little as from much', () => {
    expect(trendOf([0, 4, 8, 11], FLAT, 0)).toMatchObject({ growth: 11, allowed: 10, isGrowing: true });
    expect(trendOf([1_000, 1_050, 1_080, 1_099], FLAT, 0)).toMatchObject({ allowed: 100, isGrowing: false });
    expect(trendOf([1_000, 1_050, 1_080, 1_101], FLAT, 0).isGrowing).toBe(true);
  });

  it('allows for each run what is kept of it for a while, and no more', () => {
    const kept = { ...FLAT, perRun: 5 };
    expect(trendOf([0, 50, 90, 110], kept, 20)).toMatchObject({ allowed: 110, isGrowing: false });
    expect(trendOf([0, 50, 90, 111], kept, 20).isGrowing).toBe(true);
  });

  it('is not to be had of three samples', () => {
    expect(() => trendOf([1, 2, 3], FLAT, 0)).toThrow(/3 samples/);
  });
});
