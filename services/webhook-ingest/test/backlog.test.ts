import type { HeldDelivery } from '@penstock/bus';
import { describe, expect, it } from 'vitest';
import type { Delivery } from '../src/model/delivery.ts';
import { Backlog } from '../src/processing/backlog.ts';

const placeOf = (lane: string, host = 'host') => ({ lane, host });

/** A stream in memory, whose consumer hands out again what is not acknowledged. */
class Stream {
  readonly stored: { readonly lane: string; readonly bytes: Uint8Array }[] = [];
  readonly unacknowledged = new Set<number>();
  readonly decided = new Set<string>();
  reads = 0;
  /** How often it was asked whether something is decided. */
  looks = 0;
  readMost = 0;
  /** When it was made. */
  from = 0;

  store(lane: string, size = 0): number {
    const delivery = { id: `${this.stored.length + 1}`, message: 'x'.repeat(size) } as Partial<Delivery>;
    this.stored.push({ lane, bytes: Buffer.from(JSON.stringify(delivery)) });
    this.unacknowledged.add(this.stored.length);
    return this.stored.length;
  }

  storedAtMs(sequence: number): number {
    return this.from + 1_000 * sequence;
  }

  head(sequence: number, isFirst = true): HeldDelivery {
    const { lane, bytes } = this.stored[sequence - 1] ?? { lane: '', bytes: new Uint8Array() };
    return {
      sequence,
      lane,
      host: 'host',
      bytes: bytes.length,
      isFirst,
      storedAtMs: this.storedAtMs(sequence),
      acknowledge: () => void this.unacknowledged.delete(sequence),
    };
  }

  #place(sequence: number, bytes: Uint8Array): { sequence: number; bytes: Uint8Array; storedAtMs: number } {
    return { sequence, bytes, storedAtMs: this.storedAtMs(sequence) };
  }

  open(): Backlog {
    return new Backlog({
      stream: {
        read: (sequence) => {
          const bytes = this.stored[sequence - 1]?.bytes;
          return Promise.resolve(bytes === undefined ? null : this.#place(sequence, bytes));
        },
        readLane: (lane, after, most) => {
          this.reads += 1;
          const all = this.stored
            .map(({ lane: name, bytes }, at) => ({ lane: name, ...this.#place(at + 1, bytes) }))
            .filter((each) => each.lane === lane && each.sequence > after);
          const deliveries = all.slice(0, most.deliveries);
          this.readMost = Math.max(this.readMost, deliveries.length);
          return Promise.resolve({ deliveries, behind: all.length - deliveries.length });
        },
      },
      isDecided: ({ id }) => ((this.looks += 1), Promise.resolve(this.decided.has(id))),
    });
  }
}

async function work(backlog: Backlog, lane: string, stream: Stream, most = Infinity): Promise<number[]> {
  const done: number[] = [];
  while (done.length < most) {
    const piece = await backlog.next(lane);
    if (piece === null) break;
    stream.decided.add(piece.delivery.id);
    done.push(piece.sequence);
    backlog.done(lane, piece);
  }
  return done;
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

describe('the backlog', () => {
  it('shows of a piece that is asked for again what has come behind it since', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    backlog.add(stream.head(stream.store('a')));
    const behind = async (): Promise<string[] | undefined> => (await backlog.next('a'))?.behind().map(({ id }) => id);
    expect(await behind()).toEqual([]);
    const { reads } = stream;
    expect(await behind()).toEqual([]);
    expect(stream.reads).toBe(reads);
    backlog.add(stream.head(stream.store('a')));
    backlog.add(stream.head(stream.store('a')));
    expect(await behind()).toEqual(['2', '3']);
    expect(await behind()).toEqual(['2', '3']);
    expect(stream.reads).toBe(reads + 1);
    expect(backlog.waitingIn('a').deliveries).toBe(3);
    backlog.add(stream.head(stream.store('a')));
    expect(await behind()).toEqual(['2', '3', '4']);
    expect(stream.reads).toBe(reads + 2);
  });

  it('tells of a piece what was read ahead behind it, the next first, and no more than a few', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 40; count++) backlog.add(stream.head(stream.store('a')));
    const idsBehind = async (): Promise<string[] | undefined> =>
      (await backlog.next('a'))?.behind().map(({ id }) => id);
    expect(await idsBehind()).toEqual(upTo(32).slice(1).map(String));
    await work(backlog, 'a', stream, 38);
    expect(await idsBehind()).toEqual(['40']);
    await work(backlog, 'a', stream, 1);
    expect(await idsBehind()).toEqual([]);
  });

  it('BACKLOG-2: a repository with thousands holds four heads, and all of it is done in order', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 5_000; count++) backlog.add(stream.head(stream.store('a')));
    expect(stream.unacknowledged.size).toBeLessThanOrEqual(4);
    expect(backlog.waitingIn('a').deliveries).toBe(5_000);
    expect(await work(backlog, 'a', stream)).toEqual(upTo(5_000));
    expect(stream.unacknowledged.size).toBe(0);
    expect(backlog.waitingIn('a').deliveries).toBe(0);
  });

  it('BACKLOG-1: at any time what is not processed has a head at or before it that is not acknowledged', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let processed = 0; processed < 3_000;) {
      for (let count = 0; count < 50 && stream.stored.length < 3_000; count++)
        backlog.add(stream.head(stream.store('a')));
      processed = (await work(backlog, 'a', stream, 20)).at(-1) ?? processed;
      const oldest = Math.min(...stream.unacknowledged, stream.stored.length + 1);
      expect(oldest).toBeLessThanOrEqual(processed + 1);
    }
    expect(await backlog.next('a')).toBeNull();
    expect(stream.unacknowledged.size).toBe(0);
  });

  it('BACKLOG-1: what a killed ingest leaves is done by the next one, from the heads that come again', async () => {
    const stream = new Stream();
    const killed = stream.open();
    for (let count = 0; count < 1_000; count++) killed.add(stream.head(stream.store('a')));
    expect(await work(killed, 'a', stream, 700)).toEqual(upTo(700));
    const next = stream.open();
    // In any order.
    for (const sequence of [...stream.unacknowledged].toReversed()) next.add(stream.head(sequence));
    const done = await work(next, 'a', stream);
    expect(done.toSorted((a, b) => a - b)).toEqual(done);
    expect(done.filter((sequence) => sequence > 700)).toEqual(upTo(1_000).slice(700));
    expect(stream.unacknowledged.size).toBe(0);
  });

  it('BACKLOG-4: passes over what is decided, but for the last that is', async () => {
    const stream = new Stream();
    for (let count = 0; count < 200; count++) stream.store('a');
    for (let id = 1; id <= 100; id++) stream.decided.add(`${id}`);
    const backlog = stream.open();
    backlog.add(stream.head(101));
    const done = await work(backlog, 'a', stream);
    expect(done.filter((sequence) => sequence >= 100)).toEqual(upTo(200).slice(99));
    expect(done.filter((sequence) => sequence < 100).length).toBeLessThan(3);
  });

  it('BACKLOG-4: asks the store about no more than it has to: not once it knows how far the lane has come', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 200; count++) backlog.add(stream.head(stream.store('a')));
    expect(await work(backlog, 'a', stream)).toEqual(upTo(200));
    // What was read first.
    expect(stream.looks).toBe(64);
  });

  it('BACKLOG-5: what was noted is done before its head comes, which then has nothing done again and is acknowledged', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 100; count++) expect(backlog.note(placeOf('a'), stream.store('a'), 10)).toBe(true);
    expect(await work(backlog, 'a', stream, 60)).toEqual(upTo(60));
    const lanes = upTo(50).map((sequence) => backlog.add(stream.head(sequence)));
    expect(lanes).toEqual(lanes.map(() => null));
    expect(stream.unacknowledged.size).toBe(50);
    expect(await work(backlog, 'a', stream)).toEqual(upTo(100).slice(60));
    expect(await backlog.next('a')).toBeNull();
    // Its lane is forgotten meanwhile.
    for (const sequence of upTo(100).slice(50)) expect(backlog.add(stream.head(sequence))).toBeNull();
    expect(stream.unacknowledged.size).toBe(0);
    expect(await backlog.next('a')).toBeNull();
  });

  it('BACKLOG-1: what was noted and is not processed keeps its head, or one before it', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 500; count++) backlog.note(placeOf('a'), stream.store('a'), 10);
    await work(backlog, 'a', stream, 20);
    for (const sequence of upTo(500)) backlog.add(stream.head(sequence));
    expect(Math.min(...stream.unacknowledged)).toBe(21);
    expect(stream.unacknowledged.size).toBeLessThanOrEqual(4);
    expect(await work(backlog, 'a', stream)).toEqual(upTo(500).slice(20));
    expect(stream.unacknowledged.size).toBe(0);
  });

  it('BACKLOG-5: the heads of a stream that was made anew are done, however far the lane had come in the one before', async () => {
    const before = new Stream();
    const backlog = before.open();
    for (let count = 0; count < 10; count++) backlog.note(placeOf('a'), before.store('a'), 10);
    await work(backlog, 'a', before);
    before.from = 3_600_000;
    before.decided.clear();
    expect(backlog.add(before.head(3))).toBe('a');
    expect(await work(backlog, 'a', before)).toEqual(upTo(10).slice(2));
  });

  it('BACKLOG-6: in a stream that was made anew a lane is done in order, though it had come further and more was noted', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 10; count++) backlog.note(placeOf('a'), stream.store('a'), 10);
    await work(backlog, 'a', stream);
    stream.from = 3_600_000;
    stream.decided.clear();
    backlog.note(placeOf('b'), 4, 10);
    for (let count = 0; count < 10; count++) backlog.note(placeOf('a'), stream.store('a'), 10);
    expect(await work(backlog, 'a', stream)).toEqual(upTo(20));
    for (const sequence of upTo(20)) expect(backlog.add(stream.head(sequence))).toBeNull();
  });

  it('BACKLOG-6: where the stream is the same after all, a lane goes on from where it was', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 100; count++) backlog.add(stream.head(stream.store('a')));
    await work(backlog, 'a', stream, 90);
    backlog.startAnew();
    stream.looks = 0;
    for (const sequence of upTo(100)) stream.unacknowledged.add(sequence);
    for (const sequence of upTo(100)) backlog.add(stream.head(sequence));
    expect(stream.unacknowledged).toContain(1);
    expect(await work(backlog, 'a', stream)).toEqual(upTo(100).slice(90));
    expect(stream.looks).toBe(0);
    expect(stream.unacknowledged.size).toBe(0);
  });

  it('BACKLOG-1: heads that stand for nothing any more do not have those of the new stream acknowledged', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 10; count++) backlog.add(stream.head(stream.store('a')));
    backlog.startAnew();
    stream.from = 3_600_000;
    stream.unacknowledged.clear();
    for (const sequence of upTo(10).slice(6)) stream.unacknowledged.add(sequence);
    for (const sequence of upTo(10).slice(6)) backlog.add(stream.head(sequence));
    expect(stream.unacknowledged).toContain(7);
    expect(await work(backlog, 'a', stream)).toEqual(upTo(10));
    expect(stream.unacknowledged.size).toBe(0);
  });

  it('BACKLOG-4: of a lane that was empty, what stands behind a head that is handed out again is not done again but for the last', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 60; count++) backlog.add(stream.head(stream.store('a')));
    await work(backlog, 'a', stream);
    backlog.add(stream.head(1, false));
    expect(await work(backlog, 'a', stream)).toEqual([60]);
  });

  it('counts what was noted and then comes by its head once, by its own size', () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 10; count++) backlog.note(placeOf('a'), stream.store('a'), 1_000);
    for (const sequence of upTo(10)) backlog.add({ ...stream.head(sequence), bytes: 1_000 });
    expect(backlog.waitingIn('a')).toEqual({ deliveries: 10, bytes: 10_000 });
    backlog.add({ ...stream.head(stream.store('a')), bytes: 1_000 });
    expect(backlog.waitingIn('a')).toEqual({ deliveries: 11, bytes: 11_000 });
  });

  it('notes no further lane where strangers have named thousands', () => {
    const stream = new Stream();
    const backlog = stream.open();
    const noted = upTo(10_000).map((sequence) => backlog.note(placeOf(`${sequence}`), sequence, 10));
    expect(noted.filter(Boolean)).toHaveLength(8_000);
    expect(backlog.note(placeOf('1'), 10_001, 10)).toBe(true);
  });

  it('two ingests in one lane each do it in order', async () => {
    const stream = new Stream();
    const [one, two] = [stream.open(), stream.open()];
    for (let count = 0; count < 10; count++) (count % 2 === 0 ? one : two).add(stream.head(stream.store('a')));
    expect(await work(two, 'a', stream, 3)).toEqual([1, 2, 3]);
    const rest = await work(one, 'a', stream);
    expect(rest.at(-1)).toBe(10);
    expect(rest.toSorted((a, b) => a - b)).toEqual(rest);
    await work(two, 'a', stream);
    expect(stream.unacknowledged.size).toBe(0);
  });

  it('BACKLOG-3: reads one delivery at a time where much was read ahead in other lanes', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let lane = 0; lane < 40; lane++)
      for (let count = 0; count < 3; count++) backlog.add(stream.head(stream.store(`${lane}`, 200_000)));
    for (let lane = 0; lane < 39; lane++) await backlog.next(`${lane}`);
    stream.readMost = 0;
    await backlog.next('39');
    expect(stream.readMost).toBe(1);
    expect(backlog.waitingIn('39')).toMatchObject({ deliveries: 3 });
    expect(backlog.waitingIn('39').bytes).toBeGreaterThan(600_000);
  });

  it('knows how many bytes wait by a part of the heads, looks at each that is held, and lets nobody foretell at which else', () => {
    const looksOf = (): { readonly looked: readonly number[]; readonly held: ReadonlySet<number>; bytes: number } => {
      const stream = new Stream();
      const backlog = stream.open();
      const looked: number[] = [];
      for (let count = 0; count < 4_000; count++) {
        const sequence = stream.store('a');
        const head = {
          ...stream.head(sequence),
          get bytes() {
            looked.push(sequence);
            return sequence % 2 === 0 ? 200 : 200_000;
          },
        };
        backlog.add(head);
      }
      return { looked, held: stream.unacknowledged, bytes: backlog.waitingIn('a').bytes };
    };
    const { looked, held, bytes } = looksOf();
    expect(looked).toEqual(expect.arrayContaining([...held]));
    expect(looked.length).toBeLessThan(1_500);
    expect(bytes).toBeGreaterThan(4_000 * 70_000);
    expect(bytes).toBeLessThan(4_000 * 130_000);
    expect(looksOf().looked).not.toEqual(looked);
  });

  it('what comes while the end of a lane is looked for is done too, and a head handed out again is done again', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    backlog.add(stream.head(stream.store('a')));
    await work(backlog, 'a', stream, 1);
    const looking = backlog.next('a');
    backlog.add(stream.head(stream.store('a')));
    expect(await looking).toMatchObject({ sequence: 2 });
    backlog.add(stream.head(1, false));
    expect(await work(backlog, 'a', stream)).toEqual([1, 2]);
    expect(await backlog.next('a')).toBeNull();
  });

  it('finds the next delivery of a lane that was empty without a look at those before it', async () => {
    const stream = new Stream();
    const backlog = stream.open();
    for (let count = 0; count < 200; count++) backlog.add(stream.head(stream.store('a')));
    await work(backlog, 'a', stream);
    stream.reads = 0;
    backlog.add(stream.head(stream.store('a')));
    expect(await work(backlog, 'a', stream)).toEqual([201]);
    expect(stream.reads).toBe(2);
  });
});

describe('what is over', () => {
  it('BACKLOG-7: is what was processed here or passed over, and no head that is held', async () => {
    const stream = new Stream();
    for (let index = 0; index < 6; index++) stream.store('lane');
    for (const id of ['1', '2', '3']) stream.decided.add(id);
    const backlog = stream.open();
    for (const sequence of upTo(6)) backlog.add(stream.head(sequence));
    const over = (): number[] => upTo(7).filter((sequence) => backlog.isOver({ lane: 'lane', sequence }, false));
    expect(over()).toEqual([]);
    // The last that is decided is processed once more.
    expect(await work(backlog, 'lane', stream, 2)).toEqual([3, 4]);
    expect(over()).toEqual([2, 3, 4]);
    expect(stream.unacknowledged.has(1)).toBe(true);
    backlog.removed([2, 3]);
    expect(over()).toEqual([4]);
    expect(await work(backlog, 'lane', stream)).toEqual([5, 6]);
    expect(over()).toEqual([1, 4, 5, 6]);
    backlog.startAnew();
    expect(over()).toEqual([]);
  });

  it('BACKLOG-7: is nothing of which another was handed the head, by which what it has not processed comes again', async () => {
    const stream = new Stream();
    for (let index = 0; index < 4; index++) stream.store('lane');
    const [one, other] = [stream.open(), stream.open()];
    for (const sequence of [1, 2, 3]) one.add(stream.head(sequence));
    other.add(stream.head(4));
    expect(await work(other, 'lane', stream)).toEqual([1, 2, 3, 4]);
    const over = (isLeft: boolean): number[] =>
      upTo(4).filter((sequence) => other.isOver({ lane: 'lane', sequence }, isLeft));
    // The one is killed, and 2 and 3 are acknowledged: 1 alone stands for them.
    expect([...stream.unacknowledged]).toEqual([1]);
    expect(over(false)).toEqual([4]);
    expect([other.nextOver(1), other.nextOver(5)]).toEqual([4, null]);
    expect(over(true)).toEqual([1, 2, 3, 4]);
    expect([other.nextUnknown(1, 4), other.nextUnknown(1, 9)]).toEqual([4, 5]);
  });

  it('BACKLOG-7: is nothing of what was under way when the stream was made anew', async () => {
    const stream = new Stream();
    for (let index = 0; index < 2; index++) stream.store('lane');
    const backlog = stream.open();
    for (const sequence of upTo(2)) backlog.add(stream.head(sequence));
    const piece = await backlog.next('lane');
    backlog.startAnew();
    if (piece !== null) backlog.done('lane', piece);
    expect(piece?.sequence).toBe(1);
    expect(backlog.isOver({ lane: 'lane', sequence: 1 }, true)).toBe(false);
  });

  it('OLD-2: what nobody has a head for is looked into, unless it has its turn anyway or is known to be processed', async () => {
    const stream = new Stream();
    for (const lane of ['one', 'two', 'one']) stream.store(lane);
    const backlog = stream.open();
    expect(backlog.lookInto({ lane: 'one', sequence: 1, host: 'host' })).toBe('one');
    expect(backlog.lookInto({ lane: 'one', sequence: 3, host: 'host' })).toBeNull();
    expect(await work(backlog, 'one', stream)).toEqual([1, 3]);
    expect(backlog.lookInto({ lane: 'one', sequence: 3, host: 'host' })).toBeNull();
    backlog.add(stream.head(2));
    expect(backlog.lookInto({ lane: 'two', sequence: 2, host: 'host' })).toBeNull();
    stream.store('one');
    expect(backlog.lookInto({ lane: 'one', sequence: 4, host: 'host' })).toBe('one');
    expect(await work(backlog, 'one', stream)).toEqual([4]);
    expect(backlog.lookInto({ lane: null, sequence: 9, host: 'host' })).toBe('#9');
    // What is known of it was given up, but for how far its lane has come.
    backlog.startAnew();
    expect(backlog.lookInto({ lane: 'one', sequence: 1, host: 'host' })).toBe('one');
    expect(await work(backlog, 'one', stream)).toEqual([4]);
    expect(backlog.lookInto({ lane: 'one', sequence: 1, host: 'host' })).toBeNull();
  });
});
