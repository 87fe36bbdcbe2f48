/** What a restarted runner says about the sessions that its last, killed start has left. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { acquireLease, buckets, connectBus, type Bus, type ResultRequest, type RunnerLease } from '@penstock/bus';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { silentLogger } from '@penstock/telemetry';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startRunner, type Runner } from '../src/index.ts';
import { RunnerFolderInUse } from '../src/workspace/errors.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

let broker: TestBroker;
let bus: Bus;
let scheduler: FakeScheduler;
let dataDir: string;
let runner: Runner | undefined;

beforeEach(async () => {
  broker = await startTestBroker();
  scheduler = await FakeScheduler.start(broker.url);
  bus = await connectBus({ servers: broker.url, name: 'runner' });
  dataDir = mkdtempSync(join(tmpdir(), 'penstock-restart-'));
  mkdirSync(join(dataDir, 'runner'));
});
afterEach(async () => {
  await runner?.close();
  await bus.close();
  await scheduler.close();
  await broker.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

function start(): Promise<Runner> {
  return startRunner({ bus, runnerId: RUNNER, slots: 1, labels: [], dataDir, leaseMs: 6_000, log: silentLogger() });
}

/** As a start leaves it that was killed while it held attempts: its list, and a lease that has long to live. */
async function leaveSession(runnerId = RUNNER): Promise<string> {
  const session = randomUUID();
  writeFileSync(join(dataDir, 'runner', 'sessions'), `${session}\n`);
  const value: RunnerLease = { runner: runnerId, session, labels: [], slots: 1, attempts: [] };
  await acquireLease(scheduler.bus, buckets.runners, `${runnerId}.${session}`, value, { ttlMs: 600_000 });
  return session;
}

it('the lease of a session that a kill has left is ended at the next start, not by its time (P5)', async () => {
  const dead = await leaveSession();
  runner = await start();
  const event = await scheduler.leaseWhere(({ key }) => key === `${RUNNER}.${dead}`);
  expect(event.kind).toBe('put');
  expect(await scheduler.leaseWhere(({ key }) => key === `${RUNNER}.${dead}`)).toMatchObject({ kind: 'expired' });
});

it('not before every result of it that was kept is answered: its attempts would count as lost (P16)', async () => {
  const dead = await leaveSession();
  const request: ResultRequest = {
    runId: `run-${randomUUID()}`,
    stage: 'build',
    attempt: 1,
    session: dead,
    credit: 7,
    status: 'success',
    exitCode: 0,
    logBytes: 0,
  };
  writeFileSync(join(dataDir, 'runner', 'results'), `${JSON.stringify({ id: `${dead}/7`, partition: 0, request })}\n`);
  let answered = false;
  scheduler.answerResult = () => {
    // Not the first time: the lease would be over before the second, if nobody waited for it.
    if (scheduler.results.waiting < 2) return null;
    answered = true;
    return { ok: true, answer: 'committed', epoch: 1, offerTaken: false };
  };
  runner = await start();
  await scheduler.leaseWhere((event) => event.kind === 'expired' && event.key === `${RUNNER}.${dead}`);
  expect(answered).toBe(true);
});

it("a folder is one runner's until that is over, also where another could not begin", async () => {
  const first = await start();
  await expect(start()).rejects.toThrow(RunnerFolderInUse);
  await expect(start()).rejects.toThrow(`keeps its runs in ${dataDir}`);
  await first.close();
  await scheduler.close();
  await broker.stop();
  await expect(start()).rejects.not.toThrow(RunnerFolderInUse);
  await expect(start()).rejects.not.toThrow(RunnerFolderInUse);
});

it('results outlive the process that could not report them (P16)', async () => {
  const before = await start();
  scheduler.answerResult = () => null;
  const { job } = await scheduler.grant();
  const first = await scheduler.results.next();
  await before.close();
  scheduler.results.drop();
  const next = await start();
  runner = next;
  const { offer: _offer, ...sent } = first;
  expect(await scheduler.results.next()).toEqual(sent);
  // So that it does not count as lost when the lease of its own session is over.
  const lease = await scheduler.leaseWhere(({ kind, key }) => kind === 'put' && key === `${RUNNER}.${next.session}`);
  expect(lease).toMatchObject({ value: { attempts: [{ runId: job.runId, session: job.session }] } });
  scheduler.answerResult = () => ({ ok: true, answer: 'committed', epoch: 1, offerTaken: false });
  await scheduler.results.next();
  expect((await scheduler.stopAttempt(job)).answer).toBeOneOf(['gone', 'stopping']);
});
