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

  it('answers what comes next in it, whatever lies between', () => {
    const set = new SequenceSet();
    for (const sequence of [2 ** 40, 3, 65_535, 9]) set.add(sequence);
    const met: number[] = [];
    for (let at = set.next(0); at !== null; at = set.next(at + 1)) met.push(at);
    expect(met).toEqual([3, 9, 65_535, 2 ** 40]);
    set.delete(9);
    expect([set.next(9), set.next(4)]).toEqual([65_535, 65_535]);
  });

  it('gives back what lies before a place, by whole blocks', () => {
    const set = new SequenceSet();
    for (const sequence of [7, 70_000, 70_001]) set.add(sequence);
    set.forgetBefore(70_001);
    expect([7, 70_000, 70_001].filter((sequence) => set.has(sequence))).toEqual([70_000, 70_001]);
  });

  it('forgets what came first rather than grow without end', () => {
    const set = new SequenceSet();
    for (let block = 0; block < 1_100; block++) set.add(block * 65_536 + 7);
    const known = Array.from({ length: 1_100 }, (_, block) => block).filter((block) => set.has(block * 65_536 + 7));
    expect([known.length, known[0], known.at(-1)]).toEqual([1_024, 76, 1_099]);
  });
});
