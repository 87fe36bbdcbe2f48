/** A map in parts is a map: the same calls on both, in a random order. */
import { newRunId } from '@penstock/run';
import { expect, it } from 'vitest';
import { WideMap } from '../src/run/wide-map.ts';

const CALLS = 20_000;

it('answers as a map does, whatever is set and deleted', () => {
  const [wide, map] = [new WideMap<string, number>((key) => key), new Map<string, number>()];
  let state = 7;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let call = 0; call < CALLS; call++) {
    const key = 'x'.repeat(random(3)) + String(random(500));
    const isDeleted = random(3) === 0;
    const answers = [wide, map].map((each) => (isDeleted ? each.delete(key) : each.set(key, call) === each));
    expect(answers[0]).toBe(answers[1]);
    expect([wide.get(key), wide.has(key), wide.size]).toEqual([map.get(key), map.has(key), map.size]);
  }
  const sorted = [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const told: [string, number][] = [];
  wide.forEach((value, key) => void told.push([key, value]));
  for (const entries of [[...wide], told, [...wide.keys()].map((key) => [key, wide.get(key)] as const)])
    expect(entries.toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual(sorted);
  expect([...wide.values()].toSorted((a, b) => a - b)).toEqual([...map.values()].toSorted((a, b) => a - b));
  wide.clear();
  expect([wide.size, [...wide], wide.get('x')]).toEqual([0, [], undefined]);
});

it('spreads the ids of runs evenly', () => {
  const wide = new WideMap<string, number>((key) => key);
  const random = Buffer.alloc(10);
  for (let run = 0; run < 6_400; run++) {
    random.writeUInt32BE(Math.imul(run, 2_654_435_761) >>> 0, 4);
    wide.set(newRunId({ now: 1_800_000_000_000, key: 'k', random }), run);
  }
  expect(wide.size).toBe(6_400);
  expect(wide.largestPart).toBeLessThan(300);
});
