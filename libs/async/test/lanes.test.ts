import { afterEach, describe, expect, it, vi } from 'vitest';
import { Lanes } from '../src/lanes.ts';

/** Work that ends when the test says so. */
function controlled(concurrency: number, concurrencyNow?: () => number) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<void>>();
  const pieces = new Map<string, string[]>();
  const lanes = new Lanes({
    concurrency,
    concurrencyNow,
    work: async (lane) => {
      const [piece] = pieces.get(lane) ?? [];
      if (piece === undefined) return false;
      begun.push(piece);
      const end = Promise.withResolvers<void>();
      ends.set(piece, end);
      await end.promise;
      pieces.get(lane)?.shift();
      return true;
    },
    failed: () => {},
  });
  const add = (lane: string, piece: string): void => {
    pieces.set(lane, [...(pieces.get(lane) ?? []), piece]);
    const [, host = lane, owner = ''] = lane.split('.');
    lanes.add(lane, { host, owner });
  };
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    lanes,
    add,
    begun,
    end: async (piece: string) => (ends.get(piece)?.resolve(), await settled()),
    fail: async (piece: string) => (ends.get(piece)?.reject(new Error('no')), await settled()),
  };
}

afterEach(() => {
  vi.useRealTimers();
});

describe('lanes', () => {
  it('take turns: one with many delays another by one piece', async () => {
    const { add, begun, end } = controlled(1);
    for (const piece of ['a1', 'a2', 'a3', 'a4']) add('a', piece);
    add('b', 'b1');
    await end('a1');
    await end('b1');
    await end('a2');
    expect(begun).toEqual(['a1', 'b1', 'a2', 'a3']);
  });

  it('LANE-1: one host that does not answer leaves half of the places to others', async () => {
    const { add, begun, end } = controlled(4);
    for (const lane of ['a.slow', 'b.slow', 'c.slow', 'd.fine', 'e.fine', 'f.fine']) add(lane, lane);
    expect(begun).toEqual(['a.slow', 'b.slow', 'd.fine', 'e.fine']);
    await end('d.fine');
    expect(begun.at(-1)).toBe('f.fine');
    await end('e.fine');
    expect(begun).toHaveLength(5);
    await end('b.slow');
    expect(begun.at(-1)).toBe('c.slow');
  });

  it('LANE-1: one owner, at as many hosts as it likes, leaves half of the places to others', async () => {
    const { add, begun, end } = controlled(4);
    for (const lane of ['a.1.evil', 'b.2.evil', 'c.3.evil', 'd.4.evil', 'e.5.good', 'f.6.good', 'g.7.good'])
      add(lane, lane);
    expect(begun).toEqual(['a.1.evil', 'b.2.evil', 'e.5.good', 'f.6.good']);
    await end('a.1.evil');
    expect(begun.at(-1)).toBe('c.3.evil');
    await end('f.6.good');
    expect(begun.at(-1)).toBe('g.7.good');
    await end('e.5.good');
    expect(begun).toHaveLength(6);
  });

  it('LANE-1: one owner leaves a quarter of the places of one host to others', async () => {
    const { add, begun, end } = controlled(8);
    for (const index of [1, 2, 3, 4, 5]) add(`${index}.host.evil`, `${index}.host.evil`);
    expect(begun).toEqual(['1.host.evil', '2.host.evil', '3.host.evil']);
    for (const index of [6, 7]) add(`${index}.host.good`, `${index}.host.good`);
    expect(begun.slice(3)).toEqual(['6.host.good']);
    add('8.other.evil', '8.other.evil');
    expect(begun.slice(4)).toEqual(['8.other.evil']);
    await end('6.host.good');
    expect(begun.slice(5)).toEqual(['7.host.good']);
    await end('1.host.evil');
    expect(begun.slice(6)).toEqual(['4.host.evil']);
  });

  it('LANE-1: what lanes share is counted anew once all of them are gone, and goes on where one is left', async () => {
    const { add, begun, end } = controlled(4);
    for (const round of [1, 2, 3]) {
      const lanes = [1, 2, 3].map((index) => `${index}.host${index}.evil.${round}`);
      const before = begun.length;
      for (const lane of lanes) add(lane, lane);
      expect(begun.slice(before)).toEqual(lanes.slice(0, 2));
      await end(lanes[0] as string);
      expect(begun.slice(before)).toEqual(lanes);
      if (round === 2) add('4.host4.evil', '4.host4.evil');
      for (const lane of lanes.slice(1)) await end(lane);
      expect(begun.length - before).toBe(round === 2 ? 4 : 3);
      if (round === 2) await end('4.host4.evil');
    }
  });

  it('LANE-4: a place that is free goes to who has the fewest, however many lanes of others have waited longer', async () => {
    const { add, begun, end } = controlled(4);
    const many = (owner: string): string[] =>
      Array.from({ length: 5 }, (_, index) => `${index}.${owner}${index}.${owner}`);
    for (const lane of [...many('evil'), ...many('bad')]) add(lane, lane);
    expect(begun).toEqual(['0.evil0.evil', '1.evil1.evil', '0.bad0.bad', '1.bad1.bad']);
    add('late.host.late', 'late.host.late');
    await end('0.bad0.bad');
    expect(begun.at(-1)).toBe('late.host.late');
    await end('late.host.late');
    expect(begun.at(-1)).toBe('2.bad2.bad');
  });

  it('LANE-1: no more at a time than may be, and of a lane one, in order', async () => {
    const { add, begun, end } = controlled(2);
    for (const piece of ['a1', 'a2']) add('a', piece);
    for (const lane of ['b', 'c']) add(lane, `${lane}1`);
    expect(begun).toEqual(['a1', 'b1']);
    await end('b1');
    await end('a1');
    expect(begun).toEqual(['a1', 'b1', 'c1', 'a2']);
  });

  it('LANE-2: what fails is done again before what follows it, and holds nobody else up', async () => {
    const { add, begun, end, fail } = controlled(1);
    for (const piece of ['a1', 'a2']) add('a', piece);
    add('b', 'b1');
    await fail('a1');
    expect(begun).toEqual(['a1', 'b1']);
    await end('b1');
    await expect.poll(() => begun.length).toBe(3);
    expect(begun[2]).toBe('a1');
    await end('a1');
    expect(begun.at(-1)).toBe('a2');
  });

  it('LANE-2: what fails for long is tried ever less often, sooner where something more comes in its lane, and as at first once it was done', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    const failedAt: number[] = [];
    let isMended = false;
    const lanes = new Lanes({
      concurrency: 1,
      work: async () => {
        if (isMended) return false;
        throw new Error('no room');
      },
      failed: (_lane, _error, attempt, forMs) => {
        expect(attempt).toBe(failedAt.length + 1);
        failedAt.push(forMs);
      },
      now: () => performance.now(),
    });
    const longest = (from: number): number =>
      Math.max(...failedAt.slice(1).flatMap((at, before) => (at < from ? [] : [at - (failedAt[before] ?? 0)])));
    lanes.add('a', { host: 'h', owner: '' });
    await vi.advanceTimersByTimeAsync(60_000);
    // A head of a pull request is looked for so long.
    expect(longest(0)).toBeLessThanOrEqual(6_000);
    await vi.advanceTimersByTimeAsync(23 * 3_600_000);
    expect(longest(0)).toBeLessThanOrEqual(300_000);
    const inADay = failedAt.length;
    expect(inADay).toBeLessThan(700);
    await vi.advanceTimersByTimeAsync(300_000);
    const before = failedAt.length;
    lanes.add('a', { host: 'h', owner: '' });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(failedAt.length).toBe(before + 1);
    isMended = true;
    await vi.advanceTimersByTimeAsync(300_000);
    isMended = false;
    failedAt.length = 0;
    lanes.add('a', { host: 'h', owner: '' });
    await vi.advanceTimersByTimeAsync(300);
    expect(failedAt.length).toBe(2);
    await lanes.stop();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(failedAt.length).toBe(2);
  });

  it('what comes while the last piece is looked for is not left behind', async () => {
    const looking = Promise.withResolvers<boolean>();
    let looks = 0;
    const twice = Promise.withResolvers<void>();
    const lanes = new Lanes({
      concurrency: 1,
      work: async () => {
        looks += 1;
        if (looks === 2) twice.resolve();
        return looks === 1 ? await looking.promise : false;
      },
      failed: () => {},
    });
    lanes.add('a', { host: 'host', owner: '' });
    lanes.add('a', { host: 'host', owner: '' });
    looking.resolve(false);
    await twice.promise;
    expect(looks).toBe(2);
  });

  it('begins as many as may be under way now, and the others when that is over', async () => {
    const begun: string[] = [];
    const ends = new Map<string, PromiseWithResolvers<void>>();
    let most = 1;
    const lanes = new Lanes({
      concurrency: 8,
      concurrencyNow: () => most,
      work: async (lane) => {
        begun.push(lane);
        const end = Promise.withResolvers<void>();
        ends.set(lane, end);
        await end.promise;
        return false;
      },
      failed: () => {},
    });
    for (const lane of ['a', 'b', 'c', 'd']) lanes.add(lane, { host: lane, owner: '' });
    expect(begun).toEqual(['a']);
    most = 8;
    ends.get('a')?.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toEqual(['a', 'b', 'c', 'd']);
  });

  it('LANE-3: where one may be under way now, hosts that do not answer do not keep others from their turns', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let most = 1;
    const { add, begun, end } = controlled(4, () => most);
    for (const lane of ['a.slow', 'b.slow', 'c.slow', 'd.fine', 'e.fine', 'f.fine']) add(lane, lane);
    expect(begun).toEqual(['a.slow']);
    vi.advanceTimersByTime(5_000);
    expect(begun).toEqual(['a.slow', 'b.slow']);
    vi.advanceTimersByTime(5_000);
    expect(begun).toEqual(['a.slow', 'b.slow', 'd.fine']);
    await end('d.fine');
    expect(begun.slice(3)).toEqual(['e.fine']);
    await end('a.slow');
    expect(begun.slice(4)).toEqual([]);
    // Nothing else tells the lanes that more may be under way.
    most = 4;
    vi.advanceTimersByTime(5_000);
    expect(begun.slice(4)).toEqual(['c.slow', 'f.fine']);
  });

  it('stop begins nothing more and waits for what is under way', async () => {
    const { lanes, add, begun, end } = controlled(1);
    for (const piece of ['a1', 'a2']) add('a', piece);
    let stopped = false;
    const stopping = lanes.stop().then(() => (stopped = true));
    expect(stopped).toBe(false);
    await end('a1');
    await stopping;
    expect(begun).toEqual(['a1']);
  });
});
