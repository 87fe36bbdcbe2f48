import { expect, it } from 'vitest';
import { placesAfter } from '../src/named-places.ts';

it('plans that have grown from the same one know their own names alone, and that one neither', () => {
  const file = new Map([['a', 0]]);
  const first = placesAfter(file, () => ['a'], ['a/x']);
  const grown = placesAfter(first, () => ['a', 'a/x'], ['a/y']);
  const other = placesAfter(first, () => ['a', 'a/x'], ['a/z', 'a/w']);
  const placesIn = (places: { get(name: string): number | undefined }) =>
    ['a', 'a/x', 'a/y', 'a/z', 'a/w'].map((name) => places.get(name));
  expect([file, first, grown, other].map(placesIn)).toEqual([
    [0, undefined, undefined, undefined, undefined],
    [0, 1, undefined, undefined, undefined],
    [0, 1, 2, undefined, undefined],
    [0, 1, undefined, 2, 3],
  ]);
  expect([first.has('a/y'), grown.has('a/y'), grown.has('a/z')]).toEqual([false, true, false]);
});
