/** A real scheduler and a real runner, in whose callbacks something throws: one by one, all that `borders` lists. */
import {
  acquireLease,
  buckets,
  connectBus,
  ensureStreams,
  FLEET_BUCKET,
  putExpiring,
  subjects,
  type Bus,
  type CreateReply,
  type CreateRequest,
  type FleetEntry,
  type GetReply,
  type GetRequest,
  type Job,
  type JobReply,
  type PullRequest,
  type RunnerLease,
  type SetScheduleReply,
  type SetScheduleRequest,
} from '@penstock/bus';
import { startRunner, type Runner } from '@penstock/runner';
import { startScheduler, type Scheduler } from '@penstock/scheduler';
import { isEnded, keyOf, newRunId, SERVICE_TENANT } from '@penstock/run';
import { openSqliteStore, runCollections, RunsRepository, type DocumentStore } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { borders, failuresAt, injectFaults, type BorderName } from '@penstock/telemetry/borders';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { driveRuns, type RunDriver } from './dependencies.ts';
import { temporaryFolder } from '../support/server.ts';
import { until } from '../support/wait.ts';

const LEASE_MS = 6_000;
/** Enough for the runs of this test; a key that has a quarter of it has its next runs wait outside of memory. */
const LIVE_BYTES_MAX = 200 * 1024;
/** So many runs take a key's quarter, and more. */
const CROWD = 15;
const folder = temporaryFolder('penstock-borders-');
let broker: TestBroker;
let bus: Bus;
let runnersBus: Bus;
let store: DocumentStore;
let scheduler: Scheduler;
let runner: Runner;
let driver: RunDriver;
let schedules = 0;
const escaped: unknown[] = [];
const onEscaped = (error: unknown): void => void escaped.push(error);

beforeAll(async () => {
  process.on('uncaughtException', onEscaped);
  process.on('unhandledRejection', onEscaped);
  broker = await startTestBroker();
  // As in `serve`.
  bus = await connectBus({ servers: broker.url, name: 'scheduler', answersItself: true });
  runnersBus = await connectBus({ servers: broker.url, name: 'runner' });
  await ensureStreams(bus, {
    partitions: 1,
    journalBytesMax: 64 * 1024 ** 2,
    logsBytesMax: 64 * 1024 ** 2,
    fleet: true,
  });
  store = await openSqliteStore({ path: join(folder.path, 'store.sqlite'), collections: runCollections });
  const log = silentLogger();
  scheduler = await startScheduler({
    bus,
    ledger: new RunsRepository(store),
    log,
    partitions: 1,
    runnerLeaseMs: LEASE_MS,
    liveBytesMax: LIVE_BYTES_MAX,
    fleet: true,
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

/** Only the border of timers needs a pause that one is set for. */
const run = (name: string, delay: string): string =>
  `pipeline:\n  name: ${name}\nstages:\n  a: { run: 'test "$PENSTOCK_ATTEMPT" != 1', retry: { max: 1, delay: ${delay} } }\n`;

/** What brings the callback about, where no lease, tick or run does by itself. */
async function provoke(name: BorderName): Promise<void> {
  if (name === 'scheduler.fleet') await admit();
  if (name === 'scheduler.released') bus.publish(subjects.released(0), { partition: 0 });
  if (name === 'partition.log-ends') await loseOne();
  if (name === 'partition.run-read') await readOne(name);
  if (name === 'partition.head-looked-up') await createHead();
  if (name === 'partition.ids-looked-up' || name === 'partition.text-read') await setSchedule();
  if (name !== 'bus.connection') return;
  const heard = new Promise((resolve) => bus.events.once('reconnected', () => resolve(undefined)));
  await broker.kill();
  await broker.restart();
  await heard;
}

/** A runner of the fleet is let in. */
async function admit(): Promise<void> {
  const entry: FleetEntry = { labels: [], untrusted: false };
  await putExpiring(bus, FLEET_BUCKET, `fr_${'0'.repeat(32)}`, entry, 60_000);
}

/** More runs of a key than memory has room for, that nobody takes; the last of them is asked for until it is read. */
async function readOne(name: BorderName): Promise<void> {
  const key = keyOf({ tenant: SERVICE_TENANT, pipelineName: 'crowd' });
  const yaml = 'pipeline:\n  name: crowd\nstages:\n  a: { run: "true", runs_on: [nobody] }\n';
  const ids = Array.from({ length: CROWD }, () => newRunId({ now: Date.now(), key, random: randomBytes(8) }));
  for (const runId of ids) {
    const request: CreateRequest = { runId, tenant: SERVICE_TENANT, key, yaml, origin: { kind: 'api' } };
    await bus.requestRetrying(subjects.owner(0, 'create'), request, { deadlineMs: 10_000, timeoutMs: 1_000 });
  }
  const before = failuresAt(name);
  const request: GetRequest = { runIds: ids };
  await until('one of them is read', async () => {
    // The one that is being read is not answered.
    const reply = await bus
      .request<GetRequest, GetReply>(subjects.owner(0, 'get'), request, { timeoutMs: 1_000 })
      .catch(() => undefined);
    return failuresAt(name) > before || reply === undefined;
  });
}

/** The first run of a pull request: which head is its newest is asked of the store. */
async function createHead(): Promise<void> {
  const key = keyOf({ tenant: SERVICE_TENANT, repository: 'o/r', pipelineName: '' });
  const request: CreateRequest = {
    runId: newRunId({ now: Date.now(), key, random: randomBytes(8) }),
    tenant: SERVICE_TENANT,
    key,
    yaml: 'pipeline:\n  name: head\nstages:\n  a: { run: "true" }\n',
    origin: {
      kind: 'webhook',
      provider: 'git_host_a',
      repository: 'o/r',
      commit: '1'.repeat(40),
      pullRequest: { number: 1, branch: 'main', fork: false, sequence: 1 },
    },
  };
  const ask = (): Promise<CreateReply> =>
    bus.request<CreateRequest, CreateReply>(subjects.owner(0, 'create'), request, { timeoutMs: 1_000 });
  // The first is what fails.
  await until('the request is answered', async () => (await ask().catch(() => undefined))?.ok === true);
}

/** A line of which a tick is due. */
async function setSchedule(): Promise<void> {
  const repository = 'o/nightly';
  schedules += 1;
  const request: SetScheduleRequest = {
    tenant: SERVICE_TENANT,
    key: keyOf({ tenant: SERVICE_TENANT, repository, pipelineName: '' }),
    provider: 'git_host_a',
    repository,
    delivery: { sequence: schedules, storedAt: Date.now() - 120_000 },
    ref: 'refs/heads/main',
    commit: '1'.repeat(40),
    cloneUrl: '',
    source: '.pipeline.yaml',
    yaml: 'pipeline:\n  name: nightly\nstages:\n  a: { run: "true" }\n',
    // Another one each time: the tick of the one before has been fired.
    lines: [{ cron: schedules === 1 ? '* * * * *' : '* * * * 0-6' }],
    idKey: 'bench',
  };
  const ask = (): Promise<SetScheduleReply> =>
    bus.request<SetScheduleRequest, SetScheduleReply>(subjects.owner(0, 'schedule'), request, { timeoutMs: 1_000 });
  // Its tick is fired at once, and what fails then takes the answer with it.
  await until('the request is answered', async () => (await ask().catch(() => undefined))?.ok === true);
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
      const disturbed = driver
        .create(run('disturbed', name === 'partition.timer' ? '1s' : '0s'))
        .catch(() => undefined);
      await provoke(name);
      // A stage may have to wait until a credit that is gone is over (P11).
      await until(`${name} is reached`, () => failuresAt(name) > before, 60_000);
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
