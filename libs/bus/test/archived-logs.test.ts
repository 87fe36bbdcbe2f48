/** What the archive of logs is made of: which runs LOGS has, and frames of their chunks (P34). */
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  bytesOfChunk,
  type Bus,
  chunkBytes,
  connectBus,
  createLogWriter,
  decodeFrame,
  encodeChunk,
  encodeFrame,
  ensureStreams,
  FRAME_BYTES,
  loggedRuns,
  logsRoom,
  purgeLogs,
  readChunks,
  subjects,
} from '../src/index.ts';

const MEBIBYTE = 1024 * 1024;
let broker: TestBroker;
let bus: Bus;
beforeAll(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'archive' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * MEBIBYTE, logsBytesMax: 8 * MEBIBYTE });
});
afterAll(async () => {
  await bus.close();
  await broker.stop();
});

it('LOGS says which runs it has, how many chunks of each and how full it is; what is purged is gone', async () => {
  expect(await loggedRuns(bus)).toEqual({ runs: [], spans: [['', '~']], share: 0 });
  const writer = createLogWriter(bus);
  const output = Buffer.alloc(64 * 1024, 'x');
  const bytes = encodeChunk({ stage: 's', attempt: 1, offset: 0, at: 1, parts: [['stdout', output.length]], output });
  for (const [run, runner] of ['b r1', 'a r1', 'b r2', 'b r1'].map((each) => each.split(' ')))
    await writer.publish(subjects.log(run as string, runner as string), bytes);
  writer.close();
  const { runs, share } = await loggedRuns(bus);
  expect(runs).toEqual([
    { runId: 'a', chunks: 1 },
    { runId: 'b', chunks: 3 },
  ]);
  expect(share).toBeGreaterThan(0.03);
  expect(share).toBeLessThan(0.04);
  await purgeLogs(bus, 'b');
  expect((await loggedRuns(bus)).runs).toEqual([{ runId: 'a', chunks: 1 }]);
});

it('of more runs than are named at once LOGS says the oldest, the newest and some between, others each time', async () => {
  for (const { runId } of (await loggedRuns(bus)).runs) await purgeLogs(bus, runId);
  const writer = createLogWriter(bus);
  const output = Buffer.from('x');
  const bytes = encodeChunk({ stage: 's', attempt: 1, offset: 0, at: 1, parts: [['stdout', 1]], output });
  const written = Array.from({ length: 40 }, (_, index) => `many-${String(index).padStart(2, '0')}`);
  for (const run of written.toReversed()) await writer.publish(subjects.log(run, 'r1'), bytes);
  writer.close();
  const named = new Set<string>();
  // The chance that any is never named among these is one in 10^11.
  for (let look = 0; look < 600; look += 1) {
    const { runs, spans } = await loggedRuns(bus, 5);
    const ids = runs.map(({ runId }) => runId);
    expect(spans).toHaveLength(3);
    const isNamed = (run: string): boolean => spans.some(([from, to]) => from <= run && run <= to);
    expect(written.filter(isNamed)).toEqual(ids);
    expect(['many-00-gone', 'nobody-yet'].filter(isNamed)).toHaveLength(2);
    expect([ids.slice(0, 5), ids.slice(-5)]).toEqual([written.slice(0, 5), written.slice(-5)]);
    expect(ids).toHaveLength(15);
    for (const id of ids) named.add(id);
  }
  expect([...named].toSorted()).toEqual(written);
  const all = await loggedRuns(bus, 14);
  expect(all.runs.map(({ runId }) => runId)).toEqual(written);
  expect([all.spans.at(0)?.[0], all.spans.at(-1)?.[1]]).toEqual(['', '~']);
  for (const run of written) await purgeLogs(bus, run);
});

it('of a run the oldest chunks can be removed alone, and what its chunks take is told by some of them', async () => {
  const writer = createLogWriter(bus);
  const write = async (run: string, runner: string, at: number, bytes: number): Promise<void> => {
    const output = Buffer.alloc(bytes, 'x');
    const chunk = { stage: 's', attempt: 1, offset: at, at, parts: [['stdout', bytes] as const], output };
    await writer.publish(subjects.log(run, runner), encodeChunk(chunk));
  };
  for (let at = 0; at < 20; at += 1) {
    await write('large', `r${at % 2}`, at, 32 * 1024);
    await write('small', 'r1', at, 10);
  }
  writer.close();
  const { share: before, bytesMax } = await logsRoom(bus);
  expect([before, bytesMax]).toEqual([(await loggedRuns(bus)).share, 8 * MEBIBYTE]);
  expect(await chunkBytes(bus, 'large')).toBeGreaterThan(32 * 1024);
  expect(await chunkBytes(bus, 'large')).toBeLessThan(33 * 1024);
  expect(await chunkBytes(bus, 'small')).toBeLessThan(300);
  expect(await chunkBytes(bus, 'nothing')).toBe(0);
  await purgeLogs(bus, 'large', 5);
  const left = await Array.fromAsync(readChunks(bus, 'large', 1, new AbortController().signal));
  expect(left.map(({ chunk }) => chunk.at)).toEqual([15, 16, 17, 18, 19]);
  expect((await logsRoom(bus)).share).toBeLessThan(before);
  expect((await loggedRuns(bus)).runs).toContainEqual({ runId: 'small', chunks: 20 });
  for (const run of ['large', 'small']) await purgeLogs(bus, run);
});

it('what the chunks of a run take is not told by its first ones alone', async () => {
  const writer = createLogWriter(bus);
  for (let at = 0; at < 40; at += 1) {
    const size = at < 10 ? 10 : 32 * 1024;
    const chunk = {
      stage: 's',
      attempt: 1,
      offset: at,
      at,
      parts: [['stdout', size] as const],
      output: Buffer.alloc(size),
    };
    await writer.publish(subjects.log('late', 'r1'), encodeChunk(chunk));
  }
  writer.close();
  const told = await Promise.all(Array.from({ length: 16 }, () => chunkBytes(bus, 'late')));
  expect(told.reduce((sum, each) => sum + each, 0) / told.length).toBeGreaterThan(12 * 1024);
  await purgeLogs(bus, 'late');
});

it('a frame gives back the chunks as LOGS had them, byte for byte', async () => {
  const writer = createLogWriter(bus);
  const texts = ['one\n', 'z\u00fcrich \ud83d\ude80\r\n', 'not the end of a line'];
  let offset = 0;
  for (const [index, text] of texts.entries()) {
    const output = Buffer.concat([Buffer.from(text), Buffer.from([0, 255])]);
    const chunk = { stage: 'bu"ild', attempt: 2, offset, at: 5, parts: [['stderr', output.length] as const], output };
    await writer.publish(subjects.log('c', `r${index % 2}`), encodeChunk(chunk));
    offset += output.length;
  }
  writer.close();
  const stored = await Array.fromAsync(readChunks(bus, 'c', 1));
  expect(stored).toHaveLength(3);
  const read = await decodeFrame(await encodeFrame(stored));
  const plain = (chunks: typeof read): unknown =>
    chunks.map(({ sequence, runner, chunk }) => [sequence, runner, Buffer.from(encodeChunk(chunk)).toString('hex')]);
  expect(plain(read)).toEqual(plain(stored));
});

it('a frame that is damaged at any byte is refused, and nothing else is read from it', async () => {
  const output = Buffer.from('some output that is there twice, some output that is there twice\n');
  const chunk = { stage: 's', attempt: 1, offset: 0, at: 1, parts: [['stdout', output.length] as const], output };
  const frame = await encodeFrame([{ sequence: 7, runner: 'r1', chunk }]);
  const read: string[] = [];
  for (let index = 0; index < frame.length; index++) {
    const damaged = Buffer.from(frame);
    damaged[index] = (damaged[index] ?? 0) ^ 0x10;
    const chunks = await decodeFrame(damaged).catch(() => null);
    if (chunks !== null) read.push(Buffer.from(chunks[0]?.chunk.output ?? []).toString());
  }
  // A bit or two of its head stand for nothing that was asked of it.
  expect(read.length).toBeLessThan(5);
  expect(new Set([...read, output.toString()]).size).toBe(1);
  await expect(decodeFrame(frame.subarray(0, frame.length - 3))).rejects.toThrow('unexpected end');
});

it('what one frame more than holds is refused as it is made, for nobody could read it again', async () => {
  const output = Buffer.alloc(300 * 2, 'x\n');
  const parts = Array.from({ length: 300 }, (_, index) => [index % 2 === 0 ? 'stdout' : 'stderr', 2] as const);
  const chunks = Array.from({ length: 1_024 }, (_, index) => ({
    sequence: index + 1,
    runner: 'r1',
    chunk: { stage: 's', attempt: 1, offset: index * output.length, at: 1, parts, output },
  }));
  await expect(encodeFrame(chunks)).rejects.toThrow(SyntaxError);
  const some: typeof chunks = [];
  for (let bytes = 0; bytes < FRAME_BYTES; bytes += bytesOfChunk((some.at(-1) as (typeof chunks)[0]).chunk))
    some.push(chunks[some.length] as (typeof chunks)[0]);
  const read = await decodeFrame(await encodeFrame(some));
  expect(read.map(({ sequence, chunk }) => [sequence, Buffer.from(chunk.output).equals(output), chunk.parts])).toEqual(
    some.map(({ sequence }) => [sequence, true, parts]),
  );
});
