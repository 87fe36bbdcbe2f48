/** P16: what the disk of a runner says of a stage whose processes are gone, before the broker has its log. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, type Bus, type Job } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startRunner } from '../src/start.ts';
import type { Runner } from '../src/runner-options.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

/** 700,000 lines are some seconds' work, and ten times that where others have the processors. */
const RESULT_MS_MAX = 60_000;
const TEST_MS_MAX = 180_000;

let broker: TestBroker;
let bus: Bus;
let scheduler: FakeScheduler;
let runner: Runner;
let dataDir: string;

async function begin(leaseMs: number): Promise<void> {
  bus = await connectBus({ servers: broker.url, name: 'runner' });
  runner = await startRunner({ bus, runnerId: RUNNER, slots: 1, labels: [], dataDir, leaseMs, log: silentLogger() });
}

async function end(): Promise<void> {
  await runner.close();
  await bus.close();
}

beforeEach(async () => {
  broker = await startTestBroker();
  scheduler = await FakeScheduler.start(broker.url);
  dataDir = mkdtempSync(join(tmpdir(), 'penstock-result-'));
});
afterEach(async () => {
  broker.resume();
  await end();
  await scheduler.close();
  await broker.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

function results(): string {
  return readFileSync(join(dataDir, 'runner', 'results'), 'utf8');
}

/** A stage that ends while the broker is away, with `lines` of log behind the broker's back. */
async function endsUnheard(lines: number): Promise<Job> {
  const script = `echo up; until [ -e go ]; do sleep 0.05; done; seq -f 'line %.0f' ${lines}`;
  const { job } = await scheduler.grant({ script, logBytesMax: 64 * 1024 ** 2 });
  while (!(await scheduler.logOf(job.runId)).includes('up')) continue;
  broker.pause();
  writeFileSync(join(dataDir, 'work', '0', job.runId, 'shared', 'go'), '');
  await expect.poll(results, { timeout: RESULT_MS_MAX }).toContain(job.runId);
  return job;
}

async function expectReported(job: Job, lines: number): Promise<void> {
  const result = await scheduler.results.next();
  expect(result).toMatchObject({ runId: job.runId, attempt: 1, session: job.session, status: 'success' });
  const log = await scheduler.logOf(job.runId);
  expect(Buffer.byteLength(log)).toBe(result.logBytes);
  expect(log.endsWith(`line ${lines}\n`)).toBe(true);
}

describe('a stage that has ended while the broker is away (P16)', () => {
  it('has its result on disk before the broker has its log, and sends it only behind that', async () => {
    await begin(60_000);
    const job = await endsUnheard(3);
    expect(scheduler.results.waiting).toBe(0);
    broker.resume();
    await expectReported(job, 3);
    await expect.poll(results).toContain('"done"');
  });

  it.each([3, 200_000, 700_000])(
    'is reported with all %d lines of its log by the next start of its runner, whose lease lists it meanwhile',
    async (lines) => {
      await begin(60_000);
      const job = await endsUnheard(lines);
      await end();
      scheduler.answerResult = () => null;
      broker.resume();
      await begin(60_000);
      await scheduler.leaseWhere(
        (event) =>
          event.kind === 'put' &&
          event.value.session !== job.session &&
          event.value.attempts.some(({ runId, session }) => runId === job.runId && session === job.session),
      );
      await expectReported(job, lines);
      scheduler.answerResult = () => ({ ok: true, answer: 'committed', epoch: 1, offerTaken: false });
      await expect.poll(() => readdirSync(join(dataDir, 'runner', 'spool'))).toEqual([]);
    },
    TEST_MS_MAX,
  );

  it('is reported although the guard of its session has fired since', async () => {
    await begin(6_000);
    const job = await endsUnheard(3);
    await expect.poll(() => runner.session, { timeout: 20_000 }).toBeNull();
    broker.resume();
    await expectReported(job, 3);
    await expect.poll(() => runner.session, { timeout: 20_000 }).not.toBeNull();
  });
});
