import { describe, expect, it } from 'vitest';
import { SequenceSet } from '../src/processing/sequence-set.ts';

describe('a set of sequences', () => {
  it('knows what was added and not removed, also at the borders of its blocks', () => {
    const set = new SequenceSet();
    const added = [1, 2, 65_535, 65_536, 131_072, 2 ** 40];
    for (const sequence of added) set.add(sequence);
    set.add(2);
    for (const sequence of [2, 65_536, 3, 2 ** 41]) set.delete(sequence);
    const asked = [0, 1, 2, 3, 65_535, 65_536, 65_537, 131_072, 2 ** 40, 2 ** 40 + 1];
    expect(asked.filter((sequence) => set.has(sequence))).toEqual([1, 65_535, 131_072, 2 ** 40]);
    set.clear();
    expect(asked.filter((sequence) => set.has(sequence))).toEqual([]);
  });

  it('forgets what came first rather than grow without end', () => {
    const set = new SequenceSet();
    for (let block = 0; block < 1_100; block++) set.add(block * 65_536 + 7);
    const known = Array.from({ length: 1_100 }, (_, block) => block).filter((block) => set.has(block * 65_536 + 7));
    expect([known.length, known[0], known.at(-1)]).toEqual([1_024, 76, 1_099]);
  });
});
