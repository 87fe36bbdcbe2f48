import { describe, expect, it } from 'vitest';
import { Lanes } from '../src/processing/lanes.ts';

/** Work that ends when the test says so. */
function controlled(concurrency: number) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<void>>();
  const lanes = new Lanes<string>({
    concurrency,
    groupOf: (name) => name.split('.')[1] ?? name,
    work: (piece) => {
      begun.push(piece);
      const end = Promise.withResolvers<void>();
      ends.set(piece, end);
      return end.promise;
    },
    failed: () => {},
  });
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    lanes,
    begun,
    end: async (piece: string) => (ends.get(piece)?.resolve(), await settled()),
    fail: async (piece: string) => (ends.get(piece)?.reject(new Error('no')), await settled()),
  };
}

describe('lanes', () => {
  it('take turns: one with many delays another by one piece', async () => {
    const { lanes, begun, end } = controlled(1);
    for (const piece of ['a1', 'a2', 'a3', 'a4']) lanes.add('a', piece);
    lanes.add('b', 'b1');
    await end('a1');
    await end('b1');
    await end('a2');
    expect(begun).toEqual(['a1', 'b1', 'a2', 'a3']);
  });

  it('LANE-1: one host that does not answer leaves half of the places to others', async () => {
    const { lanes, begun, end } = controlled(4);
    for (const lane of ['a.slow', 'b.slow', 'c.slow', 'd.fine', 'e.fine', 'f.fine']) lanes.add(lane, lane);
    expect(begun).toEqual(['a.slow', 'b.slow', 'd.fine', 'e.fine']);
    await end('d.fine');
    expect(begun.at(-1)).toBe('f.fine');
    await end('e.fine');
    expect(begun).toHaveLength(5);
    await end('b.slow');
    expect(begun.at(-1)).toBe('c.slow');
  });

  it('LANE-1: no more at a time than may be, and of a lane one, in order', async () => {
    const { lanes, begun, end } = controlled(2);
    for (const piece of ['a1', 'a2']) lanes.add('a', piece);
    for (const lane of ['b', 'c']) lanes.add(lane, `${lane}1`);
    expect(begun).toEqual(['a1', 'b1']);
    await end('b1');
    await end('a1');
    expect(begun).toEqual(['a1', 'b1', 'c1', 'a2']);
  });

  it('LANE-2: what fails is done again before what follows it, and holds nobody else up', async () => {
    const { lanes, begun, end, fail } = controlled(1);
    for (const piece of ['a1', 'a2']) lanes.add('a', piece);
    lanes.add('b', 'b1');
    await fail('a1');
    expect(begun).toEqual(['a1', 'b1']);
    await end('b1');
    await expect.poll(() => begun.length).toBe(3);
    expect(begun[2]).toBe('a1');
    await end('a1');
    expect(begun.at(-1)).toBe('a2');
  });

  it('stop begins nothing more and waits for what is under way', async () => {
    const { lanes, begun, end } = controlled(1);
    for (const piece of ['a1', 'a2']) lanes.add('a', piece);
    let stopped = false;
    const stopping = lanes.stop().then(() => (stopped = true));
    expect(stopped).toBe(false);
    await end('a1');
    await stopping;
    expect(begun).toEqual(['a1']);
  });
});
