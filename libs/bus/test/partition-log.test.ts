import { once } from 'node:events';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { type Proxy, startProxy, startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Bus,
  connectBus,
  ensureStreams,
  type LogEntry,
  openLog,
  type PartitionLog,
  streams,
} from '../src/index.ts';
import { type LogTrouble } from '../src/jetstream/partition-log.ts';

const MIB = 1024 * 1024;

let broker: TestBroker;
let proxy: Proxy;
let bus: Bus;

beforeEach(async () => {
  broker = await startTestBroker();
  proxy = await startProxy(broker.port);
  bus = await connectBus({ servers: proxy.url, name: 'owner' });
  await ensureStreams(bus, { partitions: 4, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB });
});
afterEach(async () => {
  await bus.close(0);
  await proxy.stop();
  await broker.stop();
});

const bytesOf = (text: string): Uint8Array => Buffer.from(text);
const commit = (log: PartitionLog, id: string, expectedSequence: number, bytes = bytesOf(id)) =>
  log.append(bytes, { commitId: id, expectedSequence });

async function read(log: PartitionLog, from = 1): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for await (const entry of log.read(from)) entries.push(entry);
  return entries;
}
const idsOf = (entries: readonly LogEntry[]): string[] => entries.map(({ commitId }) => commitId);

/** A log whose tries are short, and a promise of its first trouble. */
function impatientLog(over: Bus = bus): { log: PartitionLog; trouble: Promise<LogTrouble> } {
  const { promise, resolve } = Promise.withResolvers<LogTrouble>();
  return { log: openLog(over, 0, { attemptTimeoutMs: 150, onTrouble: resolve }), trouble: promise };
}

describe('appending', () => {
  it('P1: is taken with the sequence before it, and read back in order', async () => {
    const log = openLog(bus, 0);
    expect(await log.last()).toBeNull();
    expect(await commit(log, 'a', 0)).toEqual({ ok: true, sequence: 1 });
    expect(await commit(log, 'b', 1)).toEqual({ ok: true, sequence: 2 });
    expect(await log.last()).toMatchObject({ sequence: 2, commitId: 'b' });
    expect(idsOf(await read(log))).toEqual(['a', 'b']);
    expect(idsOf(await read(log, 2))).toEqual(['b']);
  });

  it('P1: takes the largest decision, 900 KiB', async () => {
    const log = openLog(bus, 0);
    const bytes = Buffer.alloc(900 * 1024, 'x');
    expect(await commit(log, 'big', 0, bytes)).toMatchObject({ ok: true });
    expect(Buffer.from((await log.last())?.bytes ?? []).equals(bytes)).toBe(true);
  });

  it('P1: partitions know nothing of each other, though they share a stream', async () => {
    const [one, two] = [openLog(bus, 1), openLog(bus, 2)];
    await commit(one, 'a', 0);
    expect(await commit(two, 'b', 0)).toEqual({ ok: true, sequence: 2 });
    expect(await commit(one, 'c', 1)).toEqual({ ok: true, sequence: 3 });
    expect(idsOf(await read(one))).toEqual(['a', 'c']);
  });

  it('P2: tells an owner that another committed in its place', async () => {
    const [zombie, owner] = [openLog(bus, 0), openLog(bus, 0)];
    await commit(zombie, 'a', 0);
    await commit(owner, 'opened', 1);
    expect(await commit(zombie, 'b', 1)).toMatchObject({
      ok: false,
      kind: 'deposed',
      last: { sequence: 2, commitId: 'opened' },
    });
    expect(idsOf(await read(owner))).toEqual(['a', 'opened']);
  });

  it('P2: recognises its own commit when the acknowledgement was lost', async () => {
    const { log, trouble } = impatientLog();
    proxy.blackhole('to-client');
    const append = commit(log, 'mine', 0);
    expect(await trouble).toMatchObject({ kind: 'unavailable', operation: 'append', attempt: 1 });
    proxy.cut();
    expect(await append).toEqual({ ok: true, sequence: 1 });
    expect(idsOf(await read(log))).toEqual(['mine']);
  });

  it('P2: repeats the same bytes when they were lost on the way', async () => {
    const { log, trouble } = impatientLog();
    proxy.blackhole('to-broker');
    const append = commit(log, 'mine', 0);
    await trouble;
    proxy.cut();
    expect(await append).toEqual({ ok: true, sequence: 1 });
    expect(idsOf(await read(log))).toEqual(['mine']);
  });

  it('P2: an append into a frozen broker is stored once when it wakes', async () => {
    const { log, trouble } = impatientLog();
    broker.pause();
    const append = commit(log, 'mine', 0);
    await trouble;
    broker.resume();
    expect(await append).toEqual({ ok: true, sequence: 1 });
    expect(idsOf(await read(log))).toEqual(['mine']);
  });

  it('P2: is deposed when another opened the partition while its own answer was lost', async () => {
    const { log, trouble } = impatientLog();
    await commit(openLog(bus, 0), 'a', 0);
    proxy.blackhole('to-broker');
    const append = commit(log, 'b', 1);
    await trouble;
    const other = await connectBus({ servers: broker.url, name: 'successor' });
    await commit(openLog(other, 0), 'opened', 1);
    proxy.cut();
    expect(await append).toMatchObject({ ok: false, kind: 'deposed', last: { commitId: 'opened' } });
    await other.close(0);
  });

  it('keeps every acknowledged commit, once and in order, over a kill of the broker in the middle', async () => {
    const log = openLog(bus, 0, { attemptTimeoutMs: 500 });
    const ids = Array.from({ length: 120 }, (_, index) => `commit-${index}`);
    let restarted: Promise<void> | undefined;
    let sequence = 0;
    for (const [index, id] of ids.entries()) {
      if (index === 60) restarted = broker.kill().then(() => broker.restart());
      const result = await commit(log, id, sequence);
      if (!result.ok) throw new Error('deposed by nobody');
      sequence = result.sequence;
    }
    await restarted;
    expect(idsOf(await read(log))).toEqual(ids);
  });

  it('P2: a log that has lost commits deposes its owner rather than being tried for ever', async () => {
    const log = openLog(bus, 0);
    expect(await commit(log, 'a', 10)).toEqual({ ok: false, kind: 'deposed', last: null });
    await commit(log, 'b', 0);
    expect(await commit(log, 'c', 10)).toMatchObject({ ok: false, kind: 'deposed', last: { sequence: 1 } });
  });

  it('ends when it is told to, though the broker stays away', async () => {
    const abort = new AbortController();
    const { log, trouble } = impatientLog();
    await broker.kill();
    const append = log
      .append(bytesOf('x'), { commitId: 'x', expectedSequence: 0 }, abort.signal)
      .catch((cause: unknown) => cause);
    await trouble;
    abort.abort(new Error('shutting down'));
    expect(await append).toMatchObject({ message: 'shutting down' });
  });

  it('P1: two at a time are a bug, not a race', async () => {
    const log = openLog(bus, 0);
    const first = commit(log, 'a', 0);
    await expect(commit(log, 'b', 0)).rejects.toThrow('P1');
    await first;
  });
});

describe('reading', () => {
  it("gives all of a log that is longer than a batch in count and in bytes, without other partitions' commits", async () => {
    const [one, two] = [openLog(bus, 1), openLog(bus, 2)];
    let [last, other] = [0, 0];
    for (let index = 0; index < 300; index += 1) {
      const result = await commit(one, `c${index}`, last, Buffer.alloc(30_000, index));
      last = result.ok ? result.sequence : -1;
      if (index % 50 === 0) {
        const noise = await commit(two, `n${index}`, other);
        other = noise.ok ? noise.sequence : -1;
      }
    }
    const entries = await read(one);
    expect(idsOf(entries)).toEqual(Array.from({ length: 300 }, (_, index) => `c${index}`));
    expect(entries.every(({ bytes }, index) => bytes.length === 30_000 && bytes[0] === index % 256)).toBe(true);
  });

  it('goes on where it was when the connection breaks between batches', async () => {
    const log = openLog(bus, 0);
    let last = 0;
    for (let index = 0; index < 300; index += 1) {
      const result = await commit(log, `c${index}`, last);
      last = result.ok ? result.sequence : -1;
    }
    const ids: string[] = [];
    for await (const { commitId } of log.read(1)) {
      if (ids.push(commitId) === 10) {
        const away = once(bus.events, 'disconnected');
        proxy.cut();
        await away;
      }
    }
    expect(ids).toHaveLength(300);
  });

  it('P3: ends where the log has lost its end meanwhile, for nobody will ever have it', async () => {
    const log = openLog(bus, 0);
    let last = 0;
    for (let index = 0; index < 300; index += 1) {
      const result = await commit(log, `c${index}`, last);
      last = result.ok ? result.sequence : -1;
    }
    const raw = await connect({ servers: broker.url });
    const ids: string[] = [];
    for await (const { commitId } of log.read(1)) {
      if (ids.push(commitId) !== 10) continue;
      await (await jetstreamManager(raw)).streams.delete(streams.journal);
      await ensureStreams(bus, { partitions: 4, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB });
    }
    await raw.close();
    expect(ids.length).toBeLessThan(300);
  });
});

describe('purging', () => {
  it('P8: keeps the commit that it goes up to, so that the compare-and-set goes on', async () => {
    const log = openLog(bus, 0);
    for (const [index, id] of ['a', 'b', 'c'].entries()) await commit(log, id, index);
    expect((await log.purgeTo(3)).purged).toBe(2);
    expect(idsOf(await read(log))).toEqual(['c']);
    expect(await commit(log, 'late', 0)).toMatchObject({ ok: false, kind: 'deposed' });
    expect(await commit(log, 'd', 3)).toEqual({ ok: true, sequence: 4 });
  });

  it('P8: does not go up to anything but a commit that stands in this log', async () => {
    const [one, two] = [openLog(bus, 1), openLog(bus, 2)];
    await commit(one, 'a', 0);
    await commit(two, 'b', 0);
    await expect(one.purgeTo(2)).rejects.toThrow('P8');
    await expect(one.purgeTo(3)).rejects.toThrow('P8');
    expect(idsOf(await read(one))).toEqual(['a']);
  });
});

describe('a full journal', () => {
  it('P8: is told of, and the commit goes through as soon as there is room', async () => {
    await ensureStreams(bus, { partitions: 4, journalBytesMax: MIB, logsBytesMax: 64 * MIB });
    const full = Promise.withResolvers<LogTrouble>();
    const [one, two] = [openLog(bus, 1), openLog(bus, 2, { onTrouble: full.resolve })];
    for (let index = 0; index < 3; index += 1) await commit(one, `c${index}`, index, Buffer.alloc(300 * 1024));
    const append = commit(two, 'waits', 0, Buffer.alloc(300 * 1024));
    expect(await full.promise).toMatchObject({ kind: 'full', operation: 'append' });
    expect(await one.bytesUsedRatio()).toBeGreaterThan(0.8);
    await one.purgeTo(3);
    expect(await append).toMatchObject({ ok: true });
  });
});
