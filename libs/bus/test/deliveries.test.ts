import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Bus,
  connectBus,
  connectionOf,
  type DeliveryPlace,
  ensureStreams,
  type HeldDelivery,
  openDeliveryLog,
  startDeliveryConsumer,
  streams,
} from '../src/index.ts';

const MIB = 1024 * 1024;
/** Of streams as releases made them that counted deliveries from 1. */
const sizes = { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB, deliveriesFrom: 1 };
const at = (lane: string): DeliveryPlace => ({ lane, host: 'host' });

let broker: TestBroker;
let bus: Bus;

beforeEach(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'ingest' });
  await ensureStreams(bus, sizes);
});
afterEach(async () => {
  vi.useRealTimers();
  await bus.close(0);
  await broker.stop();
});

/** Collects what is handed out; `next` waits for the next one. */
function collector(): {
  onDelivery(delivery: HeldDelivery): void;
  next(): Promise<HeldDelivery>;
  readonly all: HeldDelivery[];
} {
  const all: HeldDelivery[] = [];
  const waiting: ((delivery: HeldDelivery) => void)[] = [];
  let read = 0;
  return {
    all,
    onDelivery(delivery) {
      all.push(delivery);
      const waiter = waiting.shift();
      if (waiter !== undefined) {
        read += 1;
        waiter(delivery);
      }
    },
    next: () => {
      const known = all[read];
      if (known !== undefined) {
        read += 1;
        return Promise.resolve(known);
      }
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** The broker works off acknowledgements, and what goes with something removed, behind its answers. */
async function acknowledgedUpTo(sequence: number): Promise<void> {
  const { consumers } = await jetstreamManager(connectionOf(bus));
  const floor = async (): Promise<number | undefined> =>
    (await consumers.list(streams.deliveries).next())[0]?.ack_floor.stream_seq;
  await expect.poll(floor, { timeout: 10_000 }).toBe(sequence);
}

describe('the stream of deliveries', () => {
  it('P24: of many writes of one delivery, from two connections, one is stored and the others read it', async () => {
    const other = await connectBus({ servers: broker.url, name: 'other' });
    const logs = [openDeliveryLog(bus), openDeliveryLog(other)];
    const written = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        logs[index % 2]?.persist('one', Buffer.from(`copy ${index}`), at('lane')),
      ),
    );
    const first = Buffer.from((await logs[0]?.find('one', 'lane')) ?? []).toString();
    expect(written.filter((each) => each?.stored === true)).toHaveLength(1);
    const read = written.flatMap((each) => (each?.stored === false ? [Buffer.from(each.first).toString()] : []));
    expect(new Set(read)).toEqual(new Set([first]));
    await other.close(0);
  });

  it('P24: a repetition of what is processed removes nothing to make room: it reads the first', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, seen);
    await log.persist('one', Buffer.from('first'), at('lane'));
    (await seen.next()).acknowledge();
    await acknowledgedUpTo(1);
    const again = await log.persist('one', Buffer.from('again'), at('lane'));
    expect(again.stored ? 'stored' : Buffer.from(again.first).toString()).toBe('first');
    expect(await log.find('one', 'lane')).not.toBeNull();
    await consumer.stop();
  });

  it('hands each delivery out with its lane, its host and its size', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, seen);
    await log.persist('a', Buffer.from('first'), at('lane-a'));
    await log.persist('b', Buffer.from('second'), at('lane-b'));
    const [a, b] = [await seen.next(), await seen.next()];
    expect([a.lane, b.lane]).toEqual(['lane-a', 'lane-b']);
    expect(Buffer.from((await log.read(b.sequence))?.bytes ?? []).toString()).toBe('second');
    expect([a.host, a.bytes, b.bytes]).toEqual(['host', 5, 6]);
    a.acknowledge();
    b.acknowledge();
    expect(consumer.held).toBe(0);
    await consumer.stop();
  });

  it('reads a lane in order, so many and so large at a time, and says how many follow', async () => {
    const log = openDeliveryLog(bus);
    for (let index = 0; index < 6; index++)
      await log.persist(`d${index}`, Buffer.alloc(1_000, String(index)), at(index % 2 === 0 ? 'even' : 'odd'));
    const read = async (after: number, deliveries: number, bytes: number): Promise<[number[], number]> => {
      const lane = await log.readLane('odd', after, { deliveries, bytes });
      return [lane.deliveries.map(({ sequence }) => sequence), lane.behind];
    };
    expect(await read(0, 10, 100_000)).toEqual([[2, 4, 6], 0]);
    expect(await read(2, 1, 100_000)).toEqual([[4], 1]);
    expect(await read(0, 10, 1)).toEqual([[2], 2]);
    expect(await read(6, 10, 100_000)).toEqual([[], 0]);
  });

  it('P24: takes what an earlier release has stored, and hands it out without a lane', async () => {
    const old = jetstream(connectionOf(bus));
    await old.publish('delivery.old', 'x');
    await openDeliveryLog(bus).ensureConsumer();
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, seen);
    expect(await seen.next()).toMatchObject({ lane: null, sequence: 1 });
    await consumer.stop();
  });

  it('holds so many and no more, whatever there would be room for', async () => {
    await ensureStreams(bus, { ...sizes, deliveriesMax: 2 });
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    for (const id of ['a', 'b']) await log.persist(id, Buffer.from(id), at('lane'));
    await expect(log.persist('c', Buffer.from('c'), at('lane'))).rejects.toMatchObject({ tag: 'StoreRefused' });
  });

  it('holds no more than it may, and asks for more when there is room', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    for (let index = 0; index < 10; index++) await log.persist(`d${index}`, Buffer.from('x'), at('lane'));
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, { ...seen, heldMax: 4 });
    for (let index = 0; index < 4; index++) await seen.next();
    await bus.flush();
    expect(seen.all).toHaveLength(4);
    // How many will have come until there is room it cannot know.
    expect(consumer.behind).toBe(Infinity);
    for (const each of seen.all.slice()) each.acknowledge();
    for (let index = 0; index < 4; index++) await seen.next();
    expect(consumer.held).toBe(4);
    for (const each of seen.all.slice(4)) each.acknowledge();
    for (let index = 0; index < 2; index++) await seen.next();
    expect(consumer.behind).toBe(0);
    await consumer.stop();
  });

  it('DELIVERYCONSUMER-3: asks for no more than are wanted a second, and says how many wait behind them', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    for (let index = 0; index < 12; index++) await log.persist(`d${index}`, Buffer.from('x'), at('lane'));
    const seen = collector();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let perSecond = 100;
    const consumer = startDeliveryConsumer(bus, { ...seen, perSecond: () => perSecond });
    for (const expected of [5, 10]) {
      for (let index = 0; index < 5; index++) await seen.next();
      // Whatever was asked for meanwhile is here behind two answers of the broker.
      await bus.flush();
      await log.find('d0', 'lane');
      expect([seen.all.length, consumer.behind]).toEqual([expected, 12 - expected]);
      if (expected === 10) perSecond = Infinity;
      vi.advanceTimersByTime(50);
    }
    await seen.next();
    await seen.next();
    expect(consumer.behind).toBe(0);
    expect(consumer.held).toBe(12);
    vi.useRealTimers();
    await consumer.stop();
  });

  it('DELIVERYLOG-4: what many store at a time is answered in the order in which it is stored', async () => {
    const log = openDeliveryLog(bus);
    const sequences: number[] = [];
    await Promise.all(
      Array.from({ length: 2_000 }, async (_, index) => {
        const persisted = await log.persist(`d${index}`, Buffer.alloc((index % 7) * 1_000), at(`lane${index % 5}`));
        if (persisted.stored) sequences.push(persisted.sequence);
      }),
    );
    expect(sequences).toEqual(Array.from({ length: 2_000 }, (_, index) => index + 1));
  });

  it('what a consumer holds when it stops goes to another at once, which hears that it is not the first, and when it was stored', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const [first, second] = [collector(), collector()];
    expect(await log.heldByAll()).toBe(0);
    const one = startDeliveryConsumer(bus, first);
    expect(await log.persist('held', Buffer.from('x'), at('lane'))).toEqual({ stored: true, sequence: 1 });
    const storedAtMs = (await log.read(1))?.storedAtMs;
    expect(await log.readLane('lane', 0, { deliveries: 1, bytes: 1 })).toMatchObject({ deliveries: [{ storedAtMs }] });
    expect(await first.next()).toMatchObject({ sequence: 1, isFirst: true, storedAtMs });
    expect(await log.heldByAll()).toBe(1);
    await one.stop();
    const two = startDeliveryConsumer(bus, second);
    expect(await second.next()).toMatchObject({ sequence: 1, isFirst: false, storedAtMs });
    await two.stop();
  });

  it('a consumer that was deleted is made again also while what is held is acknowledged bit by bit', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const count = 100;
    for (let index = 0; index < count; index++) await log.persist(`d${index}`, Buffer.from('x'), at('lane'));
    const seen = collector();
    let isAnew = false;
    const consumer = startDeliveryConsumer(bus, { ...seen, onAnew: () => (isAnew = true) });
    const heads: HeldDelivery[] = [];
    while (heads.length < count) heads.push(await seen.next());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const manager = await jetstreamManager(connectionOf(bus));
    await manager.consumers.delete('DELIVERIES', 'ingest');
    for (const head of heads) {
      head.acknowledge();
      vi.advanceTimersByTime(5);
      await bus.flush();
    }
    expect(isAnew).toBe(true);
    vi.useRealTimers();
    await consumer.stop();
  });

  it('DELIVERYCONSUMER-4: a delivery of a stream that was made anew is not taken for the one of its sequence that is held', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const seen = collector();
    const heard: string[] = [];
    const onDelivery: typeof seen.onDelivery = (head) => {
      heard.push(`${head.lane} ${head.sequence}`);
      seen.onDelivery(head);
    };
    const consumer = startDeliveryConsumer(bus, { onDelivery, onAnew: () => heard.push('anew') });
    for (const id of ['a', 'b']) await log.persist(id, Buffer.from(id), at('before'));
    const first = await seen.next();
    await seen.next();
    const manager = await jetstreamManager(connectionOf(bus));
    await manager.streams.delete('DELIVERIES');
    await ensureStreams(bus, sizes);
    await log.persist('c', Buffer.from('c'), at('after'));
    await log.ensureConsumer();
    expect(await seen.next()).toMatchObject({ sequence: 1, lane: 'after' });
    expect(heard).toEqual(['before 1', 'before 2', 'anew', 'after 1']);
    first.acknowledge();
    expect(consumer.held).toBe(1);
    await consumer.stop();
  });

  it('DELIVERYCONSUMER-4: a stream that was made anew is told also where others were handed more of it than was heard of the one before', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const seen = collector();
    const heard: string[] = [];
    const onDelivery: typeof seen.onDelivery = (head) => {
      heard.push(`${head.lane} ${head.sequence}`);
      seen.onDelivery(head);
    };
    const consumer = startDeliveryConsumer(bus, { onDelivery, onAnew: () => heard.push('anew') });
    await log.persist('a', Buffer.from('a'), at('before'));
    const first = await seen.next();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const manager = await jetstreamManager(connectionOf(bus));
    await manager.streams.delete('DELIVERIES');
    await ensureStreams(bus, sizes);
    for (const id of ['b', 'c', 'd']) await log.persist(id, Buffer.from(id), at('after'));
    await log.ensureConsumer();
    const others = collector();
    const other = startDeliveryConsumer(bus, { ...others, heldMax: 2 });
    await others.next();
    await others.next();
    await vi.runOnlyPendingTimersAsync();
    vi.useRealTimers();
    expect(await seen.next()).toMatchObject({ sequence: 3, lane: 'after' });
    expect(heard).toEqual(['before 1', 'anew', 'after 3']);
    first.acknowledge();
    expect(consumer.held).toBe(1);
    await consumer.stop();
    await other.stop();
  });

  it('P27, P28: a stream that was made anew numbers what it takes in higher than those before it, whatever its bounds are set to later', async () => {
    const log = openDeliveryLog(bus);
    const manager = await jetstreamManager(connectionOf(bus));
    const sequences: number[] = [];
    const persist = async (id: string): Promise<void> => {
      const persisted = await log.persist(id, Buffer.from(id), at('lane'));
      sequences.push(persisted.stored ? persisted.sequence : 0);
    };
    await persist('a');
    for (const round of [1, 2]) {
      await manager.streams.delete('DELIVERIES');
      await ensureStreams(bus, { ...sizes, deliveriesFrom: undefined });
      await persist(`first-${round}`);
      await ensureStreams(bus, { ...sizes, deliveriesFrom: undefined, deliveriesMax: 10 + round });
      await persist(`second-${round}`);
    }
    expect(sequences).toEqual([...new Set(sequences)].toSorted((a, b) => a - b));
    expect(sequences[0]).toBe(1);
    expect(Number.isSafeInteger(sequences.at(-1))).toBe(true);
  });

  it('what was not acknowledged is there after a kill of the broker, and goes to the next consumer', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    await log.persist('kept', Buffer.from('x'), at('lane'));
    await broker.kill();
    await broker.restart();
    const seen = collector();
    const later = await connectBus({ servers: broker.url, name: 'later' });
    const consumer = startDeliveryConsumer(later, seen);
    expect((await seen.next()).sequence).toBe(1);
    await consumer.stop();
    await later.close(0);
  });

  it('P24: removes what was acknowledged and is old enough, and nothing behind the first that was not', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, seen);
    for (const id of ['a', 'b', 'c']) await log.persist(id, Buffer.from(id), at('lane'));
    const [a, , c] = [await seen.next(), await seen.next(), await seen.next()];
    await log.removeProcessed(Date.now() + 60_000);
    expect(await log.find('a', 'lane')).not.toBeNull();
    a.acknowledge();
    c.acknowledge();
    await acknowledgedUpTo(1);
    await log.removeProcessed(Date.now() - 60_000);
    expect(await log.find('a', 'lane')).not.toBeNull();
    await log.removeProcessed(Date.now() + 60_000);
    expect(
      [await log.find('a', 'lane'), await log.find('b', 'lane'), await log.find('c', 'lane')].map(
        (each) => each !== null,
      ),
    ).toEqual([false, true, true]);
    expect((await log.persist('a', Buffer.from('again'), at('lane'))).stored).toBe(true);
    await consumer.stop();
  });

  it('DELIVERYLOG-2: shows what is old, of all lanes and in order, and removes those of it that are named', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    await jetstream(connectionOf(bus)).publish('delivery.old', 'x');
    for (const id of ['a', 'b', 'c']) await log.persist(id, Buffer.from(id), at(`lane-${id}`));
    const names = async (after: number, before: number): Promise<string[]> =>
      (await log.readOld(after, before)).map(({ sequence, lane, id, host }) => `${sequence} ${lane} ${id} ${host}`);
    const future = Date.now() + 60_000;
    expect(await names(0, future)).toEqual(['1 null old ', '2 lane-a a host', '3 lane-b b host', '4 lane-c c host']);
    expect(await names(3, future)).toEqual(['4 lane-c c host']);
    expect(await names(0, (await log.read(3))?.storedAtMs ?? 0)).not.toContain('3 lane-b b host');
    await log.removeEach([2, 4]);
    await log.removeEach([1, 2, 4, 4, 1_000]);
    expect(await names(0, future)).toEqual(['3 lane-b b host']);
    expect(await names(3, future)).toEqual([]);
  });

  it('DELIVERYLOG-2: removes what is acknowledged only as far as it is told to be processed: its head may be gone', async () => {
    const asked: (readonly number[])[] = [];
    let processedUpTo = 2;
    const log = openDeliveryLog(bus, {
      processedUpTo: (from, end) => {
        asked.push([from, end]);
        return Promise.resolve(Math.min(processedUpTo, end));
      },
    });
    await log.ensureConsumer();
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, seen);
    for (const id of ['a', 'b', 'c']) await log.persist(id, Buffer.from(id), at('lane'));
    await seen.next();
    for (const head of [await seen.next(), await seen.next()]) head.acknowledge();
    const future = Date.now() + 60_000;
    // What was acknowledged behind it is so with everything before it, too.
    await log.removeEach([1]);
    await acknowledgedUpTo(3);
    expect(await log.removeProcessed(future)).toBe(true);
    expect(await log.read(2)).not.toBeNull();
    processedUpTo = Infinity;
    await log.removeProcessed(future);
    expect(await log.read(3)).toBeNull();
    expect(asked).toEqual([
      [2, 4],
      [2, 4],
    ]);
    await consumer.stop();
  });

  it('P24: says that there may be more to remove where something old stands behind what is not acknowledged', async () => {
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, seen);
    const [past, future] = [Date.now() - 60_000, Date.now() + 60_000];
    expect(await log.removeProcessed(future)).toBe(false);
    for (const id of ['a', 'b']) await log.persist(id, Buffer.from(id), at('lane'));
    const [a, b] = [await seen.next(), await seen.next()];
    b.acknowledge();
    await bus.flush();
    expect(await log.removeProcessed(past)).toBe(false);
    expect(await log.removeProcessed(future)).toBe(true);
    a.acknowledge();
    await acknowledgedUpTo(2);
    await log.removeProcessed(future);
    expect(await log.removeProcessed(future)).toBe(false);
    await consumer.stop();
  });

  it('DELIVERYLOG-3: full, it asks whether there is more that is processed, and not at once again where there was none', async () => {
    await ensureStreams(bus, { ...sizes, deliveriesMax: 2 });
    let asked = 0;
    let removable: number[] = [];
    const log = openDeliveryLog(bus, {
      makeRoom: async () => {
        asked += 1;
        const removed = removable.splice(0);
        await log.removeEach(removed);
        return removed.length > 0;
      },
    });
    await log.ensureConsumer();
    for (const id of ['a', 'b']) await log.persist(id, Buffer.from(id), at('lane'));
    for (let index = 0; index < 3; index++)
      await expect(log.persist('c', Buffer.from('c'), at('lane'))).rejects.toMatchObject({ tag: 'StoreRefused' });
    expect(asked).toBe(1);
    const later = performance.now() + 2_000;
    vi.useFakeTimers({ toFake: ['performance'] });
    vi.advanceTimersByTime(later);
    removable = [2];
    expect(await log.persist('c', Buffer.from('c'), at('lane'))).toMatchObject({ stored: true });
    removable = [3];
    expect(await log.persist('d', Buffer.from('d'), at('lane'))).toMatchObject({ stored: true });
    expect(asked).toBe(3);
  });

  it('DELIVERYLOG-3: full, it gives up what is processed, and refuses what is new only where nothing is', async () => {
    await ensureStreams(bus, { ...sizes, deliveriesBytesMax: MIB });
    const log = openDeliveryLog(bus);
    await log.ensureConsumer();
    const bytes = Buffer.alloc(200 * 1024, 'x');
    for (let index = 0; index < 5; index++) await log.persist(`d${index}`, bytes, at('lane'));
    await expect(log.persist('more', bytes, at('lane'))).rejects.toMatchObject({ tag: 'StoreRefused' });
    const seen = collector();
    const consumer = startDeliveryConsumer(bus, seen);
    for (let index = 0; index < 5; index++) (await seen.next()).acknowledge();
    await acknowledgedUpTo(5);
    expect(await log.persist('more', bytes, at('lane'))).toMatchObject({ stored: true });
    await consumer.stop();
  });
});
