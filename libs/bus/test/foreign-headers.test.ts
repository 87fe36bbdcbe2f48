/**
 * Headers that are none: the broker stores and passes on whatever bytes a client puts there, and a runner's client is the runner's. Whoever
 * is sent such a message reads what is readable of it, and all that comes behind it on its connection.
 */
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Bus,
  buckets,
  connectBus,
  encodeChunk,
  ensureStreams,
  type LeaseEvent,
  type LiveChunk,
  lookAtWrites,
  type LookedWrite,
  readChunks,
  startDeliveryConsumer,
  subjects,
  subscribeLiveChunks,
  watchLeases,
} from '../src/index.ts';
import { connectionOf } from '../src/wire/nats-bus.ts';

const MIB = 1024 * 1024;
/** Names with a blank and beyond ASCII, a value with half a line end, no name at all; one that is sound among them. */
const LINES = ['no name: 1', 'n\u00e4me: 2', 'Half: a\rb', ': 3', 'Penstock-Host: sound', 'nothing'];

const chunk = encodeChunk({
  ...{ stage: 's', attempt: 1, offset: 0, at: 1 },
  parts: [['stdout', 2]],
  output: Buffer.from('x\n'),
});

let broker: TestBroker;
let bus: Bus;
/** Of a client that sends what it likes. */
let stranger: Bus;

beforeEach(async () => {
  broker = await startTestBroker();
  [bus, stranger] = await Promise.all(
    ['service', 'stranger'].map((name) => connectBus({ servers: broker.url, name })) as [Promise<Bus>, Promise<Bus>],
  );
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB });
}, 60_000);

afterEach(async () => {
  await Promise.all([bus.close(0), stranger.close(0)]);
  await broker.stop();
}, 60_000);

function unreadable(lines: readonly string[] = LINES): MsgHdrs {
  const head = headers() as MsgHdrs & { encode(): Uint8Array };
  head.encode = () => Buffer.from(`NATS/1.0\r\n${lines.join('\r\n')}\r\n\r\n`);
  return head;
}

async function stored(subject: string, bytes: Uint8Array, lines?: readonly string[]): Promise<void> {
  const options = { timeout: 10_000, headers: unreadable(lines) };
  const answer = await connectionOf(stranger).request(subject, bytes, options);
  expect(answer.json()).not.toHaveProperty('error');
}

/** What the bus answers to a request with these headers: its body. */
async function asked(lines: readonly string[]): Promise<unknown> {
  const responder = bus.respond('asked', (body) => body);
  await bus.flush();
  const options = { timeout: 10_000, headers: unreadable(lines) };
  const answer = await connectionOf(stranger).request('asked', '[1]', options);
  responder.stop();
  return answer.json();
}

/** It would be broken off, or hear nothing more, where one of its readers had thrown. */
async function isWell(): Promise<void> {
  await bus.flush(2_000);
  expect(bus.connected).toBe(true);
}

function next<T>(): { readonly take: (value: T) => void; readonly value: Promise<T> } {
  const { promise, resolve } = Promise.withResolvers<T>();
  return { take: resolve, value: promise };
}

describe('a message with headers that are none', () => {
  it('P5: is the renewal of a lease like any other to who watches, and the leases behind it are seen', async () => {
    const lease = JSON.stringify({ runner: 'r1' });
    await stored(`$KV.${buckets.runners}.r1.before`, Buffer.from(lease));
    const seen: LeaseEvent<unknown>[] = [];
    const last = next<void>();
    const watch = watchLeases(bus, buckets.runners, (event) => {
      seen.push(event);
      if (event.key === 'r2.last') last.take();
    });
    await watch.ready;
    await stored(`$KV.${buckets.runners}.r1.after`, Buffer.from(lease));
    await stored(`$KV.${buckets.runners}.r2.last`, Buffer.from(lease));
    await last.value;
    expect(seen.map(({ kind, key }) => [kind, key])).toEqual([
      ['put', 'r1.before'],
      ['put', 'r1.after'],
      ['put', 'r2.last'],
    ]);
    expect(watch.current).toBe(true);
    watch.stop();
    await isWell();
  }, 60_000);

  it("P37: of a tenant's runner is looked at as one without them", async () => {
    const looked = next<LookedWrite>();
    const subscription = lookAtWrites(bus, (write) => looked.take(write));
    await bus.flush();
    const subject = subjects.looked(`$KV.${buckets.runners}.fr_1.s`);
    connectionOf(stranger).publish(subject, '{}', { headers: unreadable([...LINES, ...names(10_000)]) });
    const { kind, runner, ttlMs, isEnd, size } = await looked.value;
    expect({ kind, runner, ttlMs, isEnd }).toEqual({ kind: 'lease', runner: 'fr_1', ttlMs: Number.NaN, isEnd: false });
    // All that waits with it counts, read or not (WRITES-4).
    expect(size).toBeGreaterThan(names(10_000).join('\r\n').length);
    subscription.stop();
    await isWell();
  }, 60_000);

  it('P21: is a chunk like any other, live and stored', async () => {
    const live = next<LiveChunk>();
    const subscription = subscribeLiveChunks(bus, 'run', (chunk) => live.take(chunk));
    await bus.flush();
    await stored(subjects.log('run', 'r1'), chunk);
    expect(await live.value).toMatchObject({ sequence: 1, lastSequenceOfSubject: 0, runner: 'r1' });
    expect(await Array.fromAsync(readChunks(bus, 'run', 1))).toMatchObject([{ sequence: 1, runner: 'r1' }]);
    subscription.stop();
    await isWell();
  }, 60_000);

  it('P24: is a delivery like any other, with what is readable of its head', async () => {
    await stored(subjects.delivery('lane', 'id'), Buffer.from('{}'));
    const host = next<string>();
    const consumer = startDeliveryConsumer(bus, {
      onDelivery: (held) => {
        host.take(held.host);
        held.acknowledge();
      },
    });
    expect(await host.value).toBe('sound');
    await consumer.stop();
    await isWell();
  }, 60_000);

  it('is a request like any other, and so is an answer', async () => {
    expect(await asked(LINES)).toEqual([1]);
    connectionOf(stranger).subscribe('strange', {
      callback: (_error, message) => void message.respond('[2]', { headers: unreadable() }),
    });
    await stranger.flush();
    expect(await bus.request('strange', {}, { timeoutMs: 10_000 })).toEqual([2]);
    await isWell();
  }, 60_000);

  it("P21: of the broker's own names is told from what the broker says, live and stored", async () => {
    const own = ['Nats-Sequence: 77', 'Nats-Last-Sequence: 76', 'Nats-Subject: log.other.r2', 'Nats-Num-Pending: 9'];
    const live = next<LiveChunk>();
    const subscription = subscribeLiveChunks(bus, 'run', (each) => live.take(each));
    await bus.flush();
    for (let count = 0; count < 3; count++) await stored(subjects.log('run', 'r1'), chunk, own);
    expect(await live.value).toMatchObject({ sequence: 1, lastSequenceOfSubject: 0 });
    const chunks = await Array.fromAsync(readChunks(bus, 'run', 1));
    expect(chunks.map(({ sequence, runner }) => [sequence, runner])).toEqual([
      [1, 'r1'],
      [2, 'r1'],
      [3, 'r1'],
    ]);
    subscription.stop();
    await isWell();
  }, 60_000);

  it('HEADERS-2: takes no longer to read for having many names, and what the broker adds behind them is read', async () => {
    // Compared with each other they would take minutes.
    const request = await asked(names(130_000));
    expect(request).toEqual([1]);
    // The broker stores no more of them than 64 KiB.
    await stored(subjects.log('run', 'r1'), chunk, names(10_000));
    expect(await Array.fromAsync(readChunks(bus, 'run', 1))).toMatchObject([{ sequence: 1, runner: 'r1' }]);
    await isWell();
  }, 60_000);
});

function names(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${index.toString(36)}:`);
}
