import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  truncateSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BrokerAway,
  connectBus,
  createLogWriter,
  ensureStreams,
  LogQueueFull,
  readChunks,
  type Bus,
  type LogWriter,
} from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ChunkStore, type OutgoingLog } from '../src/report/chunk-store.ts';

const STAGES = 700;
const CHUNKS = 4;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-chunks-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function storeOn(writer: LogWriter): ChunkStore {
  return new ChunkStore({ writer, folder: join(folder, 'spool'), spoolBytesMax: 1024 ** 2, log: silentLogger() }, []);
}

/** Whatever this process does with the open file is an error from then on. */
function loseFile(path: string): void {
  for (const fd of readdirSync('/proc/self/fd'))
    if (existsSync(`/proc/self/fd/${fd}`) && readlinkSync(`/proc/self/fd/${fd}`) === path) closeSync(Number(fd));
}

function append(log: OutgoingLog, offset: number): void | Promise<void> {
  return log.append({ stage: 's', attempt: 1, offset, at: 0, parts: [['stdout', 1]], output: Buffer.from('x') });
}

describe('the chunks of 700 stages that write while the broker is away (P18, P21)', () => {
  let broker: TestBroker;
  let bus: Bus;
  beforeEach(async () => {
    broker = await startTestBroker();
    bus = await connectBus({ servers: broker.url, name: 'runner' });
    await ensureStreams(bus, { partitions: 1, journalBytesMax: 16 * 1024 ** 2, logsBytesMax: 512 * 1024 ** 2 });
  });
  afterEach(async () => {
    broker.resume();
    await bus.close();
    await broker.stop();
  });

  it('wait, and are all there when it is back', async () => {
    const writer = createLogWriter(bus);
    const store = storeOn(writer);
    broker.pause();
    const logs = Array.from({ length: STAGES }, (_, number) => store.open(`run-${number}`, 'r1'));
    for (let offset = 0; offset < CHUNKS; offset += 1) for (const log of logs) void append(log, offset);
    broker.resume();
    await Promise.all(logs.map((log) => log.stored()));
    for (const number of [0, 300, STAGES - 1]) {
      const offsets = new Set<number>();
      for await (const { chunk } of readChunks(bus, `run-${number}`, 1)) offsets.add(chunk.offset);
      expect([...offsets].toSorted()).toEqual([0, 1, 2, 3]);
    }
    writer.close();
  });
});

describe('a chunk that is given up', () => {
  it('does not count as stored: its result waits for the next start', async () => {
    const writer: LogWriter = {
      pending: 0,
      publish: () => Promise.reject(new BrokerAway('the log writer is closed', true)),
      room: () => Promise.reject(new BrokerAway('the log writer is closed', true)),
      close: () => {},
    };
    const told: unknown[] = [];
    const log = new ChunkStore(
      {
        writer,
        folder: join(folder, 'spool'),
        spoolBytesMax: 1024 ** 2,
        log: { ...silentLogger(), error: (...line: unknown[]) => void told.push(line) } as never,
      },
      [],
    ).open('run-1', 'r1');
    void append(log, 0);
    const kept = log.keep();
    const outcome = await Promise.race([
      log.stored().then(() => 'stored'),
      new Promise((resolve) => setImmediate(resolve, 'waits')),
    ]);
    expect(outcome).toBe('waits');
    expect(kept?.inline).toHaveLength(1);
    // Nobody sends it again, and it is no error.
    expect(told).toEqual([]);
  });
});

describe('a chunk that the full queue refuses (P18)', () => {
  it('is brought again when there is room, and counts as stored only when it was acknowledged', async () => {
    let published = 0;
    const acknowledged = Promise.withResolvers<{ sequence: number }>();
    const room = Promise.withResolvers<void>();
    const writer: LogWriter = {
      pending: 0,
      publish: () => (published++ === 0 ? Promise.reject(new LogQueueFull(1_024)) : acknowledged.promise),
      room: () => room.promise,
      close: () => {},
    };
    const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));
    const log = storeOn(writer).open('run-1', 'r1');
    void append(log, 0);
    let isStored = false;
    void log.stored().then(() => (isStored = true));
    room.resolve();
    await turn();
    expect([published, isStored]).toEqual([2, false]);
    acknowledged.resolve({ sequence: 1 });
    await turn();
    expect(isStored).toBe(true);
  });
});

describe('chunks that went to disk', () => {
  const full = 512;
  const turn = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));
  function writerThatIs(pending: number): { writer: LogWriter; setPending(to: number): void; published: () => number } {
    let published = 0;
    const writer = {
      pending,
      publish: () => {
        published += 1;
        return Promise.resolve({ sequence: published });
      },
      room: () => Promise.resolve(),
      close: () => {},
    };
    return { writer, setPending: (to) => (writer.pending = to), published: () => published };
  }
  const files = (): readonly string[] => readdirSync(join(folder, 'spool'));

  it('leave no file once the broker has caught up with them, and those that follow go straight to it (CHUNKSTORE-2)', async () => {
    const { writer, setPending, published } = writerThatIs(full);
    const store = storeOn(writer);
    const log = store.open('run-1', 'r1');
    void append(log, 0);
    expect([published(), files().length]).toEqual([0, 1]);
    setPending(0);
    await log.stored();
    await turn();
    expect([published(), files(), store.spooledBytes]).toEqual([1, [], 0]);
    void append(log, 1);
    expect([published(), files()]).toEqual([2, []]);
    await log.stored();
  });

  it('go with an attempt that is dropped, and one that has none there is dropped as well', () => {
    const { writer } = writerThatIs(full);
    const store = storeOn(writer);
    const spooled = store.open('run-1', 'r1');
    void append(spooled, 0);
    expect(files()).toHaveLength(1);
    spooled.drop();
    expect([files(), store.spooledBytes]).toEqual([[], 0]);
    expect(() => store.open('run-2', 'r1').drop()).not.toThrow();
  });

  it('are missing from the log where the disk does not give them back, and nobody waits for them', async () => {
    const { writer, setPending, published } = writerThatIs(full);
    const store = storeOn(writer);
    const log = store.open('run-1', 'r1');
    void append(log, 0);
    truncateSync(join(folder, 'spool', files()[0] ?? ''), 3);
    setPending(0);
    await log.stored();
    expect([published(), files(), store.spooledBytes]).toEqual([0, [], 0]);
    void append(log, 1);
    await log.stored();
    expect(published()).toBe(1);
  });

  it('hold nobody up where the disk has an error for their file to the end', async () => {
    const { writer, setPending } = writerThatIs(full);
    const store = storeOn(writer);
    const [log, dropped] = [store.open('run-1', 'r1'), store.open('run-2', 'r1')];
    for (const each of [log, dropped]) void append(each, 0);
    for (const file of files()) loseFile(join(folder, 'spool', file));
    setPending(0);
    await log.stored();
    expect(() => dropped.drop()).not.toThrow();
    expect([files(), store.spooledBytes]).toEqual([[], 0]);
  });

  it('count as stored also where their file cannot be removed', async () => {
    const acknowledged = Promise.withResolvers<{ sequence: number }>();
    const log = storeOn({ ...writerThatIs(0).writer, publish: () => acknowledged.promise }).open('run-1', 'r1');
    const output = Buffer.alloc(20_000, 'x');
    void log.append({ stage: 's', attempt: 1, offset: 0, at: 0, parts: [['stdout', output.length]], output });
    const [file = ''] = log.keep()?.files ?? [];
    rmSync(join(folder, 'spool', file));
    mkdirSync(join(folder, 'spool', file, 'something'), { recursive: true });
    acknowledged.resolve({ sequence: 1 });
    await log.stored();
    expect(files()).toEqual([file]);
  });
});

it('P18: what an earlier process has left on disk is brought a chunk at a time, as the writer has room', async () => {
  const room = Promise.withResolvers<void>();
  const writer: LogWriter = {
    pending: 0,
    publish: () => Promise.resolve({ sequence: 1 }),
    room: () => room.promise,
    close: () => {},
  };
  const log = storeOn(writer).open('run-1', 'r1');
  let isBrought = false;
  const bringing = log.resend(Buffer.from('x')).then(() => (isBrought = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isBrought).toBe(false);
  room.resolve();
  await bringing;
  expect(isBrought).toBe(true);
});
