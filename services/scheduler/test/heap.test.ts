import { Heap } from '@penstock/scheduler/testing';
import { expect, it } from 'vitest';

it('gives the least first, also after others were taken out of its middle', () => {
  let state = 7;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let round = 0; round < 200; round += 1) {
    const heap = new Heap<{ readonly value: number; at: number }>(
      (a, b) => a.value < b.value,
      (item, at) => void (item.at = at),
    );
    const items = new Set(Array.from({ length: 40 }, () => ({ value: random(60), at: 0 })));
    for (const item of items) heap.push(item);
    for (const item of items) {
      if (random(3) > 0) continue;
      heap.delete(item.at);
      items.delete(item);
    }
    const given = Array.from({ length: heap.size }, () => heap.pop()?.value);
    expect(given).toEqual([...items].map(({ value }) => value).toSorted((a, b) => a - b));
  }
});
