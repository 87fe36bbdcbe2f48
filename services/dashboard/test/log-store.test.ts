/** Lines by number, whatever their count; and which of them are in view. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineStore } from '../app/log/line-store.ts';
import { Window } from '../app/log/window.ts';

function storeOf(texts: readonly string[]): LineStore {
  const store = new LineStore();
  for (const [index, text] of texts.entries()) store.add(text, index % 2 === 0 ? 'stdout' : 'stderr', index);
  return store;
}

const found = (store: LineStore, needle: string): number[] => [...store.find(needle)].flat();

describe('the lines of a stage', () => {
  it('go, the oldest first, also where there are too few for a block: many stages of a little each are much', () => {
    const store = storeOf(['a', 'bc', 'def']);
    expect(store.dropOldest()).toBe(6);
    expect([store.chars, store.first, store.count, store.line(3)]).toEqual([0, 4, 3, null]);
    store.add('later', 'stdout', 9);
    expect([store.first, store.line(4)?.text]).toEqual([4, 'later']);
    expect([store.dropOldest(), store.dropOldest()]).toEqual([5, 0]);
  });

  it('are found by number and by text, across blocks', () => {
    const texts = Array.from({ length: 3_456 }, (_, index) => `line ${index + 1}`);
    const store = storeOf(texts);
    expect(store.count).toBe(3_456);
    for (const number of [1, 999, 1_000, 1_001, 2_000, 3_456])
      expect(store.line(number)).toEqual({
        number,
        text: `line ${number}`,
        stream: number % 2 === 1 ? 'stdout' : 'stderr',
        at: number - 1,
      });
    expect([store.line(0), store.line(3_457)]).toEqual([null, null]);
    expect(found(store, 'line 34')).toEqual([34, ...range(340, 349), ...range(3_400, 3_456)]);
    expect(found(store, 'nothing')).toEqual([]);
  });

  it('are found whatever they are made of, also where lower case is longer, and never across two of them', () => {
    const text = fc.stringMatching(/^[abİß ]{0,4}$/u);
    fc.assert(
      fc.property(fc.array(text, { maxLength: 2_300 }), text, (texts, needle) => {
        const wanted = needle.toLowerCase();
        fc.pre(wanted !== '');
        const expected = texts.flatMap((each, index) => (each.toLowerCase().includes(wanted) ? [index + 1] : []));
        expect(found(storeOf(texts), wanted)).toEqual(expected);
      }),
      { numRuns: 50 },
    );
  });

  it('keep their numbers when the oldest are let go', () => {
    const store = storeOf(Array.from({ length: 2_500 }, (_, index) => `${index + 1}`));
    const before = store.chars;
    expect(store.dropOldest()).toBeGreaterThan(0);
    expect(store.chars).toBeLessThan(before);
    expect([store.first, store.line(1_000), store.line(1_001)?.text]).toEqual([1_001, null, '1001']);
    store.dropOldest();
    expect([store.dropOldest(), store.first]).toEqual([2_000, 2_501]);
  });
});

describe('the rows in view', () => {
  it('are those at the place that is scrolled to, first and last ones included, however many there are', () => {
    for (const count of [1, 30, 5_000, 1_000_000, 20_000_000]) {
      const view = new Window(count, 20, 400);
      expect(view.range(0, 0).first).toBe(1);
      expect(view.range(view.height, 0).last).toBe(count);
      for (const number of [1, Math.ceil(count / 3), count]) {
        const { first, last } = view.range(view.scrollOf(number), 0);
        expect(first).toBeLessThanOrEqual(number);
        expect(last).toBeGreaterThanOrEqual(number);
        expect(last - first).toBeLessThan(25);
      }
      expect(view.height).toBeLessThanOrEqual(8_000_000);
    }
    expect(new Window(0, 20, 400).range(0, 20)).toMatchObject({ last: 0 });
  });
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
