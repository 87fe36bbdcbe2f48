/** Quotas over a real broker and store, while the partition goes from one scheduler to the next (P23). */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  connectBus,
  ensureStreams,
  subjects,
  type Bus,
  type CancelReply,
  type CreateReply,
  type CreateRequest,
  type GetReply,
} from '@penstock/bus';
import { monthOf, newRunId, type RunView } from '@penstock/run';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

const TENANT = 'user/ada';
const LIMITS = { pipelineRunLimit: 4, maxConcurrent: 1 };
const YAML = 'pipeline: {name: ship}\nstages: {a: {run: "true", runs_on: [nowhere]}}\n';

let broker: TestBroker;
let bus: Bus;
let store: DocumentStore;
let runs: RunsRepository;
let folder: string;

beforeAll(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'test' });
  folder = mkdtempSync(join(tmpdir(), 'penstock-quota-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  runs = new RunsRepository(store);
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 16 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 });
});
afterAll(async () => {
  await store.close();
  await bus.close();
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
});

const scheduler = (): Promise<Scheduler> => startScheduler({ bus, ledger: runs, partitions: 1, log: silentLogger() });

function request<Req, Rep>(verb: 'create' | 'cancel' | 'get', body: Req): Promise<Rep> {
  return bus.requestRetrying<Req, Rep>(subjects.owner(0, verb), body, { deadlineMs: 20_000, timeoutMs: 5_000 });
}

function create(more: Partial<CreateRequest> = {}): Promise<CreateReply> {
  const runId = newRunId({ now: Date.now(), key: TENANT, random: randomBytes(10) });
  return request<CreateRequest, CreateReply>('create', {
    runId,
    tenant: TENANT,
    key: TENANT,
    yaml: YAML,
    origin: { kind: 'api' },
    limits: LIMITS,
    ...more,
  });
}

async function view(runId: string): Promise<RunView | undefined> {
  const reply = await request<unknown, GetReply>('get', { runIds: [runId] });
  return reply.ok ? reply.runs[0] : undefined;
}

function created(reply: CreateReply): RunView {
  if (!reply.ok || reply.run === null) throw new Error(JSON.stringify(reply));
  return reply.run;
}

it('P23: counts and concurrency slots go from owner to owner, and a refused id comes back as a run that has ended', async () => {
  const first = await scheduler();
  const goesOn = created(await create());
  const waits = created(await create());
  expect([goesOn.status, waits.status]).toEqual(['PENDING', 'QUEUED']);
  await first.close();

  const second = await scheduler();
  created(await create({ yaml: '', ended: { pipelineName: 'org/repository', status: 'SKIPPED' } }));
  expect(created(await create()).status).toBe('QUEUED');
  const runId = newRunId({ now: Date.now(), key: TENANT, random: randomBytes(10) });
  expect(await create({ runId })).toMatchObject({
    ok: false,
    code: 'QUOTA_EXCEEDED',
    retryAfterSecs: expect.any(Number),
  });
  const ended = { pipelineName: 'org/repository', status: 'FAILED', reason: 'quota' } as const;
  expect(created(await create({ runId, yaml: '', ended }))).toMatchObject({
    id: runId,
    status: 'FAILED',
    reason: 'quota',
    stages: [],
  });
  const month = monthOf(Date.now());
  await expect
    .poll(() => runs.usage({ tenant: TENANT, month }), { interval: 5, timeout: 10_000 })
    .toMatchObject({ pipelineRuns: 4, concurrentRuns: 1 });
  await second.close();

  const third = await scheduler();
  expect(await create()).toMatchObject({ ok: false, code: 'QUOTA_EXCEEDED' });
  expect(await request<unknown, CancelReply>('cancel', { runId: goesOn.id, tenants: [TENANT] })).toMatchObject({
    ok: true,
    run: { status: 'CANCELLED' },
  });
  // Its place is the next one's, which waits for a runner now and is held no more.
  await expect
    .poll(async () => (await view(waits.id))?.stages[0]?.status, { interval: 5, timeout: 10_000 })
    .toBe('QUEUED');
  expect(created(await create({ limits: { ...LIMITS, pipelineRunLimit: 5 } })).status).toBe('QUEUED');
  await third.close();
}, 60_000);
