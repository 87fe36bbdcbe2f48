/** Stages whose runner's process dies and comes again (P36), against an API server that is none: by what goes over HTTP. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootClockMs, type StageNotes, type StagePiece, type StageRecord, type StageSpec } from '@penstock/executor';
import { RecordingSink } from '@penstock/executor/testing';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { openCluster } from '../src/cluster/cluster.ts';
import { KubernetesExecutor } from '../src/executor.ts';
import { endEarlierPods } from '../src/sweep.ts';
import { FakeApi } from './fake/fake-api.ts';
import { stageOf } from './lab/lab.ts';

const WAIT = { timeout: 20_000 };
vi.setConfig({ testTimeout: 60_000 });

let api: FakeApi;
let lives: Set<KubernetesExecutor>;
/** What they wait for does not come: nobody waits for them. */
let dead: KubernetesExecutor[];
let count: number;

beforeEach(async () => {
  api = await FakeApi.start();
  lives = new Set();
  dead = [];
  count = 0;
});
afterEach(async () => {
  await Promise.all([...lives].map((executor) => executor.close()));
  for (const executor of dead) void executor.close();
  await api.close();
});

/** What a runner keeps on its disk. */
class Record implements StageRecord {
  readonly notes = new Map<string, string[]>();
  readonly output: StagePiece[] = [];
  /** Nothing is kept any more: its process is dead. */
  isOver = false;

  keep(notes: Readonly<{ [name: string]: string }>, output?: StagePiece): void {
    if (this.isOver) return;
    for (const [name, value] of Object.entries(notes)) this.notes.set(name, [...(this.notes.get(name) ?? []), value]);
    if (output !== undefined) this.output.push({ ...output, bytes: Buffer.from(output.bytes) });
  }
}

interface Life {
  readonly executor: KubernetesExecutor;
  readonly client: string;
}

const FENCE_MS = 500;
const LEASE_MS = 60_000;
/** Where a test waits for the end of a fence. */
const SHORT_LEASE_MS = 3_000;

function process(leaseMs = LEASE_MS): Life {
  count += 1;
  const client = `process-${count}`;
  const executor = new KubernetesExecutor({
    cluster: openCluster({ namespace: 'stages', kubeconfig: api.kubeconfig(client) }),
    runnerId: 'runner',
    fence: () => bootClockMs() + leaseMs - FENCE_MS,
    fenceMs: FENCE_MS,
    leaseMs,
    sessionOver: new Promise(() => {}),
    image: 'image',
    setupMs: 60_000,
    hasNetworkPolicies: false,
    warn: () => {},
  });
  lives.add(executor);
  return { executor, client };
}

/** From here on nothing that it does can be seen, as of a process that was killed. */
function kill({ executor, client }: Life, record: Record): void {
  lives.delete(executor);
  dead.push(executor);
  api.cutOff(client);
  record.isOver = true;
}

async function podOf(): Promise<string> {
  await vi.waitFor(() => expect(api.pods).toHaveLength(1), WAIT);
  return api.pods[0] ?? '';
}

async function startOne(
  spec: StageSpec = stageOf('true'),
): Promise<{ first: Life; record: Record; pod: string; sink: RecordingSink }> {
  const first = process();
  const record = new Record();
  const sink = new RecordingSink();
  first.executor.start(spec, sink, record);
  const pod = await podOf();
  await vi.waitFor(() => expect(api.guardOf(pod).starts).toBe(1), WAIT);
  return { first, record, pod, sink };
}

/** The record as the next process reads it, and a sink that has what is in it. */
function read({ notes, output }: Record): { record: Record; notes: StageNotes; sink: RecordingSink } {
  const record = new Record();
  for (const [name, values] of notes) record.notes.set(name, [...values]);
  const sink = new RecordingSink();
  for (const { stream, bytes } of output) if (stream !== 'masks') void sink.write(stream, bytes);
  return { record, notes: new Map(record.notes), sink };
}

it('P36: goes on under the next process: it runs once, and its output is whole and there once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-taken-up-'));
  const spec = stageOf('true', { env: { SERVICE_OUTPUT: join(folder, 'output') }, folders: [folder] });
  writeFileSync(join(folder, 'output'), '');
  const { first, record, pod, sink } = await startOne(spec);
  const guard = api.guardOf(pod);
  guard.print('one\n');
  guard.print('warned\n', 'err');
  await sink.until('one\n');
  await vi.waitFor(() => expect(record.notes.get('err')).toEqual(['1']), WAIT);
  kill(first, record);
  guard.print('two\n');

  const next = process();
  const again = read(record);
  const stage = next.executor.resume(spec, again.sink, again.record, again.notes);
  await again.sink.until('two\n');
  guard.print('three\n');
  guard.end(0, 'a=1\n');
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
  expect(again.sink.text()).toBe('one\ntwo\nthree\n');
  expect(again.sink.text('stderr')).toBe('warned\n');
  expect(readFileSync(join(folder, 'output'), 'utf8')).toBe('a=1\n');
  expect(guard.starts).toBe(1);
  expect(api.created).toEqual([pod]);
  await vi.waitFor(() => expect(api.pods).toEqual([]), WAIT);
  rmSync(folder, { recursive: true });
});

it('P36: its guard is answered again, by the fence of the new session', async () => {
  const { first, record, pod } = await startOne();
  const guard = api.guardOf(pod);
  kill(first, record);
  const next = process(600_000);
  const again = read(record);
  const stage = next.executor.resume(stageOf('true'), again.sink, again.record, again.notes);
  await vi.waitFor(() => expect(guard.deadline).toBeGreaterThan(bootClockMs() + 500_000), WAIT);
  guard.end(3);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 3 });
});

it('output that was taken and whose taking the guard was not told comes once, and the stage goes on', async () => {
  const { first, record, pod, sink } = await startOne();
  const guard = api.guardOf(pod);
  guard.loses = /^ack/;
  // As many as may wait, and more: its stage stands still until it is told.
  const lines = Array.from({ length: 7 }, (_, index) => `line ${index}\n`);
  for (const line of lines) guard.print(line);
  await sink.until('line 3\n');
  await vi.waitFor(() => expect(record.notes.get('out')?.at(-1)).toBe('4'), WAIT);
  expect(guard.held).toBe(3);
  kill(first, record);
  guard.loses = null;

  const again = read(record);
  const stage = process().executor.resume(stageOf('true'), again.sink, again.record, again.notes);
  await again.sink.until('line 6\n');
  guard.end(0);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
  expect(again.sink.text()).toBe(lines.join(''));
});

it('P36: a guard whose line broke is answered while what the line has brought is not taken yet, which comes once', async () => {
  const { executor } = process();
  const [taken, blocked] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const lines: string[] = [];
  const stage = executor.start(stageOf('true'), {
    async write(stream, bytes) {
      if (stream !== 'stdout') return;
      blocked.resolve();
      await taken.promise;
      lines.push(Buffer.from(bytes).toString());
    },
  });
  const guard = api.guardOf(await podOf());
  await vi.waitFor(() => expect(guard.starts).toBe(1), WAIT);
  guard.print('one\n');
  await blocked.promise;
  guard.deadline = 0;
  guard.hangUp();
  await vi.waitFor(() => expect(guard.deadline).toBeGreaterThan(0), WAIT);
  guard.print('two\n');
  guard.end(0);
  taken.resolve();
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
  expect(lines).toEqual(['one\n', 'two\n']);
});

it('P36: a guard that was told to begin, and not yet until when, is waited for', async () => {
  api.asksAtOnce = false;
  const { executor } = process();
  const stage = executor.start(stageOf('true'), new RecordingSink());
  const guard = api.guardOf(await podOf());
  await vi.waitFor(() => expect(guard.starts).toBe(1), WAIT);
  expect(guard.deadline).toBe(0);
  // It is looked after twice as often as the guard is asked to ask.
  await vi.waitFor(() => expect(guard.deadline).toBeGreaterThan(0), WAIT);
  guard.end(0);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
});

it('P36: one that is stopped before its guard was told until when never runs', async () => {
  api.asksAtOnce = false;
  const { executor } = process();
  const stage = executor.start(stageOf('true'), new RecordingSink(), new Record());
  const guard = api.guardOf(await podOf());
  await vi.waitFor(() => expect(guard.starts).toBe(1), WAIT);
  stage.stop('cancelled');
  expect(await stage.ended).toEqual({ kind: 'stopped', reason: 'cancelled' });
  expect(guard.deadline).toBe(0);
});

it('a Pod that was not told to begin is told so by the next process, once', async () => {
  const first = process();
  const record = new Record();
  first.executor.start(stageOf('true'), new RecordingSink(), record);
  // Its process dies as soon as the Pod is planned: before, while or after it is made.
  await vi.waitFor(() => expect(record.notes.has('pod')).toBe(true), WAIT);
  kill(first, record);
  const again = read(record);
  const stage = process().executor.resume(stageOf('true'), again.sink, again.record, again.notes);
  const pod = await podOf();
  const guard = api.guardOf(pod);
  await vi.waitFor(() => expect(guard.starts).toBe(1), WAIT);
  guard.end(0);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
  expect(api.created).toEqual([pod]);
});

it('what has ended while nobody looked is told by its guard when it is asked', async () => {
  const { first, record, pod } = await startOne();
  const guard = api.guardOf(pod);
  kill(first, record);
  guard.print('last words\n');
  guard.end(7);
  const again = read(record);
  const stage = process().executor.resume(stageOf('true'), again.sink, again.record, again.notes);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 7 });
  expect(again.sink.text()).toBe('last words\n');
});

it('an ending that was on record before its process died is its ending', async () => {
  const { first, record, pod } = await startOne();
  api.guardOf(pod).loses = /^bye/;
  api.guardOf(pod).end(5);
  await vi.waitFor(() => expect(record.notes.has('done')).toBe(true), WAIT);
  kill(first, record);
  api.remove(pod);
  const again = read(record);
  const stage = process(SHORT_LEASE_MS).executor.resume(stageOf('true'), again.sink, again.record, again.notes);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 5 });
});

it('P36: one whose Pod is gone is not made anew: it counts as taken away, once its fence has passed', async () => {
  const { first, record, pod } = await startOne();
  kill(first, record);
  api.remove(pod);
  const again = read(record);
  const begun = bootClockMs();
  const stage = process(SHORT_LEASE_MS).executor.resume(stageOf('true'), again.sink, again.record, again.notes);
  expect(await stage.ended).toMatchObject({ kind: 'unplaced', reason: 'evicted' });
  // Absence proves nothing: the node may be cut off.
  expect(bootClockMs() - begun).toBeGreaterThanOrEqual(SHORT_LEASE_MS);
  expect(api.created).toEqual([pod]);
});

it('the time of a stage counts from its start, not from the restart', async () => {
  const spec = stageOf('true', { timeoutMs: 2_000 });
  const { first, record } = await startOne(spec);
  kill(first, record);
  const again = read(record);
  const begun = record.notes.get('begun')?.[0] ?? '';
  again.record.notes.set('begun', [String(Number(begun) - 3_600_000)]);
  const stage = process().executor.resume(spec, again.sink, again.record, new Map(again.record.notes));
  expect(await stage.ended).toEqual({ kind: 'timeout' });
});

it('a file that is replaced while it runs is told to its guard, by each line, and by those of the next process', async () => {
  const spec = stageOf('true', { renewedFiles: [{ variable: 'TOKEN', content: 'first' }] });
  const first = process();
  const record = new Record();
  const stage = first.executor.start(spec, new RecordingSink(), record);
  const pod = await podOf();
  const guard = api.guardOf(pod);
  await vi.waitFor(() => expect(guard.starts).toBe(1), WAIT);
  expect([...guard.files]).toEqual([['file-TOKEN', 'first']]);
  guard.loses = /^file/;
  stage.replaceFile?.('TOKEN', 'lost');
  await vi.waitFor(() => expect(guard.lost).toEqual(['file file-TOKEN lost']), WAIT);
  expect(guard.files.get('file-TOKEN')).toBe('first');
  guard.loses = null;
  guard.hangUp();
  await vi.waitFor(() => expect(guard.files.get('file-TOKEN')).toBe('lost'), WAIT);
  kill(first, record);

  const again = read(record);
  const taken = process().executor.resume(stageOf('true'), again.sink, again.record, again.notes);
  taken.replaceFile?.('TOKEN', 'renewed');
  await vi.waitFor(() => expect(guard.files.get('file-TOKEN')).toBe('renewed'), WAIT);
  guard.end(0);
  expect(await taken.ended).toEqual({ kind: 'exit', code: 0 });
});

it('whether it may have begun is known by what was noted', async () => {
  const { first, record } = await startOne();
  const { executor } = first;
  expect(executor.hasBegun(new Map(record.notes))).toBe(true);
  expect(executor.hasBegun(new Map([['pod', ['p']]]))).toBe(false);
  expect(executor.hasBegun(new Map())).toBe(false);
});

it('the log of a service is gone on with by its stamps', async () => {
  const stamp = (ms: number): string => new Date(1_790_000_000_000 + ms).toISOString().replace('Z', '000000Z');
  const log = [`${stamp(0)} up`, `${stamp(900)} same`, `${stamp(900)} same`];
  api.logs.set('service-db', log);
  const spec = stageOf('true', { place: { services: [{ name: 'db', image: { name: 'db' }, env: {} }] } });
  const { first, record, pod } = await startOne(spec);
  await vi.waitFor(() => expect(record.output).toHaveLength(3), WAIT);
  kill(first, record);
  log.push(`${stamp(900)} same`, `${stamp(1_000)} later`);
  const again = read(record);
  const stage = process().executor.resume(spec, again.sink, again.record, again.notes);
  await vi.waitFor(() => expect(again.sink.text('service:db')).toBe('up\nsame\nsame\nsame\nlater\n'), WAIT);
  api.guardOf(pod).end(0);
  expect(await stage.ended).toEqual({ kind: 'exit', code: 0 });
  expect(again.sink.text('service:db')).toBe('up\nsame\nsame\nsame\nlater\n');
});

it('one that cannot be taken up is ended, and so are those that nobody names', async () => {
  const { first, record, pod } = await startOne();
  kill(first, record);
  const next = process();
  const cluster = openCluster({ namespace: 'stages', kubeconfig: api.kubeconfig('sweep') });
  const sweep = { cluster, runnerId: 'runner', leaseMs: LEASE_MS, warn: () => {} };
  await endEarlierPods({ ...sweep, kept: [pod] });
  expect(api.pods).toEqual([pod]);
  await next.executor.discard(new Map(record.notes));
  expect(api.pods).toEqual([]);
  expect(api.deleted).toEqual([pod]);
  const other = await startOne();
  kill(other.first, other.record);
  await endEarlierPods(sweep);
  expect(api.pods).toEqual([]);
});

it('a Pod that cannot be deleted while the API server is away is deleted when it is back', async () => {
  const { pod } = await startOne();
  api.isAway = true;
  api.guardOf(pod).end(0);
  await vi.waitFor(() => expect(api.refused).toBeGreaterThan(5), WAIT);
  expect(api.pods).toEqual([pod]);
  api.isAway = false;
  await vi.waitFor(() => expect(api.pods).toEqual([]), WAIT);
});
