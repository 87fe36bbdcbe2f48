import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connectBus, connectionOf, ensureStreams, unpackText, type Bus, type RunnerLease } from '@penstock/bus';
import { ProcessExecutor, type Guard } from '@penstock/executor';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { silentLogger } from '@penstock/telemetry';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ExecutorSource } from '../src/executors/executor-source.ts';
import { NO_RECORDS } from '../src/attempt/attempt-records.ts';
import { machinePorts } from '../src/machine-ports.ts';
import { RunnerService } from '../src/runner.ts';
import { startRunner } from '../src/start.ts';
import type { Runner, RunnerOptions } from '../src/runner-options.ts';
import { NotIsolated } from '../src/workspace/errors.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

let broker: TestBroker;
let bus: Bus;
let scheduler: FakeScheduler;
let dataDir: string;
const runners: Runner[] = [];

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
});
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.close();
  await bus.close();
  await scheduler.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function start(more: Partial<RunnerOptions> = {}): Promise<Runner> {
  const runner = await startRunner({
    bus,
    runnerId: RUNNER,
    slots: 2,
    labels: ['linux'],
    dataDir,
    leaseMs: 6_000,
    graceMs: 500,
    log: silentLogger(),
    ...more,
  });
  runners.push(runner);
  return runner;
}

/** No process of this machine has the run's id in its environment (I9). */
function processesOf(runId: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(runId);
    } catch {
      return false;
    }
  });
}

describe('a stage', () => {
  it('runs and is reported with its outputs and the end of its log (P16)', async () => {
    await start();
    const script =
      'echo "hello from $PENSTOCK_STAGE of $PENSTOCK_PIPELINE"; echo oops >&2; echo version=1.2 >> "$SERVICE_OUTPUT"; echo other=x >> "$SERVICE_OUTPUT"';
    const { job, reply } = await scheduler.grant({ script, outputs: ['version'] });
    expect(reply.answer).toBe('accepted');
    const result = await scheduler.results.next();
    expect(result).toMatchObject({ runId: job.runId, status: 'success', outputs: { version: '1.2' } });
    const log = await scheduler.logOf(job.runId);
    expect(log).toContain('hello from build of p\n');
    expect(log).toContain("the output 'other' is dropped");
    expect(result.logBytes).toBe(Buffer.byteLength(log));
  });

  it('sees its own environment, that of its run, and nothing of the runner', async () => {
    process.env['RUNNER_SECRET'] = 'canary';
    await start();
    const { job } = await scheduler.grant({
      script: 'env; pwd',
      env: { OWN: "it's\nmine" },
      origin: { kind: 'webhook', repository: 'a/b', ref: 'refs/heads/$(touch x)', commit: 'c0ffee' },
    });
    await scheduler.results.next();
    const log = await scheduler.logOf(job.runId);
    delete process.env['RUNNER_SECRET'];
    for (const line of [
      'CI=true',
      `PENSTOCK_RUN_ID=${job.runId}`,
      'PENSTOCK_ATTEMPT=1',
      'PENSTOCK_REPOSITORY=a/b',
      'PENSTOCK_REF=refs/heads/$(touch x)',
      'PENSTOCK_COMMIT=c0ffee',
      "OWN=it's\nmine",
    ]) {
      expect(log).toContain(`${line}\n`);
    }
    expect(log).not.toContain('canary');
    expect(log.trimEnd().split('\n').at(-1)).toBe(join(dataDir, 'work', '0', job.runId, 'shared'));
  });

  it.each([
    ['exit 7', {}, { status: 'failed', reason: 'exit', exitCode: 7 }],
    ['kill -9 $$', {}, { status: 'failed', reason: 'signal', exitCode: 137 }],
    ['sleep 60', { timeoutMs: 100 }, { status: 'failed', reason: 'timeout' }],
    ['echo "no output" > "$SERVICE_OUTPUT"', { outputs: ['x'] }, { status: 'failed', reason: 'exit' }],
  ])('that ends by %j is reported with its reason', async (script, more, wanted) => {
    await start();
    await scheduler.grant({ script, ...more });
    expect(await scheduler.results.next()).toMatchObject(wanted);
  });

  const added = { stage: 'plan', depth: 1, ceiling: { secrets: [], audiences: [] }, env: {}, inputs: [] };
  const generates = { extensions: [], added };

  it('adds the stages that it writes to $SERVICE_STAGES', async () => {
    await start();
    await scheduler.grant({ script: `printf 'a: {run: x}\\n' > "$SERVICE_STAGES"`, generates });
    const result = await scheduler.results.next();
    expect(result).toMatchObject({ status: 'success' });
    expect(unpackText(result.added, 1_000)).toBe('a: {run: x}\n');
    await scheduler.grant({ script: 'true', generates });
    expect(await scheduler.results.next()).not.toHaveProperty('added');
    await scheduler.grant({ script: 'test -z "$SERVICE_STAGES"' });
    expect(await scheduler.results.next()).toMatchObject({ status: 'success' });
  });

  it.each([
    [`printf 'a: {run: x}\\nb: {after: c, run: x}\\n' > "$SERVICE_STAGES"`, 'which is not a stage'],
    ['head -c 300000 /dev/zero > "$SERVICE_STAGES"', '$SERVICE_STAGES holds 300000 bytes; 262144 are read'],
    ['ln -s /etc/passwd "$SERVICE_STAGES"', '$SERVICE_STAGES is a link, which is not followed'],
    ['mkdir "$SERVICE_STAGES"', '$SERVICE_STAGES'],
  ])('that adds what cannot be added, by %j, fails, and its log says why', async (script, why) => {
    await start();
    const { job } = await scheduler.grant({ script, generates });
    const result = await scheduler.results.next();
    expect(result).toMatchObject({ status: 'failed', reason: 'pipeline_file' });
    expect(result).not.toHaveProperty('added');
    expect(await scheduler.logOf(job.runId)).toContain(why);
  });

  it.each(['..', 'a/../../b', '/etc', 'a\nb'])('whose workdir turns out to be %j does not start', async (workdir) => {
    await start();
    const { job } = await scheduler.grant({ script: 'echo started', workdir });
    expect(await scheduler.results.next()).toMatchObject({ status: 'failed', reason: 'checkout' });
    const log = await scheduler.logOf(job.runId);
    expect(log).toContain('the stage cannot start: its workdir');
    expect(log).not.toContain('started');
  });

  it('shares the folder of its run with the stages after it, and gets a fresh one where it asks (P19)', async () => {
    await start();
    const runX = `run-${randomUUID()}`;
    await scheduler.grant({ script: 'echo made > file', runId: runX });
    await scheduler.results.next();
    await scheduler.grant({ script: 'cat file', runId: runX, stage: 'second' });
    expect(await scheduler.results.next()).toMatchObject({ status: 'success' });
    await scheduler.grant({ script: 'test ! -e file && pwd', runId: runX, stage: 'third', workspace: 'fresh' });
    expect(await scheduler.results.next()).toMatchObject({ status: 'success' });
  });

  it('sees the folders of runs and nothing else of the data folder', async () => {
    await start();
    writeFileSync(join(dataDir, 'secret'), 'canary');
    const { job } = await scheduler.grant({ script: `ls -A ${dataDir}` });
    await scheduler.results.next();
    expect(await scheduler.logOf(job.runId)).toBe('work\n');
  });
});

describe('credit (P11)', () => {
  it('is offered for every free slot, and rides along with a result', async () => {
    await start();
    const first = await scheduler.offers.next();
    await scheduler.offers.next();
    expect(scheduler.offers.waiting).toBe(0);
    await scheduler.grant({}, first);
    const result = await scheduler.results.next();
    expect(result.offer).toMatchObject({ scheduler: scheduler.member });
    const { reply } = await scheduler.grant({}, await scheduler.offers.next());
    expect(reply).toMatchObject({ credit: result.offer?.credit, answer: 'accepted' });
  });

  it('that no owner took is offered anew under another number', async () => {
    await start({ slots: 1 });
    scheduler.takeOffers = false;
    const first = await scheduler.offers.next();
    await scheduler.grant({}, first);
    const { offer } = await scheduler.results.next();
    const next = await scheduler.offers.next();
    expect(next.credit).not.toBe(first.credit);
    expect(next.credit).not.toBe(offer?.credit);
  });

  it('moves from a scheduler without demand to one that announces some', async () => {
    await start({ slots: 2 });
    const held = [await scheduler.offers.next(), await scheduler.offers.next()].map(({ credit }) => credit);
    const other = await FakeScheduler.start(broker.url, 'scheduler-2');
    other.bus.publish('demand.scheduler-2', { scheduler: 'scheduler-2', waiting: [{ labels: ['linux'], count: 1 }] });
    expect(held).toContain(await scheduler.withdrawn.next());
    expect(held).not.toContain((await other.offers.next()).credit);
    await other.close();
  });

  it('goes to the others when its scheduler is gone', async () => {
    const other = await FakeScheduler.start(broker.url, 'scheduler-2');
    await start({ slots: 2 });
    await scheduler.offers.next();
    await other.offers.next();
    await other.close();
    const moved = await scheduler.offers.next();
    expect(scheduler.open).toContain(moved.credit);
  });
});

describe('a grant (P12)', () => {
  it('that comes twice starts once and is answered held, also while its result is unanswered', async () => {
    await start();
    scheduler.answerResult = () => null;
    const script = 'until [ -e gate ]; do sleep 0.02; done; echo run >> runs; cat runs';
    const { job } = await scheduler.grant({ script });
    const gate = join(dataDir, 'work', String(job.partition), job.runId, 'shared', 'gate');
    expect((await scheduler.send({ ...job, repeated: true })).answer).toBe('held');
    writeFileSync(gate, '');
    await scheduler.results.next();
    expect((await scheduler.send({ ...job, repeated: true })).answer).toBe('held');
    expect(await scheduler.logOf(job.runId)).toBe('run\n');
  });

  it('for a credit that is over is refused and starts nothing', async () => {
    await start();
    const offered = await scheduler.offers.next();
    expect((await scheduler.send(scheduler.jobFor({ ...offered, credit: 999 }))).answer).toBe('refused');
    await scheduler.grant({}, offered);
    await scheduler.results.next();
    expect((await scheduler.send(scheduler.jobFor(offered))).answer).toBe('refused');
  });

  it('for a credit that is over is not answered once its session is: its stage may have begun', async () => {
    const options = { bus, runnerId: RUNNER, slots: 1, labels: ['linux'], dataDir, log: silentLogger() };
    const ports = machinePorts(options, join(dataDir, 'runner'), NO_RECORDS);
    let isGone = false;
    const createGuard = (): Guard =>
      new Proxy(ports.session.createGuard(), {
        get: (guard, name) => {
          const value: unknown = Reflect.get(guard, name, guard);
          if (name === 'isGone') return isGone || value === true;
          return typeof value === 'function' ? value.bind(guard) : value;
        },
      });
    const runner = new RunnerService(options, { ...ports, session: { ...ports.session, createGuard } });
    runners.push(runner);
    await runner.begin();
    const { job } = await scheduler.grant();
    await scheduler.results.next();
    await expect.poll(async () => (await scheduler.send({ ...job, repeated: true })).answer).toBe('refused');
    isGone = true;
    const asked = scheduler.bus.request(`job.${RUNNER}`, job, { timeoutMs: 300 });
    await expect(asked).rejects.toMatchObject({ tag: 'RequestTimeout' });
  });

  it('of a stage that still runs by an earlier one ends that one, and is taken when it is gone', async () => {
    await start();
    const { job } = await scheduler.grant({ script: 'echo up; exec sleep 600' });
    while ((await scheduler.logOf(job.runId)) === '') continue;
    const next = scheduler.jobFor(await scheduler.offers.next(), { runId: job.runId });
    await expect(scheduler.bus.request(`job.${RUNNER}`, next, { timeoutMs: 300 })).rejects.toMatchObject({
      tag: 'RequestTimeout',
    });
    expect(await scheduler.results.next()).toMatchObject({ credit: job.credit, reason: 'cancelled' });
    expect(processesOf(job.runId)).toEqual([]);
    expect((await scheduler.send({ ...next, repeated: true })).answer).toBe('accepted');
    expect(await scheduler.results.next()).toMatchObject({ credit: next.credit, status: 'success' });
  });

  it('of another session is not answered', async () => {
    await start();
    const job = scheduler.jobFor({ ...(await scheduler.offers.next()), session: 'an-old-one' });
    await expect(scheduler.bus.request('job.' + RUNNER, job, { timeoutMs: 300 })).rejects.toMatchObject({
      tag: 'RequestTimeout',
    });
  });
});

describe('a stop (P14)', () => {
  it('of a running stage is answered stopping, and leaves no process', async () => {
    await start();
    const { job } = await scheduler.grant({ script: 'echo up; (trap "" TERM; setsid sleep 600 & sleep 600)' });
    while ((await scheduler.logOf(job.runId)) === '') continue;
    expect((await scheduler.stopAttempt(job)).answer).toBe('stopping');
    expect(await scheduler.results.next()).toMatchObject({ status: 'failed', reason: 'cancelled' });
    expect(processesOf(job.runId)).toEqual([]);
  });

  it('that comes before its grant is answered gone, and the grant refused', async () => {
    await start();
    const job = scheduler.jobFor(await scheduler.offers.next());
    expect((await scheduler.stopAttempt(job)).answer).toBe('gone');
    expect((await scheduler.send(job)).answer).toBe('refused');
  });

  it('of an attempt whose processes are gone is answered gone in the end where the broker does not take its log', async () => {
    await start({ goneWithoutLogMs: 100 });
    const { job } = await scheduler.grant({
      script: 'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done',
    });
    while ((await scheduler.logOf(job.runId)) === '') continue;
    await connectionOf(scheduler.bus).request('$JS.API.STREAM.DELETE.LOGS');
    expect((await scheduler.stopAttempt(job)).answer).toBe('stopping');
    await expect.poll(async () => (await scheduler.stopAttempt(job)).answer, { timeout: 10_000 }).toBe('gone');
    expect(processesOf(job.runId)).toEqual([]);
    await ensureStreams(scheduler.bus, {
      partitions: 1,
      journalBytesMax: 16 * 1024 ** 2,
      logsBytesMax: 512 * 1024 ** 2,
    });
    expect(await scheduler.results.next()).toMatchObject({ runId: job.runId });
  });

  it('of what an earlier process ran is answered gone', async () => {
    await start();
    const job = scheduler.jobFor({ session: 'before', credit: 3 });
    expect((await scheduler.stopAttempt(job)).answer).toBe('gone');
  });
});

describe('results (P16)', () => {
  it('are sent again until they are answered, and listed in the lease until then (P13)', async () => {
    await start();
    scheduler.answerResult = () => null;
    const { job } = await scheduler.grant();
    await scheduler.results.next();
    await scheduler.leaseWhere(
      (event) => event.kind === 'put' && event.value.attempts.some(({ runId }) => runId === job.runId),
    );
    scheduler.answerResult = () => ({ ok: true, answer: 'committed', epoch: 1, offerTaken: false });
    const again = await scheduler.results.next();
    expect(again).toMatchObject({ runId: job.runId });
    expect(again.offer).toBeUndefined();
    await scheduler.leaseWhere((event) => event.kind === 'put' && event.value.attempts.length === 0);
  });
});

describe('unanswered results', () => {
  it('P13: keep the lease of a runner that closes, so that its next start can report them before they count as lost', async () => {
    const runner = await start({ leaseMs: 60_000 });
    scheduler.answerResult = () => null;
    const { job } = await scheduler.grant();
    await scheduler.results.next();
    await runner.close();
    const leases = await scheduler.leasesNow();
    expect(leases).toContain(`${RUNNER}.${job.session}`);
    await scheduler.bus.request('$JS.API.STREAM.PURGE.KV_runners', {}, { timeoutMs: 2_000 });
  });
});

describe('a session (P15)', () => {
  it('whose lease is taken away ends what it runs, and another begins', async () => {
    const runner = await start();
    const { job } = await scheduler.grant({ script: 'echo up; sleep 600' });
    while ((await scheduler.logOf(job.runId)) === '') continue;
    // As the broker would on its expiry: the next renewal is refused.
    await scheduler.bus.request(`$JS.API.STREAM.PURGE.KV_runners`, {}, { timeoutMs: 2_000 });
    const put = await scheduler.leaseWhere((event) => event.kind === 'put' && event.value.session !== job.session);
    expect(put).toMatchObject({ value: { attempts: [] } });
    expect(processesOf(job.runId)).toEqual([]);
    expect(runner.session).not.toBe(job.session);
    expect(scheduler.results.waiting).toBe(0);
    expect((await scheduler.stopAttempt(job)).answer).toBe('gone');
  });

  it('that is ending by itself has ended before its runner is closed', async () => {
    const ending = Promise.withResolvers<void>();
    const hasEnded = Promise.withResolvers<void>();
    const source: ExecutorSource = {
      kind: 'process',
      create: (_parts, guard) => {
        const executor = new ProcessExecutor({ guard, isolations: ['group'], warn: () => {} });
        const close = executor.close.bind(executor);
        executor.close = async () => {
          ending.resolve();
          await hasEnded.promise;
          await close();
        };
        return executor;
      },
    };
    const runner = await start({ executors: [source] });
    await scheduler.bus.request(`$JS.API.STREAM.PURGE.KV_runners`, {}, { timeoutMs: 2_000 });
    await ending.promise;
    let isClosed = false;
    const closed = runner.close().then(() => (isClosed = true));
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    expect(isClosed).toBe(false);
    hasEnded.resolve();
    expect(await closed).toBe(true);
  });

  it('says in its lease how much its stages may ask for', async () => {
    await start({ capacity: { cpu: 7, memoryBytes: 5_000_000_000 } });
    const { value } = (await scheduler.leaseWhere((event) => event.kind === 'put')) as { value?: RunnerLease };
    expect(value?.capacity).toEqual({ cpu: 7, memoryBytes: 5_000_000_000 });
  });
});

describe('a runner that is closed', () => {
  it('has closed what it had opened: its log, its records, its sessions', async () => {
    const options = { bus, runnerId: RUNNER, slots: 1, labels: [], dataDir, log: silentLogger() };
    const closed: string[] = [];
    const records = { ...NO_RECORDS, close: () => void closed.push('records') };
    const ports = machinePorts(options, join(dataDir, 'runner'), records);
    const runner = new RunnerService(options, {
      ...ports,
      openChunks: (pending) => {
        const chunks = ports.openChunks(pending);
        return { ...chunks, close: () => (closed.push('log'), chunks.close()) };
      },
    });
    await runner.begin();
    const { session } = runner;
    await runner.close();
    expect(closed.toSorted()).toEqual(['log', 'records']);
    expect(await scheduler.leasesNow()).not.toContain(`${RUNNER}.${session ?? ''}`);
  });
});

describe('a drain', () => {
  it('lets a stage end and its result be answered, takes nothing new, and gives up the lease', async () => {
    const runner = await start({ slots: 2 });
    const { job } = await scheduler.grant({ script: 'echo up; sleep 0.3' });
    const spare = await scheduler.offers.next();
    const drained = runner.drain(10_000);
    expect(await scheduler.withdrawn.next()).toBe(spare.credit);
    expect(await scheduler.results.next()).toMatchObject({ runId: job.runId, status: 'success' });
    await drained;
    await scheduler.leaseWhere((event) => event.kind === 'expired' && event.key === `${RUNNER}.${job.session}`);
  });

  it('ends what does not end, without a result: it is lost', async () => {
    const runner = await start();
    const { job } = await scheduler.grant({ script: 'sleep 600' });
    await runner.drain(50);
    expect(processesOf(job.runId)).toEqual([]);
    expect(scheduler.results.waiting).toBe(0);
  });
});

describe('a drain that finishes runs (RUNNER-9)', () => {
  it('takes stages of those alone whose shared folder is here, until they have ended', async () => {
    const runner = await start({ slots: 1 });
    const { job } = await scheduler.grant({ script: 'echo kept > file' });
    await scheduler.results.next();
    const before = await scheduler.offers.next();
    const drained = runner.drain(60_000, { finishesRuns: true });
    expect(await scheduler.withdrawn.next()).toBe(before.credit);
    const offered = await scheduler.offers.next();
    expect([before.leaving, offered.leaving]).toEqual([undefined, true]);
    expect((await scheduler.grant({ runId: `${job.runId}x` }, offered)).reply.answer).toBe('refused');
    const next = await scheduler.grant({ runId: job.runId, stage: 'next', script: 'cat file' });
    expect(next.reply.answer).toBe('accepted');
    // Its slot goes with no result to who might not know that the runner leaves.
    expect(await scheduler.results.next()).not.toHaveProperty('offer');
    expect(await scheduler.logOf(job.runId)).toContain('kept');
    expect(runner.heldRuns).toBe(1);
    scheduler.release([job.runId]);
    await drained;
    await scheduler.leaseWhere((event) => event.kind === 'expired' && event.key === `${RUNNER}.${job.session}`);
  });

  it('waits for no longer than it has', async () => {
    const runner = await start();
    await scheduler.grant();
    await scheduler.results.next();
    await runner.drain(200, { finishesRuns: true });
    expect([runner.heldRuns, runner.session]).toEqual([1, expect.any(String)]);
  });

  it.each([
    ['runs whose stages share nothing', 'fresh', true],
    ['any run where it is to come back', 'shared', false],
  ] as const)('does not wait for %s', async (_, workspace, finishesRuns) => {
    const runner = await start();
    await scheduler.grant({ workspace });
    await scheduler.results.next();
    expect(runner.openRuns).toBe(1);
    await runner.drain(600_000, { finishesRuns });
  });

  it('is over with its session', async () => {
    const runner = await start();
    await scheduler.grant();
    await scheduler.results.next();
    const drained = runner.drain(600_000, { finishesRuns: true });
    await scheduler.bus.request(`$JS.API.STREAM.PURGE.KV_runners`, {}, { timeoutMs: 2_000 });
    await drained;
    expect(runner.session).toBeNull();
  });

  it('leaves half of its time to what runs then, and takes nothing more', async () => {
    const limitMs = 600_000;
    const options = { bus, runnerId: RUNNER, slots: 2, labels: [], dataDir, leaseMs: 3_600_000, log: silentLogger() };
    const ports = machinePorts(options, join(dataDir, 'runner'), NO_RECORDS);
    const after: typeof ports.time.after = (ms, run) => ports.time.after(ms === limitMs / 2 ? 0 : ms, run);
    const runner = new RunnerService(options, { ...ports, time: { ...ports.time, after } });
    runners.push(runner);
    await runner.begin();
    await scheduler.grant({ script: 'sleep 1' });
    const before = await scheduler.offers.next();
    const drained = runner.drain(limitMs, { finishesRuns: true });
    expect(await scheduler.withdrawn.next()).toBe(before.credit);
    // There is half of it left.
    expect(await scheduler.results.next()).toMatchObject({ status: 'success' });
    await drained;
    expect(runner.heldRuns).toBe(1);
  });

  it('is over when their owners say so, and looks at nothing meanwhile', async () => {
    const options = { bus, runnerId: RUNNER, slots: 1, labels: [], dataDir, leaseMs: 3_600_000, log: silentLogger() };
    const ports = machinePorts(options, join(dataDir, 'runner'), NO_RECORDS);
    const pause = () => new Promise<void>(() => {});
    const runner = new RunnerService(options, { ...ports, time: { ...ports.time, pause } });
    runners.push(runner);
    await runner.begin();
    const { job } = await scheduler.grant();
    await scheduler.results.next();
    await scheduler.offers.next();
    const drained = runner.drain(600_000, { finishesRuns: true });
    expect(await scheduler.offers.next()).toMatchObject({ leaving: true });
    scheduler.release([job.runId]);
    await drained;
    expect(runner.heldRuns).toBe(0);
  });

  it.each([
    ['no scheduler has been there for a while', true],
    ['nothing has been done for a while, as people are waited for', false],
  ])('is over where %s', async (_, leaves) => {
    const options = { bus, runnerId: RUNNER, slots: 1, labels: [], dataDir, leaseMs: 3_600_000, log: silentLogger() };
    const ports = machinePorts(options, join(dataDir, 'runner'), NO_RECORDS);
    const whileMs = leaves ? 10_000 : 30_000;
    const after: typeof ports.time.after = (ms, run) => ports.time.after(ms === whileMs ? 0 : ms, run);
    const runner = new RunnerService(options, { ...ports, time: { ...ports.time, after } });
    runners.push(runner);
    await runner.begin();
    await scheduler.grant();
    await scheduler.results.next();
    const drained = runner.drain(600_000, { finishesRuns: true });
    if (leaves) await scheduler.leave();
    await drained;
    expect([runner.heldRuns, runner.session]).toEqual([1, expect.any(String)]);
  });
});

describe('workspaces (P19)', () => {
  it('go on the word of their owner', async () => {
    await start();
    const { job } = await scheduler.grant({ script: 'mkdir -p a/b && chmod 0 a && ln -s / root' });
    await scheduler.results.next();
    const folder = join(dataDir, 'work', '0', job.runId);
    expect(existsSync(folder)).toBe(true);
    scheduler.release([job.runId]);
    await expect.poll(() => existsSync(folder)).toBe(false);
  });

  it('that a start finds are asked about; those not open go', async () => {
    const runner = await start();
    const one = await scheduler.grant({ runId: 'run-open' });
    const other = await scheduler.grant({ runId: 'run-ended' });
    await scheduler.results.next();
    await scheduler.results.next();
    await runner.close();
    scheduler.openRuns = ['run-open'];
    await start();
    expect((await scheduler.asked.next()).runIds.toSorted()).toEqual(['run-ended', 'run-open']);
    await expect.poll(() => existsSync(join(dataDir, 'work', '0', other.job.runId))).toBe(false);
    expect(existsSync(join(dataDir, 'work', '0', one.job.runId))).toBe(true);
  });
});

it('a runner that has to keep its stages apart does not start where the machine gives no namespaces', async () => {
  const source: ExecutorSource = {
    kind: 'process',
    create: (_parts, guard) => new ProcessExecutor({ guard, isolations: ['group'], warn: () => {} }),
  };
  const executors = [source];
  await expect(start({ executors, isolationRequired: true })).rejects.toThrow(NotIsolated);
  const runner = await start({ executors });
  expect(runner.session).not.toBeNull();
});
