/** A runner that is killed while its stage runs in a Pod, and started again: as processes, with an API server that is none (P36). */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buckets, connectBus, endLease, type Job, type LeaseEvent, type RunnerLease } from '@penstock/bus';
import { FakeApi } from '@penstock/executor-kubernetes/fake';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

const MAIN = fileURLToPath(new URL('../../../cli/src/main.ts', import.meta.url));
const WAIT = { timeout: 60_000 };
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 });

let broker: TestBroker;
let scheduler: FakeScheduler;
let api: FakeApi;
let dataDir: string;
let runner: ChildProcess;

beforeEach(async () => {
  broker = await startTestBroker();
  scheduler = await FakeScheduler.start(broker.url);
  api = await FakeApi.start();
  dataDir = mkdtempSync(join(tmpdir(), 'penstock-taken-up-'));
  start();
});
afterEach(async () => {
  await kill();
  await scheduler.close();
  await broker.stop();
  await api.close();
  rmSync(dataDir, { recursive: true, force: true });
});

function start(): void {
  const { PATH, HOME } = process.env;
  runner = spawn(process.execPath, [MAIN, 'service', 'runner'], {
    env: {
      PATH,
      HOME,
      SERVICE_NATS_URL: broker.url,
      SERVICE_DATA_DIR: dataDir,
      SERVICE_MODE: 'development',
      SERVICE_RUNNER_ID: RUNNER,
      SERVICE_RUNNER_LEASE_SECS: '60',
      SERVICE_SLOTS: '1',
      SERVICE_INTERNAL_LISTEN: '127.0.0.1:0',
      SERVICE_EXECUTORS: 'kubernetes',
      SERVICE_K8S_NAMESPACE: 'stages',
      SERVICE_K8S_KUBECONFIG: api.kubeconfig('runner'),
      SERVICE_K8S_IMAGE: 'image',
    },
    stdio: 'ignore',
  });
}

async function kill(): Promise<void> {
  if (runner.exitCode !== null || runner.signalCode !== null) return;
  const ended = once(runner, 'exit');
  runner.kill('SIGKILL');
  await ended;
}

/** Its Pod runs, and has said `one`. */
async function begun(): Promise<{ job: Job; pod: string }> {
  const { job, reply } = await scheduler.grant();
  expect(reply.answer).toBe('accepted');
  await vi.waitFor(() => expect(api.pods).toHaveLength(1), WAIT);
  const pod = api.pods[0] ?? '';
  await vi.waitFor(() => expect(api.guardOf(pod).starts).toBe(1), WAIT);
  api.guardOf(pod).print('one\n');
  await vi.waitFor(async () => expect(await scheduler.logOf(job.runId)).toBe('one\n'), WAIT);
  return { job, pod };
}

const isOf =
  (kind: 'put' | 'expired', session: string, isIt = true) =>
  (event: LeaseEvent<RunnerLease>): boolean =>
    event.kind === kind && (event.key === `${RUNNER}.${session}`) === isIt;

it('P36: the attempt goes on under the next process, and is told once', async () => {
  const { job, pod } = await begun();
  const guard = api.guardOf(pod);
  await kill();
  guard.print('two\n');
  start();
  // Its own session is over, and the next one stands for it: in this order, so that it is not lost in between (P13).
  const next = await scheduler.leaseWhere(isOf('put', job.session, false));
  const { runId, stage, attempt, session, credit } = job;
  expect(next).toMatchObject({ value: { attempts: [{ runId, stage, attempt, session, credit }] } });
  await scheduler.leaseWhere(isOf('expired', job.session));
  await vi.waitFor(async () => expect(await scheduler.logOf(runId)).toBe('one\ntwo\n'), WAIT);
  expect(await scheduler.send(job)).toMatchObject({ answer: 'held' });
  guard.print('three\n');
  guard.end(0);
  expect(await scheduler.results.next()).toMatchObject({ runId, session, credit, status: 'success', logBytes: 14 });
  expect(await scheduler.logOf(runId)).toBe('one\ntwo\nthree\n');
  expect(guard.starts).toBe(1);
  expect(api.created).toEqual([pod]);
  await vi.waitFor(() => expect(api.pods).toEqual([]), WAIT);
  expect(readdirSync(join(dataDir, 'runner', 'attempts'))).toEqual([]);
  // Its slot is free again.
  const other = await scheduler.grant();
  expect(other.reply.answer).toBe('accepted');
  expect(scheduler.results.waiting).toBe(0);
});

it('P36: one that may be lost already is ended, has no result, and its lease does not list it any more', async () => {
  const { job, pod } = await begun();
  await kill();
  const bus = await connectBus({ servers: broker.url, name: 'test' });
  expect(await endLease(bus, buckets.runners, `${RUNNER}.${job.session}`)).toBe(true);
  await bus.close();
  start();
  await vi.waitFor(() => expect(api.deleted).toEqual([pod]), WAIT);
  await scheduler.leaseWhere(
    (event) => isOf('put', job.session, false)(event) && event.kind === 'put' && event.value.attempts.length === 0,
  );
  expect(scheduler.results.waiting).toBe(0);
  expect(await scheduler.stopAttempt(job)).toMatchObject({ answer: 'gone' });
  expect(api.created).toEqual([pod]);
});

it('P36: cancelled while no process held it, its stage is stopped by the next one', async () => {
  const { job, pod } = await begun();
  await kill();
  start();
  await scheduler.leaseWhere(isOf('put', job.session, false));
  await vi.waitFor(async () => expect((await scheduler.stopAttempt(job)).answer).toBe('stopping'), WAIT);
  expect(await scheduler.results.next()).toMatchObject({ credit: job.credit, status: 'failed' });
  await vi.waitFor(() => expect(api.pods).toEqual([]), WAIT);
  expect(api.created).toEqual([pod]);
});
