import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, type Bus, type Job, type ResultRequest } from '@penstock/bus';
import type { MirrorCache } from '@penstock/git';
import { openMirrors } from '@penstock/git/mirrors';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { silentLogger } from '@penstock/telemetry';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startRunner, type Runner } from '../src/index.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

let broker: TestBroker;
let bus: Bus;
let scheduler: FakeScheduler;
let folder: string;
let dataDir: string;
let repository: string;
let mirrors: MirrorCache;
let runner: Runner | null = null;

beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());
beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-checkouts-')));
  dataDir = join(folder, 'data');
  repository = join(folder, 'repository');
  git('init', '-q', '-b', 'main', repository);
  scheduler = await FakeScheduler.start(broker.url);
  bus = await connectBus({ servers: broker.url, name: 'runner' });
});
afterEach(async () => {
  await runner?.close();
  runner = null;
  await mirrors.close();
  await bus.close();
  await scheduler.close();
  rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<Runner> {
  mirrors = openMirrors({
    folder: join(dataDir, 'runner', 'mirrors'),
    bytesMax: 1024 ** 3,
    policy: { mode: 'development', allowedHosts: [] },
    log: silentLogger(),
  });
  runner = await startRunner({
    bus,
    runnerId: RUNNER,
    slots: 3,
    labels: ['linux'],
    dataDir,
    leaseMs: 6_000,
    graceMs: 500,
    mirrors,
    log: silentLogger(),
  });
  return runner;
}

/** As the machine would, between two starts. */
async function stop(): Promise<void> {
  await runner?.close();
  await mirrors.close();
  scheduler.offers.drop();
}

function git(...args: readonly string[]): string {
  const who = ['-c', 'user.name=a', '-c', 'user.email=a@b'];
  return execFileSync('git', [...who, ...args], { encoding: 'utf8', cwd: folder }).trim();
}

function commit(text: string): string {
  writeFileSync(join(repository, 'file'), text);
  git('-C', repository, 'add', '-A');
  git('-C', repository, 'commit', '-q', '-m', text);
  return git('-C', repository, 'rev-parse', 'HEAD');
}

function originAt(id: string, cloneUrl = `file://${repository}`): Job['origin'] {
  return { kind: 'webhook', repository: 'a/b', ref: 'refs/heads/main', commit: id, cloneUrl };
}

async function grant(more: Partial<Job> & { readonly script?: string }): Promise<Job> {
  const { job, reply } = await scheduler.grant(more);
  expect(reply.answer).toBe('accepted');
  return job;
}

async function run(
  more: Partial<Job> & { readonly script?: string },
): Promise<{ readonly job: Job; readonly result: ResultRequest; readonly log: string }> {
  const job = await grant(more);
  const result = await scheduler.results.next();
  return { job, result, log: await scheduler.logOf(job.runId) };
}

/** A server that takes a request and never answers; `asked` says that it came. */
async function silentServer(): Promise<{
  readonly url: string;
  readonly asked: Promise<unknown>;
  readonly server: Server;
}> {
  const server = createServer(() => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/a/b`,
    asked: once(server, 'request'),
    server,
  };
}

function end(server: Server): Promise<unknown> {
  server.closeAllConnections();
  server.close();
  return once(server, 'close');
}

describe('a run with a repository', () => {
  it('begins in a workspace at its commit, which its stages share, and git works in it', async () => {
    const first = commit('first');
    commit('second');
    await start();
    const origin = originAt(first);
    const script =
      'cat file; git rev-parse HEAD; git log -1 --format=%s; git status --porcelain; git remote get-url origin; echo made >made';
    const { job, result, log } = await run({ origin, script });
    expect(result).toMatchObject({ status: 'success' });
    expect(log.trimEnd().split('\n')).toEqual([`first${first}`, 'first', `file://${repository}`]);
    const later = await run({ runId: job.runId, stage: 'test', origin, script: 'cat made' });
    expect(later.result).toMatchObject({ status: 'success' });
  });

  it('gives a fresh workspace to each attempt that wants one', async () => {
    await start();
    const origin = originAt(commit('first'));
    const { job } = await run({ origin, script: 'echo made >made' });
    const fresh = await run({
      runId: job.runId,
      stage: 'test',
      workspace: 'fresh',
      origin,
      script: 'cat file; test ! -e made; rm -rf .git file',
    });
    expect(fresh.result).toMatchObject({ status: 'success' });
    const again = await run({
      runId: job.runId,
      stage: 'test',
      attempt: 2,
      workspace: 'fresh',
      origin,
      script: 'git status --porcelain; cat file',
    });
    expect(again.result).toMatchObject({ status: 'success' });
    expect(readdirSync(join(dataDir, 'runner', 'checkouts'))).toEqual([]);
  });

  it('checks out once for stages that begin together', async () => {
    await start();
    const origin = originAt(commit('first'));
    const runId = 'run-together';
    await Promise.all(
      ['a', 'b', 'c'].map((stage) => grant({ runId, stage, origin, script: `echo ${stage} >>seen; cat file` })),
    );
    for (let stages = 0; stages < 3; stages += 1)
      expect(await scheduler.results.next()).toMatchObject({ status: 'success' });
    expect(
      readFileSync(join(dataDir, 'work', '0', runId, 'shared', 'seen'), 'utf8')
        .trim()
        .split('\n')
        .toSorted(),
    ).toEqual(['a', 'b', 'c']);
  });

  it('finds its workspace again after a restart of the runner, and starts from the commit after its loss (P19)', async () => {
    await start();
    const origin = originAt(commit('first'));
    const { job } = await run({ origin, script: 'echo made >made' });
    scheduler.openRuns = [job.runId];
    await stop();
    await start();
    expect((await run({ runId: job.runId, stage: 'test', origin, script: 'cat made' })).result).toMatchObject({
      status: 'success',
    });
    await stop();
    rmSync(dataDir, { recursive: true });
    await start();
    expect(
      (await run({ runId: job.runId, stage: 'deploy', origin, script: 'cat file; test ! -e made' })).result,
    ).toMatchObject({ status: 'success' });
  });

  it('has no path from its workspace to the mirror, and no git of the runner ever works in a folder that a stage had', async () => {
    await start();
    const origin = originAt(commit('first'));
    const traces = join(folder, 'traces');
    // What git would run for whoever asks it for anything here.
    const script = `cat .git/config; cat .git/objects/info/alternates || true; find . -type f -links +1; git config core.fsmonitor "touch ${traces}; :"; printf '#!/bin/sh\\ntouch ${traces}\\n' >.git/hooks-post; git config core.hooksPath .`;
    const { job, result, log } = await run({ origin, script });
    expect(result).toMatchObject({ status: 'success' });
    expect(log).not.toContain(dataDir);
    expect((await run({ runId: job.runId, stage: 'test', origin, script: 'true' })).result).toMatchObject({
      status: 'success',
    });
    expect(existsSync(traces)).toBe(false);
  });
});

describe('a checkout that fails', () => {
  it.each([
    ['not_found', (id: string) => originAt(id.replace(/^./, id.startsWith('0') ? '1' : '0'))],
    ['address_not_allowed', (id: string) => originAt(id, 'http://169.254.169.254/a/b')],
    ['address_not_allowed', (id: string) => originAt(id, 'ext::touch x')],
    ['unreachable', (id: string) => originAt(id, 'http://127.0.0.1:1/a/b')],
  ] as const)('fails the stage, with the reason checkout and the cause in its log: %s', async (code, originOf) => {
    await start();
    const { job, result, log } = await run({ origin: originOf(commit('first')) });
    expect(result).toMatchObject({ status: 'failed', reason: 'checkout', logBytes: Buffer.byteLength(log) });
    expect(log).toContain('the workspace could not be checked out');
    expect(log).toContain(code);
    expect(existsSync(join(dataDir, 'work', '0', job.runId, 'shared'))).toBe(false);
    expect((await run({ origin: originAt(commit('second')), script: 'cat file' })).result).toMatchObject({
      status: 'success',
    });
  });

  it('is ended by a cancel, in the middle of the fetch (P14)', async () => {
    await start();
    const { url, asked, server } = await silentServer();
    const job = await grant({ origin: originAt('a'.repeat(40), url) });
    await asked;
    expect(await scheduler.stopAttempt(job)).toMatchObject({ answer: 'stopping' });
    expect(await scheduler.results.next()).toMatchObject({ status: 'failed', reason: 'cancelled' });
    await end(server);
  });

  it('is ended by the timeout of its stage', async () => {
    await start();
    const { url, server } = await silentServer();
    const { result } = await run({ origin: originAt('a'.repeat(40), url), timeoutMs: 300 });
    expect(result).toMatchObject({ status: 'failed', reason: 'timeout' });
    await end(server);
  });

  it('ends with its session, without a result (P15)', async () => {
    await start();
    const { url, asked, server } = await silentServer();
    const job = await grant({ origin: originAt('a'.repeat(40), url) });
    await asked;
    await runner?.close();
    runner = null;
    expect(scheduler.results.waiting).toBe(0);
    await scheduler.leaseWhere(({ kind, key }) => kind !== 'put' && key.includes(job.session));
    await end(server);
  });
});

it('a checkout that a killed runner has left goes at the next start', async () => {
  const left = join(dataDir, 'runner', 'checkouts', 'left', '.git');
  mkdirSync(left, { recursive: true });
  await start();
  const { result } = await run({ origin: originAt(commit('first')) });
  expect(result).toMatchObject({ status: 'success' });
  await expect.poll(() => existsSync(left)).toBe(false);
});
