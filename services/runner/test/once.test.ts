/** RUNNER-8: a runner that serves one run, against a scheduler that does what the test says. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Bus, connectBus, type Release, subjects } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { hasServed } from '../src/idle.ts';
import type { Runner } from '../src/runner-options.ts';
import { startRunner } from '../src/start.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

let broker: TestBroker;
let bus: Bus;
let scheduler: FakeScheduler;
let dataDir: string;
let runner: Runner;

beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(async () => {
  await broker.stop();
});
beforeEach(async () => {
  scheduler = await FakeScheduler.start(broker.url);
  bus = await connectBus({ servers: broker.url, name: 'runner' });
  dataDir = mkdtempSync(join(tmpdir(), 'penstock-runner-'));
  runner = await startRunner({
    bus,
    runnerId: RUNNER,
    slots: 3,
    labels: ['linux'],
    dataDir,
    once: true,
    log: silentLogger(),
  });
});
afterEach(async () => {
  await runner.close();
  await bus.close();
  await scheduler.close();
  rmSync(dataDir, { recursive: true, force: true });
});

it('offers one slot until a stage comes, and then all of them for the run of that stage alone', async () => {
  const first = await scheduler.offers.next();
  expect(first.only).toBeUndefined();
  expect(scheduler.open.size).toBe(1);
  const { job, reply } = await scheduler.grant({ script: 'true' }, first);
  expect(reply.answer).toBe('accepted');
  const only = { runId: job.runId, key: job.key };
  const [second, third] = [await scheduler.offers.next(), await scheduler.offers.next()];
  expect([second.only, third.only]).toEqual([only, only]);
});

it('refuses a stage of another run, and takes further ones of its own', async () => {
  const { job } = await scheduler.grant({ script: 'true' });
  const other = await scheduler.grant({ runId: `${job.runId.slice(0, -1)}x`, script: 'true' });
  expect(other.reply.answer).toBe('refused');
  const { reply } = await scheduler.grant({ runId: job.runId, stage: 'next', script: 'true' });
  expect(reply.answer).toBe('accepted');
});

it('has served its run when that is over and nothing of it runs, and not before', async () => {
  expect(runner.hasServed).toBe(false);
  const { job } = await scheduler.grant({ script: 'true' });
  await scheduler.results.next();
  expect(runner.hasServed).toBe(false);
  bus.publish<Release>(subjects.release(RUNNER), { runIds: [job.runId] });
  await hasServed(runner, AbortSignal.timeout(10_000));
  expect(runner.hasServed).toBe(true);
});
