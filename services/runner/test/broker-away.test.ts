import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, type Bus } from '@penstock/bus';
import { silentLogger } from '@penstock/telemetry';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startRunner, type Runner } from '../src/index.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

let broker: TestBroker;
let bus: Bus;
let scheduler: FakeScheduler;
let runner: Runner;
let dataDir: string;

async function begin(leaseMs: number): Promise<void> {
  runner = await startRunner({ bus, runnerId: RUNNER, slots: 1, labels: [], dataDir, leaseMs, log: silentLogger() });
}

beforeEach(async () => {
  broker = await startTestBroker();
  scheduler = await FakeScheduler.start(broker.url);
  bus = await connectBus({ servers: broker.url, name: 'runner' });
  dataDir = mkdtempSync(join(tmpdir(), 'penstock-away-'));
});
afterEach(async () => {
  await runner.close();
  await bus.close();
  await scheduler.close();
  await broker.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

/** What the stage itself writes down, beside its log. */
function written(runId: string): string {
  try {
    return readFileSync(join(dataDir, 'work', '0', runId, 'shared', 'marker'), 'utf8');
  } catch {
    return '';
  }
}

const MIB = 1024 ** 2;

describe('while the broker is away (P18)', () => {
  it('a stage goes on and its log waits on disk; both are reported when it is back, whole', async () => {
    await begin(60_000);
    const lines = 120_000;
    const { job } = await scheduler.grant({
      script: `echo up; until [ -e go ]; do sleep 0.05; done; seq -f 'line %.0f ${'x'.repeat(80)}' ${lines}; echo done >marker`,
      logBytesMax: 64 * MIB,
    });
    while (!(await scheduler.logOf(job.runId)).includes('up')) continue;
    broker.pause();
    writeFileSync(join(dataDir, 'work', '0', job.runId, 'shared', 'go'), '');
    // More than the log writer and the pipes hold together.
    await expect.poll(() => written(job.runId), { timeout: 30_000 }).toBe('done\n');
    broker.resume();
    const result = await scheduler.results.next();
    expect(result).toMatchObject({ runId: job.runId, status: 'success' });
    const log = await scheduler.logOf(job.runId);
    expect(Buffer.byteLength(log)).toBe(result.logBytes);
    expect(log.split('\n')).toHaveLength(lines + 2);
    expect(log.trimEnd().split('\n').at(-1)).toMatch(new RegExp(`^line ${lines} `));
  });

  it('past the fence what runs is ended, and a session begins when it is back (P15)', async () => {
    await begin(6_000);
    const { job } = await scheduler.grant({ script: 'echo up; while :; do date +%s%N >marker; sleep 0.02; done' });
    while ((await scheduler.logOf(job.runId)) === '') continue;
    broker.pause();
    await expect.poll(() => runner.session, { timeout: 20_000 }).toBeNull();
    const last = written(job.runId);
    broker.resume();
    await expect.poll(() => runner.session, { timeout: 20_000 }).not.toBeNull();
    expect(written(job.runId)).toBe(last);
    const { reply } = await scheduler.grant({ script: 'true' }, await nextOf(runner.session));
    expect(reply.answer).toBe('accepted');
    expect(await scheduler.results.next()).toMatchObject({ runId: reply.runId, status: 'success' });
  });
});

async function nextOf(session: string | null): Promise<{ session: string; credit: number }> {
  for (;;) {
    const offered = await scheduler.offers.next();
    if (offered.session === session) return offered;
  }
}
