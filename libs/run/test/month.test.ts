import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { monthEnd, monthOf, monthStart } from '@penstock/run';

describe('months', () => {
  it('months begin and end at midnight in UTC', () => {
    expect(monthOf(Date.parse('2026-11-30T23:59:59.999Z'))).toBe('2026-11');
    expect(monthOf(Date.parse('2026-12-01T00:00:00.000Z'))).toBe('2026-12');
    expect(new Date(monthStart('2026-12')).toISOString()).toBe('2026-12-01T00:00:00.000Z');
    expect(new Date(monthEnd('2026-12')).toISOString()).toBe('2027-01-01T00:00:00.000Z');
  });

  it('hold their times, in whatever order they are asked for', () => {
    const time = fc.integer({ min: 0, max: Date.parse('2100-01-01T00:00:00Z') });
    fc.assert(
      fc.property(fc.array(time, { minLength: 1 }), (times) => {
        for (const at of times) {
          const month = monthOf(at);
          expect(month).toBe(new Date(at).toISOString().slice(0, 7));
          expect(at >= monthStart(month) && at < monthEnd(month)).toBe(true);
        }
      }),
    );
  });
});
