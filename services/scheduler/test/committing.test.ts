/** Whether a scheduler can commit: what it says of itself, and who finds it. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import {
  connectBus,
  connectionOf,
  ensureStreams,
  subjects,
  type Bus,
  type CreateReply,
  type CreateRequest,
} from '@penstock/bus';
import { newRunId, type RunId } from '@penstock/run';
import { CommittingSchedulers } from '@penstock/run-client';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const JOURNAL_BYTES = 16 * 1024 ** 2;

let broker: TestBroker;
let bus: Bus;
let manager: JetStreamManager;
let store: DocumentStore;
let folder: string;
let scheduler: Scheduler;
/** Of a clock that stands where a test puts it. */
let now: number;
let committing: CommittingSchedulers;

beforeEach(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'test' });
  manager = await jetstreamManager(connectionOf(bus), { checkAPI: false });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: JOURNAL_BYTES, logsBytesMax: JOURNAL_BYTES });
  folder = mkdtempSync(join(tmpdir(), 'penstock-scheduler-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  const ledger = new RunsRepository(store);
  scheduler = await startScheduler({ bus, ledger, partitions: 1, membershipMs: 1_500, log: silentLogger() });
  await scheduler.settled();
  now = 0;
  committing = new CommittingSchedulers(bus, () => now);
});
afterEach(async () => {
  await scheduler.close();
  await store.close();
  await bus.close();
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
});

const anId = (): RunId => newRunId({ now: Date.now(), key: 'user', random: randomBytes(16) });
const create = (runId: RunId): Promise<CreateReply> => {
  const yaml = 'pipeline:\n  name: p\nstages:\n  a:\n    run: "true"\n';
  const request: CreateRequest = { runId, tenant: 'user', key: 'user', yaml, origin: { kind: 'api' } };
  return bus.request<CreateRequest, CreateReply>(subjects.owner(0, 'create'), request, { timeoutMs: 60_000 });
};
const roomFor = (stream: string, bytes: number): Promise<unknown> =>
  manager.streams.update(stream, { max_bytes: bytes });
/** Asked anew: what was answered a second ago is not good enough for a test. */
const canCommit = async (): Promise<boolean> => {
  now += 1_000;
  return await committing.check().then(
    () => true,
    () => false,
  );
};

describe('a scheduler whose commits the broker does not store', () => {
  it('says so and is not found by who needs one that can commit, until they are stored again', async () => {
    expect(scheduler.trouble).toBeUndefined();
    expect(await canCommit()).toBe(true);
    await roomFor('JOURNAL', 1);
    const runId = anId();
    const created = create(runId);
    await vi.waitUntil(() => scheduler.trouble !== undefined, { timeout: 20_000 });
    expect(scheduler.trouble).toContain('maximum bytes exceeded');
    await vi.waitUntil(async () => !(await canCommit()), { timeout: 20_000 });
    await expect(committing.check()).rejects.toMatchObject({ code: 'UNAVAILABLE', message: 'no scheduler can commit' });
    await roomFor('JOURNAL', JOURNAL_BYTES);
    // Asked again as clients do: one whose membership ran out meanwhile has forgotten the first request.
    expect(await Promise.any([created, create(runId)])).toMatchObject({ ok: true });
    await vi.waitUntil(() => scheduler.trouble === undefined, { timeout: 20_000 });
    await vi.waitUntil(canCommit, { timeout: 20_000 });
  }, 120_000);

  it('is found as little while its membership cannot be renewed', async () => {
    await roomFor('KV_members', 1);
    await vi.waitUntil(() => scheduler.trouble !== undefined, { timeout: 20_000 });
    expect(scheduler.trouble).toContain('maximum bytes exceeded');
    await vi.waitUntil(async () => !(await canCommit()), { timeout: 20_000 });
    await roomFor('KV_members', JOURNAL_BYTES);
    await vi.waitUntil(canCommit, { timeout: 20_000 });
  }, 120_000);

  it('is looked for in vain for the time of a membership, before it counts', async () => {
    expect(await canCommit()).toBe(true);
    const heardAt = now;
    await scheduler.close();
    while (await canCommit());
    expect(now - heardAt).toBe(6_000);
  });

  it('is asked about at most once a second, however often somebody wants to know', async () => {
    const request = vi.spyOn(bus, 'request');
    await Promise.all(Array.from({ length: 50 }, () => committing.check()));
    now += 999;
    await committing.check();
    expect(request).toHaveBeenCalledTimes(1);
    now += 1;
    await committing.check();
    expect(request).toHaveBeenCalledTimes(2);
  });
});
