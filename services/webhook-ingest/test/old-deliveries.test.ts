import type { StandingDelivery } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import { OldDeliveries } from '../src/processing/old-deliveries.ts';

const AT_ONCE = 256;

/** A stream in memory, each delivery of a lane of its own and stored at the time of its sequence. */
class Old {
  readonly standing: number[];
  readonly over = new Set<number>();
  readonly undecided = new Set<number>();
  readonly lanes: string[] = [];
  reads = 0;
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
        isOver: ({ sequence }) => this.over.has(sequence),
        removed: (sequences) => sequences.forEach((sequence) => this.over.delete(sequence)),
        lookInto: ({ lane, sequence }) => (this.over.has(sequence) ? null : lane),
      },
      isDecided: (id) => {
        const isAway = this.isStoreAway;
        this.isStoreAway = false;
        return isAway ? Promise.reject(new Error('away')) : Promise.resolve(!this.undecided.has(Number(id)));
      },
      onLane: (lane, host) => this.lanes.push(`${lane} at ${host}`),
    });
  }
}

function deliveryAt(sequence: number): StandingDelivery {
  return { sequence, lane: `lane${sequence}`, id: `${sequence}`, host: 'host', storedAtMs: sequence };
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
    expect(removed).toEqual([511, 488, 0]);
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

  it('OLD-3: a walk gives up after much in vain, and the next one goes on there', async () => {
    const old = new Old(50_000);
    old.over.add(50_000);
    const walks: number[] = [];
    do {
      old.reads = 0;
      await old.walks.walk({ before: Infinity });
      walks.push(old.reads * AT_ONCE);
    } while (old.standing.includes(50_000) && walks.length < 10);
    expect(walks).toHaveLength(3);
    expect(Math.max(...walks)).toBeLessThanOrEqual(20_000 + AT_ONCE);
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
