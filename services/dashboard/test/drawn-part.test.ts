import { describe, expect, it } from 'vitest';
import { rowsIn, WHOLE_MAX } from '../app/parts/drawn-part.ts';

const ROW = 34;
const seen = (top: number, height = 400) => ({ top, left: 0, width: 800, height });

describe('the part of a list that is drawn', () => {
  it('is all of a short one, wherever one has scrolled to', () => {
    expect(rowsIn(seen(5_000), WHOLE_MAX, ROW)).toEqual({ from: 0, to: WHOLE_MAX, above: 0, below: 0 });
  });

  it('has every row that is seen, and together with what is left out is as high as the whole, at every place', () => {
    const count = 2_000;
    for (const height of [0, 1, 400, 3_000])
      for (let top = 0; top <= count * ROW; top += 97) {
        const { from, to, above, below } = rowsIn(seen(top, height), count, ROW);
        expect(above + below + (to - from) * ROW).toBe(count * ROW);
        expect(above <= top && top + Math.min(height, count * ROW - top) <= above + (to - from) * ROW).toBe(true);
        expect(to - from).toBeLessThan(height / ROW + 45);
      }
  });

  it('is some of it where a list has become shorter than it was scrolled to', () => {
    const { from, to } = rowsIn(seen(1_000_000), 300, ROW);
    expect([from < to, to]).toEqual([true, 300]);
  });
});
