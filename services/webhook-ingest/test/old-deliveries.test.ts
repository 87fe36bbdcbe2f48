import type { StandingDelivery } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import { OldDeliveries } from '../src/processing/old-deliveries.ts';

const AT_ONCE = 256;

/** A stream in memory, each delivery of a lane of its own and stored at the time of its sequence. */
class Old {
  readonly standing: number[];
  readonly over = new Set<number>();
  readonly undecided = new Set<number>();
  /** Others were handed their heads. */
  readonly elsewhere = new Set<number>();
  readonly lanes: string[] = [];
  reads = 0;
  /** How often it was asked about one that was not processed here. */
  looks = 0;
  /** For one look. */
  isStoreAway = false;
  readonly walks: OldDeliveries;

  constructor(count: number) {
    this.standing = Array.from({ length: count }, (_, index) => index + 1);
    this.walks = new OldDeliveries({
      stream: {
        readOld: (after, before) => {
          this.reads += 1;
          const read = this.standing.filter((sequence) => sequence > after && sequence < before).slice(0, AT_ONCE);
          return Promise.resolve(read.map((sequence) => deliveryAt(sequence)));
        },
        removeEach: (sequences) => {
          for (const sequence of sequences) this.standing.splice(this.standing.indexOf(sequence), 1);
          return Promise.resolve();
        },
      },
      backlog: {
        isOver: ({ sequence }, isLeft) => this.over.has(sequence) && (isLeft || !this.elsewhere.has(sequence)),
        nextOver: (from) => [...this.over].find((sequence) => sequence >= from) ?? null,
        nextUnknown: (from, end) => {
          let next = from;
          while (next < end && this.over.has(next)) next += 1;
          return next;
        },
        removedBefore: (first) => this.over.forEach((sequence) => sequence < first && this.over.delete(sequence)),
        removed: (sequences) => sequences.forEach((sequence) => this.over.delete(sequence)),
        lookInto: ({ lane, sequence }) => (this.over.has(sequence) ? null : lane),
      },
      isDecided: ({ sequence }) => {
        const isAway = this.isStoreAway;
        this.isStoreAway = false;
        return isAway ? Promise.reject(new Error('away')) : Promise.resolve(!this.undecided.has(sequence));
      },
      isItselfDecided: ({ sequence }) => {
        this.looks += 1;
        return Promise.resolve(!this.undecided.has(sequence));
      },
      onLane: (lane, host) => this.lanes.push(`${lane} at ${host}`),
    });
  }
}

function deliveryAt(sequence: number): StandingDelivery {
  return {
    sequence,
    lane: `lane${sequence}`,
    id: `${sequence}`,
    bytes: new Uint8Array(),
    host: 'host',
    storedAtMs: sequence,
  };
}

const from = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe('old deliveries behind one that is not processed', () => {
  it('OLD-1: go where they were processed here and their decisions are in the store', async () => {
    const old = new Old(1_000);
    for (const sequence of from(2, 900)) old.over.add(sequence);
    for (const sequence of [10, 600]) old.undecided.add(sequence);
    expect(await old.walks.walk({ before: 951 })).toBe(897);
    expect(old.standing).toEqual([1, 10, 600, ...from(901, 1_000)]);
    expect([...old.over]).toEqual([10, 600]);
    expect(old.lanes).toEqual([]);
  });

  it('go in pieces of what is enough, each from where the last one ended', async () => {
    const old = new Old(1_000);
    for (const sequence of from(2, 1_000)) old.over.add(sequence);
    const walk = { before: Infinity, enough: 300 };
    const removed = [await old.walks.walk(walk), await old.walks.walk(walk), await old.walks.walk(walk)];
    // As many as are read at a time are removed together.
    expect(removed).toEqual([512, 487, 0]);
    expect(old.standing).toEqual([1]);
  });

  it('OLD-2: are looked into where nobody has removed them long after their time, some at a time', async () => {
    const old = new Old(300);
    for (const sequence of from(1, 50)) old.over.add(sequence);
    old.undecided.add(7);
    await old.walks.walk({ before: 301, lookBefore: 54 });
    expect(old.lanes).toEqual(['lane51 at host', 'lane52 at host', 'lane53 at host']);
    await old.walks.walk({ before: 301, lookBefore: 301 });
    expect(old.lanes).toHaveLength(103);
  });

  it('OLD-1: stay where others were handed their heads, until these are gone or have acknowledged them', async () => {
    const old = new Old(10);
    for (const sequence of from(1, 10)) old.over.add(sequence);
    for (const sequence of [3, 8]) old.elsewhere.add(sequence);
    expect(await old.walks.walk({ before: Infinity, lookBefore: 5 })).toBe(9);
    expect(old.standing).toEqual([8]);
  });

  it('OLD-3: a walk gives up after much in vain, and the next one goes on there', async () => {
    const old = new Old(50_000);
    old.over.add(50_000);
    const walks: number[] = [];
    do {
      old.reads = 0;
      await old.walks.walk({ before: Infinity, lookBefore: 0 });
      walks.push(old.reads * AT_ONCE);
    } while (old.standing.includes(50_000) && walks.length < 10);
    expect(walks).toHaveLength(3);
    expect(Math.max(...walks)).toBeLessThanOrEqual(20_000 + AT_ONCE);
  });

  it('OLD-3: a walk that looks into nothing reads only where something may be to remove, from behind where it stood and before it', async () => {
    const old = new Old(50_000);
    old.over.add(40_000);
    expect([await old.walks.walk({ before: Infinity, enough: 1 }), old.reads]).toEqual([1, 1]);
    old.over.add(20_000);
    expect([await old.walks.walk({ before: Infinity, enough: 1 }), old.reads]).toEqual([1, 2]);
    expect([await old.walks.walk({ before: Infinity, enough: 1 }), old.reads]).toEqual([0, 2]);
  });

  it('OLD-4: nothing is removed with all before it from the first on that is neither processed here nor decided; that is looked into', async () => {
    const old = new Old(1_000);
    for (const sequence of from(100, 400)) old.over.add(sequence);
    for (const sequence of [150, 700, 900]) old.undecided.add(sequence);
    expect([await old.walks.processedUpTo(1, 100), old.looks]).toEqual([100, 99]);
    expect([await old.walks.processedUpTo(100, 401), old.looks]).toEqual([401, 99]);
    expect(await old.walks.processedUpTo(100, 600)).toBe(600);
    expect(old.lanes).toEqual([]);
    expect(await old.walks.processedUpTo(100, 1_001)).toBe(700);
    expect(old.lanes).toEqual(['lane700 at host']);
    expect(await old.walks.processedUpTo(151, 700, { mostRead: 1 })).toBe(401 + AT_ONCE);
  });

  it('a walk, and a look at what may be removed, end early where nobody wants them any more', async () => {
    const old = new Old(1_000);
    for (const sequence of from(1, 1_000)) old.over.add(sequence);
    expect(await old.walks.walk({ before: Infinity, signal: AbortSignal.abort() })).toBe(0);
    old.over.clear();
    expect(await old.walks.processedUpTo(1, 1_001, { signal: AbortSignal.abort() })).toBe(1);
    expect(old.reads).toBe(0);
  });

  it('walks are one at a time, and one that fails ends no other', async () => {
    const old = new Old(10);
    old.over.add(3);
    old.isStoreAway = true;
    const broken = old.walks.walk({ before: Infinity });
    const other = old.walks.walk({ before: Infinity });
    await expect(broken).rejects.toThrow('away');
    expect([await other, old.standing.includes(3)]).toEqual([1, false]);
  });
});
