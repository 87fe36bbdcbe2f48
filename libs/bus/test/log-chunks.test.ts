import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  type Bus,
  connectBus,
  createLogWriter,
  encodeChunk,
  ensureStreams,
  type LiveChunk,
  type LogWriter,
  markLogEnds,
  purgeLogs,
  readAllChunks,
  readChunks,
  type StoredChunk,
  subjects,
  subscribeLiveChunks,
} from '../src/index.ts';
import { allLastChunks, lastChunks } from '../src/jetstream/log-reader.ts';
import { wireOf } from '../src/wire/nats-bus.ts';

const MIB = 1024 * 1024;

let broker: TestBroker;
let bus: Bus;
let writer: LogWriter;

beforeEach(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'runner' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 256 * MIB });
  writer = createLogWriter(bus, { attemptTimeoutMs: 500 });
});
afterEach(async () => {
  vi.restoreAllMocks();
  writer.close();
  await bus.close(0);
  await broker.stop();
});

function chunk(offset: number, text = `line ${offset}\n`): Uint8Array {
  const output = Buffer.from(text);
  return encodeChunk({
    stage: 'build',
    attempt: 1,
    offset,
    at: 1_700_000_000_000,
    parts: [['stdout', output.length]],
    output,
  });
}

async function read(runId: string, from = 1): Promise<StoredChunk[]> {
  const chunks: StoredChunk[] = [];
  for await (const stored of readChunks(bus, runId, from)) chunks.push(stored);
  return chunks;
}

/** The next batches that are read come from a stand-in for a replica that has nothing behind this sequence. */
function replicaIsBehind(last: number, batches: number): void {
  vi.restoreAllMocks();
  const wire = wireOf(bus);
  const exchange = wire.exchange.bind(wire);
  let left = batches;
  vi.spyOn(wire, 'exchange').mockImplementation((subject, payload, headers, timeoutMs, onMessage, onEnd) => {
    const isOld = subject.startsWith('$JS.API.DIRECT.GET.') && left > 0;
    if (isOld) left -= 1;
    return exchange(
      subject,
      payload,
      headers,
      timeoutMs,
      (message, handle) => {
        if (isOld && Number(message.headers?.get('Nats-Sequence') || 0) > last) return handle.touch();
        if (isOld && message.headers?.has('Nats-UpTo-Sequence') === true)
          message.headers.set('Nats-UpTo-Sequence', String(last));
        onMessage(message, handle);
      },
      onEnd,
    );
  });
}

const offsetsOf = (chunks: readonly StoredChunk[]): number[] => chunks.map((stored) => stored.chunk.offset);

describe('log chunks', () => {
  it('are read back in order, of all runners of the run and of no other run', async () => {
    await Promise.all([
      writer.publish(subjects.log('run1', 'r1'), chunk(0)),
      writer.publish(subjects.log('run2', 'r1'), chunk(100)),
      writer.publish(subjects.log('run1', 'r2'), chunk(1)),
    ]);
    const chunks = await read('run1');
    expect(chunks.map(({ sequence, runner }) => [sequence, runner])).toEqual([
      [1, 'r1'],
      [3, 'r2'],
    ]);
    expect(Buffer.from(chunks[1]?.chunk.output ?? []).toString()).toBe('line 1\n');
    expect(offsetsOf(await read('run1', 2))).toEqual([1]);
    expect((await lastChunks(bus, 'run1')).toSorted((one, other) => one.sequence - other.sequence)).toEqual([
      { runner: 'r1', sequence: 1 },
      { runner: 'r2', sequence: 3 },
    ]);
  });

  it('are not sent again to who asks for the last of each runner and knows them', async () => {
    for (const runner of ['r1', 'r2', 'r3']) await writer.publish(subjects.log('run1', runner), chunk(0));
    const asked = vi.spyOn(wireOf(bus), 'exchange');
    const after = async (sequence: number): Promise<readonly string[]> =>
      (await lastChunks(bus, 'run1', undefined, sequence)).map(({ runner }) => runner);
    expect(await after(1)).toEqual(['r2', 'r3']);
    expect(await after(3)).toEqual([]);
    expect(asked.mock.calls.map(([, request]) => JSON.parse(String(request)).seq)).toEqual([2, 4]);
    await writer.publish(subjects.log('run1', 'r1'), chunk(7));
    expect(await after(3)).toEqual(['r1']);
  });

  it('of a run without output are none, not an error', async () => {
    expect(await read('quiet')).toEqual([]);
    expect(await lastChunks(bus, 'quiet')).toEqual([]);
  });

  it('P21: are not taken for missing by who reads from a replica that is behind', async () => {
    for (const offset of [0, 7, 14]) await writer.publish(subjects.log('run1', 'r1'), chunk(offset));
    await writer.publish(subjects.log('run1', 'r2'), chunk(0));
    replicaIsBehind(2, 2);
    expect(offsetsOf(await read('run1'))).toEqual([0, 7, 14, 0]);
    replicaIsBehind(0, 1);
    expect(offsetsOf(await read('run1'))).toEqual([0, 7, 14, 0]);
    replicaIsBehind(3, 1);
    expect((await lastChunks(bus, 'run1')).map(({ runner }) => runner).toSorted()).toEqual(['r1', 'r2']);
    replicaIsBehind(0, 100);
    await expect(lastChunks(bus, 'run1')).rejects.toThrow('replicas lack');
  });

  it('P21: are proved to be all there are without a look at other runs, also where the last one of all is gone', async () => {
    for (const runId of ['run1', 'run2', 'run3']) await writer.publish(subjects.log(runId, 'r1'), chunk(0));
    const asked = vi.spyOn(wireOf(bus), 'call');
    expect(await allLastChunks(bus, 'run1')).toHaveLength(1);
    expect(asked.mock.calls.map(([subject]) => subject)).toEqual(['$JS.API.STREAM.INFO.LOGS']);
    expect(await allLastChunks(bus, 'quiet')).toEqual([]);
    await purgeLogs(bus, 'run3');
    expect(await allLastChunks(bus, 'quiet')).toEqual([]);
    expect(await Array.fromAsync(readAllChunks(bus, 'run3', 1))).toEqual([]);
    for (const runId of ['run1', 'run2']) await purgeLogs(bus, runId);
    expect(await allLastChunks(bus, 'run1')).toEqual([]);
  });

  it('P21: of more runners than the broker answers for at once are read, all of them, also the last of each', async () => {
    const runners = Array.from({ length: 2_050 }, (_, index) => `r${index}`);
    const wide = createLogWriter(bus, { waitingMax: runners.length });
    await Promise.all(runners.map((runner) => wide.publish(subjects.log('run1', runner), chunk(0))));
    wide.close();
    await writer.publish(subjects.log('run2', 'r1'), chunk(0));
    expect(await Array.fromAsync(readAllChunks(bus, 'run1', 1))).toHaveLength(2_050);
    const sequences = runners.map((_, index) => index + 1);
    for (const chunks of [await lastChunks(bus, 'run1'), await allLastChunks(bus, 'run1')]) {
      expect(chunks.map(({ runner }) => runner).toSorted()).toEqual(runners.toSorted());
      expect(chunks.map(({ sequence }) => sequence).toSorted((one, other) => one - other)).toEqual(sequences);
    }
    replicaIsBehind(2_049, 3);
    expect(await lastChunks(bus, 'run1')).toHaveLength(2_050);
    replicaIsBehind(2_049, 3);
    expect(await allLastChunks(bus, 'run1')).toHaveLength(2_050);
    vi.restoreAllMocks();
    const log = { runner: 'r7', stage: 'build', attempt: 1 };
    const { signal } = new AbortController();
    const [mark] = await markLogEnds(bus, 'run1', [log], 0, signal);
    expect(await markLogEnds(bus, 'run1', [log], 0, signal)).toEqual([mark]);
  });

  it('P20: come live as they are stored, each naming its predecessor', async () => {
    const live: LiveChunk[] = [];
    const three = Promise.withResolvers<void>();
    subscribeLiveChunks(bus, 'run1', (each) => live.push(each) === 3 && three.resolve());
    await bus.flush();
    for (const offset of [0, 1, 2]) await writer.publish(subjects.log('run1', 'r1'), chunk(offset));
    await three.promise;
    expect(
      live.map(({ sequence, lastSequenceOfSubject, runner, chunk: { offset } }) => [
        sequence,
        lastSequenceOfSubject,
        runner,
        offset,
      ]),
    ).toEqual([
      [1, 0, 'r1', 0],
      [2, 1, 'r1', 1],
      [3, 2, 'r1', 2],
    ]);
  });

  it('larger than a batch of the reader in all are read whole', async () => {
    const text = 'x'.repeat(60_000);
    // A try that is given up stores its chunk twice, or behind its successors: this is about one of each, in order.
    const patient = createLogWriter(bus, { attemptTimeoutMs: 30_000 });
    const stored: Promise<unknown>[] = [];
    for (let offset = 0; offset <= 100; offset += 1) {
      await patient.room();
      stored.push(patient.publish(subjects.log('run1', 'r1'), chunk(offset, text)));
    }
    await Promise.all(stored);
    patient.close();
    expect(offsetsOf(await read('run1'))).toEqual(Array.from({ length: 101 }, (_, offset) => offset));
  });

  it('P18: are stored all the same when the broker is killed among them', async () => {
    const stored: Promise<unknown>[] = [];
    for (let offset = 0; offset < 400; offset += 1) {
      stored.push(writer.publish(subjects.log('run1', 'r1'), chunk(offset)));
      if (offset === 200) {
        await stored[100];
        await broker.kill();
      }
    }
    await broker.restart();
    await Promise.all(stored);
    const offsets = new Set(offsetsOf(await read('run1')));
    expect([...offsets].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 400 }, (_, offset) => offset));
    expect(writer.pending).toBe(0);
  });

  it('beyond the bounds wait, and beyond these are refused', async () => {
    const narrow = createLogWriter(bus, { inFlightMax: 2, waitingMax: 3 });
    const taken = [0, 1, 2, 3, 4].map((offset) => narrow.publish(subjects.log('run1', 'r1'), chunk(offset)));
    await expect(narrow.publish(subjects.log('run1', 'r1'), chunk(5))).rejects.toMatchObject({ tag: 'LogQueueFull' });
    await narrow.room();
    await Promise.all(taken);
    expect(offsetsOf(await read('run1'))).toEqual([0, 1, 2, 3, 4]);
    narrow.close();
  });

  it('that are not acknowledged when the writer is closed are given back', async () => {
    await broker.kill();
    const waiting = writer.publish(subjects.log('run1', 'r1'), chunk(0)).catch((cause: unknown) => cause);
    writer.close();
    expect(await waiting).toMatchObject({ tag: 'BrokerAway' });
    await expect(writer.room()).rejects.toMatchObject({ tag: 'BrokerAway' });
  });
});

describe('marks (P21)', () => {
  const log = { runner: 'r1', stage: 'build', attempt: 1 };
  const signal = new AbortController().signal;

  it('stand behind what a runner has stored, are seen live, and the first one counts however often they are stored', async () => {
    await writer.publish(subjects.log('run1', 'r1'), chunk(0));
    const heard = Promise.withResolvers<LiveChunk>();
    subscribeLiveChunks(bus, 'run1', (live) => live.chunk.mark === true && heard.resolve(live));
    await bus.flush();
    const [first] = await markLogEnds(bus, 'run1', [log], 0, signal);
    expect(await heard.promise).toMatchObject({ runner: 'r1', sequence: first, lastSequenceOfSubject: 1 });
    await writer.publish(subjects.log('run1', 'r1'), chunk(7));
    const [again] = await markLogEnds(bus, 'run1', [log], 0, signal);
    expect(again).toBe(first);
    expect((await read('run1')).map((stored) => stored.chunk.mark ?? stored.chunk.offset)).toEqual([0, true, 7, true]);
  });

  it('the first one counts also where the replica that is asked lacks it', async () => {
    const [first] = await markLogEnds(bus, 'run1', [log], 0, signal);
    replicaIsBehind(0, 1);
    expect(await markLogEnds(bus, 'run1', [log], 0, signal)).toEqual([first]);
  });

  it('of many attempts of a run are stored together, each with its own sequence', async () => {
    const logs = Array.from({ length: 200 }, (_, index) => ({ ...log, stage: `s${index}`, runner: `r${index % 7}` }));
    const [late] = await markLogEnds(bus, 'run1', [logs[150] ?? log], 0, signal);
    const sequences = await markLogEnds(bus, 'run1', logs, 0, signal);
    expect(new Set(sequences).size).toBe(200);
    expect(sequences[150]).toBe(late);
  });
});

describe('P34: the chunks of a deleted run', () => {
  it('are removed, of all its runners, and those of no other run', async () => {
    for (const runner of ['r1', 'r2']) await writer.publish(subjects.log('run1', runner), chunk(0));
    await writer.publish(subjects.log('run2', 'r1'), chunk(0));
    await purgeLogs(bus, 'run1');
    expect(await read('run1')).toEqual([]);
    expect(await read('run2')).toHaveLength(1);
    await purgeLogs(bus, 'run3');
  });
});
