/** Work on very many things in slices: whoever drives the generator lets others have a turn after each step of it. */

/** So many small things are worked on in about a millisecond. */
const SLICE = 100;
/** A comparison looks up two of very many things, which takes a microsecond or two. */
const MERGED_AT_ONCE = 5 * SLICE;

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

/** As `map`. */
export function* mappedInSlices<T, U>(items: readonly T[], each: (item: T) => U): Generator<void, U[]> {
  const mapped: U[] = [];
  yield* inSlices(items, (item) => void mapped.push(each(item)));
  return mapped;
}

/** Blocks are sorted, and then merged two by two. */
export function* sortedInSlices<T>(items: readonly T[], compare: (a: T, b: T) => number): Generator<void, T[]> {
  let blocks: T[][] = [];
  for (let from = 0; from < items.length; from += SLICE) {
    blocks.push(items.slice(from, from + SLICE).sort(compare));
    yield;
  }
  const slice = { left: MERGED_AT_ONCE };
  while (blocks.length > 1) {
    const merged: T[][] = [];
    for (let index = 0; index < blocks.length; index += 2)
      merged.push(yield* mergedInSlices([blocks[index] ?? [], blocks[index + 1] ?? []], compare, slice));
    blocks = merged;
  }
  return blocks[0] ?? [];
}

/** `slice`: what is left of the present one, which a merge of few hands on to the next merge. */
function* mergedInSlices<T>(
  [a, b]: readonly [readonly T[], readonly T[]],
  compare: (a: T, b: T) => number,
  slice: { left: number },
): Generator<void, T[]> {
  const merged: T[] = [];
  let [inA, inB] = [0, 0];
  while (inA < a.length || inB < b.length) {
    const isFromA = inB >= b.length || (inA < a.length && compare(a[inA] as T, b[inB] as T) <= 0);
    merged.push((isFromA ? a[inA++] : b[inB++]) as T);
    slice.left -= 1;
    if (slice.left > 0) continue;
    slice.left = MERGED_AT_ONCE;
    yield;
  }
  return merged;
}
