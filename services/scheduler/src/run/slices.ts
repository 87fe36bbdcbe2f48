/** Work on very many things in slices: whoever drives the generator lets others have a turn after each step of it. */

/** So many small things are worked on in about a millisecond. */
const SLICE = 100;

/** `weightOf`: how many small things one is as much work as; default 1. */
export function* inSlices<T>(
  items: Iterable<T>,
  each: (item: T) => void,
  weightOf: (item: T) => number = () => 1,
): Generator<void, void> {
  let left = SLICE;
  for (const item of items) {
    each(item);
    left -= weightOf(item);
    if (left > 0) continue;
    left = SLICE;
    yield;
  }
}

/** Blocks are sorted, and then merged two by two. */
export function* sortedInSlices<T>(items: readonly T[], compare: (a: T, b: T) => number): Generator<void, T[]> {
  let blocks: T[][] = [];
  for (let from = 0; from < items.length; from += SLICE) {
    blocks.push(items.slice(from, from + SLICE).sort(compare));
    if (blocks.length % 10 === 0) yield;
  }
  while (blocks.length > 1) {
    const merged: T[][] = [];
    for (let index = 0; index < blocks.length; index += 2)
      merged.push(yield* mergedInSlices(blocks[index] ?? [], blocks[index + 1] ?? [], compare));
    blocks = merged;
  }
  return blocks[0] ?? [];
}

function* mergedInSlices<T>(a: readonly T[], b: readonly T[], compare: (a: T, b: T) => number): Generator<void, T[]> {
  const merged: T[] = [];
  let [inA, inB] = [0, 0];
  while (inA < a.length || inB < b.length) {
    const isFromA = inB >= b.length || (inA < a.length && compare(a[inA] as T, b[inB] as T) <= 0);
    merged.push((isFromA ? a[inA++] : b[inB++]) as T);
    if (merged.length % (10 * SLICE) === 0) yield;
  }
  return merged;
}
