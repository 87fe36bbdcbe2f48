/** A scheduler on a broker: what its owners commit is told to whoever watches (P20), and once it is closed nobody is answered. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  connectBus,
  ensureStreams,
  NoResponders,
  subjects,
  type Bus,
  type CommittedEvents,
  type CreateRequest,
} from '@penstock/bus';
import { newRunId } from '@penstock/run';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { openSqliteStore, runCollections, RunsRepository } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker } from '@penstock/testkit';
import { expect, it, onTestFinished } from 'vitest';

async function schedulerOnBroker(): Promise<{ readonly bus: Bus; readonly scheduler: Scheduler }> {
  const broker = await startTestBroker();
  const bus = await connectBus({ servers: broker.url, name: 'test' });
  const folder = mkdtempSync(join(tmpdir(), 'penstock-events-'));
  const store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  onTestFinished(async () => {
    await store.close();
    await bus.close();
    await broker.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 4 * 1024 ** 2, logsBytesMax: 16 * 1024 ** 2 });
  const ledger = new RunsRepository(store);
  const scheduler = await startScheduler({ bus, ledger, partitions: 1, log: silentLogger() });
  onTestFinished(() => scheduler.close());
  await scheduler.settled();
  return { bus, scheduler };
}

it('P20: the events of a commit are published, in their order', async () => {
  const { bus } = await schedulerOnBroker();
  const runId = newRunId({ now: Date.now(), key: 'ada', random: new Uint8Array(10) });
  const heard: CommittedEvents[] = [];
  bus.subscribe<CommittedEvents>(subjects.events(runId), (message) => void heard.push(message));
  const yaml = 'pipeline: {name: p}\nstages: {a: {run: x, runs_on: nobody}}\n';
  const request: CreateRequest = { runId, tenant: 'ada', key: 'ada', yaml, origin: { kind: 'api' } };
  expect(await bus.request(subjects.owner(0, 'create'), request, { timeoutMs: 10_000 })).toMatchObject({ ok: true });
  expect(
    await bus.request(subjects.owner(0, 'cancel'), { runId, tenants: ['ada'] }, { timeoutMs: 10_000 }),
  ).toMatchObject({ ok: true });

  const types = (): string[] => heard.flatMap(({ events }) => events.map(({ type }) => type));
  await expect.poll(types).toContain('run_stopped');
  expect(types()).toEqual(['run_created', 'stages_queued', 'run_cancelled', 'run_stopped']);
  expect(heard.every(({ runId: of }) => of === runId)).toBe(true);
});

it('a scheduler that is closed is there for nobody: a runner that asks it for work is told so at once', async () => {
  const { bus, scheduler } = await schedulerOnBroker();
  const { member } = scheduler;
  await scheduler.close();
  for (const subject of [subjects.pull(member, 'r'), subjects.committing, subjects.owner(0, 'create')])
    await expect(bus.request(subject, {}, { timeoutMs: 5_000 }), subject).rejects.toThrow(NoResponders);
});
