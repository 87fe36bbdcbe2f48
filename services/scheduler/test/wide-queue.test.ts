/** A queue in parts is a set: the same calls on both, in a random order. */
import { expect, it } from 'vitest';
import { WideQueue } from '../src/run/wide-queue.ts';

const CALLS = 20_000;

it('keeps the order of a set, whatever is added, deleted and taken from its front', () => {
  const [wide, set] = [new WideQueue<string>((item) => item), new Set<string>()];
  let state = 7;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let call = 0; call < CALLS; call++) {
    const item = String(random(100));
    const kind = random(5);
    const places = random(100);
    const [got, wanted] = [wide, set].map((each) => {
      const taken = kind === 4 ? takeFrom(each, places) : [];
      if (kind < 3) each.add(item);
      else if (kind === 3) each.delete(item);
      return { taken, size: each.size, has: each.has(item), all: call % 100 === 0 ? [...each] : [] };
    });
    expect(got).toEqual(wanted);
  }
  wide.clear();
  expect([...wide, wide.size, wide.has('1')]).toEqual([0, false]);
  wide.add('1');
  expect([...wide]).toEqual(['1']);
});

/** As the backlog does: what is at hand leaves. */
function takeFrom(
  items: Pick<Set<string>, 'size'> & Iterable<string> & { delete(item: string): unknown },
  count: number,
): string[] {
  const taken: string[] = [];
  for (const item of items) {
    if (taken.length === count) break;
    items.delete(item);
    taken.push(item);
  }
  return taken;
}
