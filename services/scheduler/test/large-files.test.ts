/** Files of hundreds of stages over a real broker and store: reading them holds up nobody's requests. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  connectBus,
  ensureStreams,
  subjects,
  type Bus,
  type CreateReply,
  type CreateRequest,
  type GetReply,
} from '@penstock/bus';
import { newRunId } from '@penstock/run';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

let broker: TestBroker;
let bus: Bus;
let store: DocumentStore;
let folder: string;

beforeAll(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'test' });
  folder = mkdtempSync(join(tmpdir(), 'penstock-large-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 });
});
afterAll(async () => {
  await store.close();
  await bus.close();
  await broker.stop();
  rmSync(folder, { recursive: true, force: true });
});

const scheduler = (): Promise<Scheduler> =>
  startScheduler({ bus, ledger: new RunsRepository(store), partitions: 1, log: silentLogger() });

/** 60 KiB: more than a hundred milliseconds. */
function large(name: string): string {
  const stages = Array.from(
    { length: 600 },
    (_, index) =>
      `  s${index}:\n    runs_on: [nowhere]\n    env: {A: ${name}, B: "\${{ run.id }}"}\n    run: [echo one, echo two]\n`,
  );
  return `pipeline: {name: ${name}}\nstages:\n${stages.join('')}`;
}

const SMALL = 'pipeline: {name: small}\nstages: {a: {run: "true", runs_on: [nowhere]}}\n';

async function create(key: string, yaml: string): Promise<string> {
  const runId = newRunId({ now: Date.now(), key, random: randomBytes(10) });
  const request: CreateRequest = { runId, tenant: key, key, yaml, origin: { kind: 'api' } };
  const reply = await bus.requestRetrying<CreateRequest, CreateReply>(subjects.owner(0, 'create'), request, {
    deadlineMs: 50_000,
    timeoutMs: 50_000,
  });
  if (!reply.ok) throw new Error(reply.message);
  return runId;
}

async function nameAndStages(runId: string): Promise<readonly [string | undefined, number | undefined]> {
  const reply = await bus.requestRetrying<unknown, GetReply>(
    subjects.owner(0, 'get'),
    { runIds: [runId] },
    { deadlineMs: 50_000, timeoutMs: 5_000 },
  );
  const run = reply.ok ? reply.runs[0] : undefined;
  return [run?.pipelineName, run?.stages.length];
}

it('a small file of another is decided while large ones are read, which keep their order; a take-over reads them again', async () => {
  const first = await scheduler();
  const decided: string[] = [];
  const told = (name: string, created: Promise<string>): Promise<string> =>
    created.then((runId) => {
      decided.push(name);
      return runId;
    });
  // The scheduler answers from here on.
  await create('bob', SMALL);
  const all = [
    told('large-1', create('ada', large('first'))),
    told('large-2', create('ada', large('second'))),
    told('small of ada', create('ada', SMALL)),
    told('small of bob', create('bob', SMALL)),
  ];
  const ids = await Promise.all(all);
  expect(decided[0]).toBe('small of bob');
  expect(decided.indexOf('large-1')).toBeLessThan(decided.indexOf('large-2'));
  expect(decided.indexOf('large-2')).toBeLessThan(decided.indexOf('small of ada'));
  await first.close();

  const second = await scheduler();
  const restored = [];
  for (const runId of ids) restored.push(await nameAndStages(runId));
  expect(restored).toEqual([
    ['first', 600],
    ['second', 600],
    ['small', 1],
    ['small', 1],
  ]);
  await second.close();
}, 120_000);
