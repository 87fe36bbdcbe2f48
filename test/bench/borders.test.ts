/** A real scheduler and a real runner, in whose callbacks something throws: one by one, all that `borders` lists. */
import {
  acquireLease,
  buckets,
  connectBus,
  ensureStreams,
  subjects,
  type Bus,
  type Job,
  type JobReply,
  type PullRequest,
  type RunnerLease,
} from '@penstock/bus';
import { startRunner, type Runner } from '@penstock/runner';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { isEnded, SERVICE_TENANT } from '@penstock/run';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { borders, failuresAt, injectFaults, type BorderName } from '@penstock/telemetry/borders';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { driveRuns, type RunDriver } from './dependencies.ts';
import { temporaryFolder } from '../support/server.ts';
import { until } from '../support/wait.ts';

const LEASE_MS = 6_000;
const folder = temporaryFolder('penstock-borders-');
let broker: TestBroker;
let bus: Bus;
let runnersBus: Bus;
let store: DocumentStore;
let scheduler: Scheduler;
let runner: Runner;
let driver: RunDriver;
const escaped: unknown[] = [];
const onEscaped = (error: unknown): void => void escaped.push(error);

beforeAll(async () => {
  process.on('uncaughtException', onEscaped);
  process.on('unhandledRejection', onEscaped);
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'scheduler' });
  runnersBus = await connectBus({ servers: broker.url, name: 'runner' });
  await ensureStreams(bus, { partitions: 1, journalBytesMax: 64 * 1024 ** 2, logsBytesMax: 64 * 1024 ** 2 });
  store = await openSqliteStore({ path: join(folder.path, 'store.sqlite'), collections: runCollections });
  const log = silentLogger();
  scheduler = await startScheduler({
    bus,
    ledger: new RunsRepository(store),
    log,
    partitions: 1,
    runnerLeaseMs: LEASE_MS,
  });
  await scheduler.settled();
  const options = { runnerId: 'r1', slots: 2, labels: [], dataDir: join(folder.path, 'data'), leaseMs: LEASE_MS };
  runner = await startRunner({ ...options, bus: runnersBus, graceMs: 200, log });
  driver = driveRuns(bus);
  // Stages that nobody takes, so that there is demand to announce.
  await driver.create('pipeline:\n  name: waits\nstages:\n  a: { run: "true", runs_on: [nobody] }\n');
});
afterEach(() => injectFaults(undefined));
afterAll(async () => {
  await runner.close();
  await scheduler.close();
  await store.close();
  await runnersBus.close();
  await bus.close();
  await broker.stop();
  folder.remove();
  process.off('uncaughtException', onEscaped);
  process.off('unhandledRejection', onEscaped);
});

const run = (name: string): string =>
  `pipeline:\n  name: ${name}\nstages:\n  a: { run: 'test "$PENSTOCK_ATTEMPT" != 1', retry: { max: 1, delay: 1s } }\n`;

/** What brings the callback about, where no lease, tick or run does by itself. */
async function provoke(name: BorderName): Promise<void> {
  if (name === 'scheduler.released') bus.publish(subjects.released(0), { partition: 0 });
  if (name === 'partition.log-ends') await loseOne();
  if (name !== 'bus.connection') return;
  const heard = new Promise((resolve) => bus.events.once('reconnected', () => resolve(undefined)));
  await broker.kill();
  await broker.restart();
  await heard;
}

/** A runner takes a stage and is gone: what it has written has no end but the mark of the run's owner. */
async function loseOne(): Promise<void> {
  const [name, session, labels] = ['goes', 's1', ['lost']];
  const lease: RunnerLease = { runner: name, session, labels, slots: 1, attempts: [] };
  const held = await acquireLease(bus, buckets.runners, `${name}.${session}`, lease, { ttlMs: 60_000 });
  const given = Promise.withResolvers<void>();
  const jobs = bus.respond<Job, JobReply>(subjects.job(name), ({ runId, stage, attempt, credit }) => {
    given.resolve();
    return { runId, stage, attempt, session, credit, answer: 'accepted' };
  });
  const pull: PullRequest = { session, runner: name, labels, credits: [1], withdraw: [] };
  await bus.request(subjects.pull(scheduler.member, name), pull, { timeoutMs: 10_000 });
  await driver.create('pipeline:\n  name: lost\nstages:\n  a: { run: "true", runs_on: [lost] }\n');
  await given.promise;
  await held.release();
  jobs.stop();
}

const OTHERS = 'pipeline:\n  name: other\nstages:\n  a: { run: "true" }\n';

/** How the run ended, as it is stored: its last event may be what was not shown. */
async function endOf(runId: string): Promise<string> {
  const runs = new RunsRepository(store);
  return until(`the run ${runId} ends`, async () => {
    const view = await runs.view(runId, { tenants: [SERVICE_TENANT] });
    return view !== null && isEnded(view.status) && view.status;
  });
}

describe('an exception in a callback', () => {
  it.each(Object.keys(borders) as BorderName[])(
    'of %s ends no process, and runs go on after it',
    async (name) => {
      const before = failuresAt(name);
      injectFaults((at) => {
        if (at === name && failuresAt(name) === before) throw new Error(`a fault at ${name}`);
      });
      // The request itself may be what fails.
      const disturbed = driver.create(run('disturbed')).catch(() => undefined);
      await provoke(name);
      await until(`${name} is reached`, () => failuresAt(name) > before, 20_000);
      expect(await endOf(await driver.create(OTHERS))).toBe('SUCCESS');
      const runId = await disturbed;
      const expected = borders[name] === 'the run is quarantined' ? 'FAILED' : 'SUCCESS';
      expect(runId === undefined ? expected : await endOf(runId)).toBe(expected);
      expect(failuresAt(name)).toBe(before + 1);
      expect(escaped).toEqual([]);
      expect(scheduler.brokenInvariants).toBe(0);
    },
    90_000,
  );
});
