import { describe, expect, it } from 'vitest';
import { PushRate } from '../src/intake/push-rate.ts';

describe('the rate of pushes', () => {
  function rateAt(perSecond: number, seconds: number) {
    let now = 0;
    const rate = new PushRate(() => now);
    for (let count = 0; count < perSecond * seconds; count++) {
      now += 1000 / perSecond;
      rate.came();
    }
    return { rate, pass: (ms: number) => (now += ms) };
  }

  it('is high while hundreds come a second, and no more a quarter of a second after the last', () => {
    const { rate, pass } = rateAt(1_000, 2);
    expect(rate.isBusy).toBe(true);
    pass(100);
    expect(rate.isBusy).toBe(true);
    pass(150);
    expect(rate.isBusy).toBe(false);
  });

  it('is not for what comes at a usual pace', () => {
    expect(rateAt(50, 3).rate.isBusy).toBe(false);
  });
});
