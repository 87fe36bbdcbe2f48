/** Work on very many things in slices: what is bounded is how much is done in one of them. */
import { describe, expect, it } from 'vitest';
import { mappedInSlices, sortedInSlices } from '../src/run/slices.ts';

const COUNT = 20_000;
const SLICE_MAX = 2_000;
const numbers = Array.from({ length: COUNT }, (_, index) => (index * 7_919) % COUNT);

/** What the generator answers, and the most calls of `count` between two of its slices. */
function driven<T>(generator: Generator<void, T>, count: () => number): { readonly answer: T; readonly most: number } {
  for (let [most, before] = [0, count()]; ;) {
    const { done, value } = generator.next();
    const now = count();
    most = Math.max(most, now - before);
    before = now;
    if (done === true) return { answer: value, most };
  }
}

describe('very many things in slices', () => {
  it('are sorted with few comparisons in each, those of small merges included', () => {
    let compared = 0;
    const compare = (a: number, b: number): number => {
      compared += 1;
      return a - b;
    };
    const { answer, most } = driven(sortedInSlices(numbers, compare), () => compared);
    expect(answer).toEqual(Array.from({ length: COUNT }, (_, index) => index));
    expect(most).toBeLessThan(SLICE_MAX);
  });

  it('are mapped in their order, few in each', () => {
    let mapped = 0;
    const double = (value: number): number => {
      mapped += 1;
      return 2 * value;
    };
    const { answer, most } = driven(mappedInSlices(numbers, double), () => mapped);
    expect(answer).toEqual(numbers.map((value) => 2 * value));
    expect(most).toBeLessThan(SLICE_MAX);
  });
});
