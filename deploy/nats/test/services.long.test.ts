/** The real scheduler and runners, each as its own user of a server that runs on the generated files as they are. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import {
  type Bus,
  type CommittedEvents,
  connectBus,
  type CreateReply,
  type CreateRequest,
  inboxPrefixOf,
  openLog,
  readChunks,
  runnerUserName,
  subjects,
} from '@penstock/bus';
import { keyOf, newRunId, SERVICE_TENANT } from '@penstock/run';
import { openObjectStore } from '@penstock/object-store';
import { PACKAGES_BUCKET } from '@penstock/registry';
import { startRunner } from '@penstock/runner';
import { startScheduler } from '@penstock/scheduler';
import { openSqliteStore, runCollections, RunsRepository } from '@penstock/store';
import { silentLogger } from '@penstock/telemetry';
import { type Log, silentLog } from '@penstock/telemetry/log';
import { reportNotRun } from '@penstock/store/testing/mongodb';
import { brokerBinary, natsCommand, startTestBroker } from '@penstock/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

const MIB = 1024 * 1024;
const RUNNERS = ['r1', 'r2'];
/** Each label belongs to one runner, so both have work. */
const PIPELINE = [
  'pipeline:',
  '  name: permitted',
  'stages:',
  ...RUNNERS.flatMap((label) => [`  on-${label}:`, `    runs_on: ${label}`, `    run: "echo said by ${label}"`]),
].join('\n');

let folder: string;
let server: ChildProcess;
let url: string;
const refusals: unknown[] = [];
const closing: (() => Promise<unknown>)[] = [];

/** Anything the broker refuses is told to the connection's log. */
const log: Log = {
  ...silentLog,
  warn: (fields) => refusals.push(fields),
  error: (fields) => refusals.push(fields),
};

async function busOf(user: string, servers = url): Promise<Bus> {
  const pass = (await readFile(join(folder, 'credentials', user), 'utf8')).trim();
  const bus = await connectBus({ servers, user, pass, name: user, inboxPrefix: inboxPrefixOf(user), log });
  closing.push(() => bus.close());
  return bus;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-deploy-'));
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  probe.close();
  url = `nats://127.0.0.1:${address.port}`;
  const args = [
    '--runners',
    RUNNERS.join(','),
    '--out',
    folder,
    '--listen',
    `127.0.0.1:${address.port}`,
    '--store-dir',
    join(folder, 'store'),
    '--sync',
    'default',
    '--store-bytes-max',
    String(16 * 1024 * MIB),
  ];
  await promisify(execFile)(process.execPath, [join(import.meta.dirname, '../generate.ts'), ...args]);
  server = spawn(brokerBinary(), ['-c', join(folder, 'nats.conf')], { stdio: 'ignore' });
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
  const ended = once(server, 'exit');
  server.kill();
  await ended;
  await rm(folder, { recursive: true, force: true });
});

it('the set-up makes everything as its own user, and changes nothing the second time', async () => {
  const password = (await readFile(join(folder, 'credentials', 'setup'), 'utf8')).trim();
  const env = {
    ...process.env,
    SERVICE_NATS_URL: url.replace('nats://', `nats://setup:${password}@`),
    SERVICE_PARTITIONS: '1',
  };
  const setUp = (): Promise<{ stdout: string }> =>
    promisify(execFile)(process.execPath, [join(import.meta.dirname, '../setup.ts')], { env });
  expect((await setUp()).stdout).toContain('The streams and buckets are there, for 1 partition.');
  await setUp();
  const registry = await openObjectStore('nats', { bus: await busOf('registry'), bucket: PACKAGES_BUCKET });
  await registry.ping();
  expect(refusals).toEqual([]);
});

it('a run with a stage on each runner succeeds, its output is read, and the broker has refused nothing', async () => {
  const store = await openSqliteStore({ path: join(folder, 'store.sqlite'), collections: runCollections });
  closing.push(() => store.close());
  const scheduler = await startScheduler({
    bus: await busOf('scheduler'),
    ledger: new RunsRepository(store),
    log: silentLogger(),
    partitions: 1,
  });
  closing.push(() => scheduler.close());
  for (const runnerId of RUNNERS) {
    const bus = await busOf(runnerUserName(runnerId));
    const runner = await startRunner({
      bus,
      runnerId,
      slots: 1,
      labels: [runnerId],
      dataDir: join(folder, runnerId),
      graceMs: 500,
      log: silentLogger(),
    });
    closing.push(() => runner.close());
  }
  const gateway = await busOf('gateway');
  const key = keyOf({ tenant: SERVICE_TENANT, pipelineName: 'permitted' });
  const runId = newRunId({ now: Date.now(), key, random: randomBytes(8) });
  const end = Promise.withResolvers<string>();
  gateway.subscribe<CommittedEvents>(subjects.events(runId), ({ events }) => {
    for (const event of events) if (event.type === 'run_completed') end.resolve(event.status);
  });
  await gateway.flush();
  const request: CreateRequest = { runId, tenant: SERVICE_TENANT, key, yaml: PIPELINE, origin: { kind: 'api' } };
  expect(
    await gateway.requestRetrying<CreateRequest, CreateReply>(subjects.owner(0, 'create'), request, {
      deadlineMs: 20_000,
    }),
  ).toMatchObject({ ok: true, created: true });
  expect(await end.promise).toBe('SUCCESS');
  const said = (await Array.fromAsync(readChunks(gateway, runId, 1))).map(
    ({ runner, chunk }) => `${runner}: ${Buffer.from(chunk.output).toString().trim()}`,
  );
  expect(said.toSorted()).toEqual(['r1: said by r1', 'r2: said by r2']);
  expect(refusals).toEqual([]);
}, 60_000);

const nats = await natsCommand();
const hasNats = !('problem' in nats);
if ('problem' in nats) reportNotRun(`what the broker's user backup may: ${nats.problem}`);

it.runIf(hasNats)(
  'the user backup copies every stream, and puts each back where there is none of its name',
  async () => {
    if ('problem' in nats) return;
    const [bin, backup] = ['bin', 'backup'].map((name) => join(folder, name)) as [string, string, string];
    await mkdir(bin);
    await symlink(nats.path, join(bin, 'nats'));
    const call = async (script: string, port: string, store: string): Promise<string> => {
      const password = (await readFile(join(folder, 'credentials', 'backup'), 'utf8')).trim();
      const env = {
        ...process.env,
        PATH: `${bin}:${process.env['PATH']}`,
        HOME: folder,
        SERVICE_STORE_URL: `sqlite:${join(folder, store)}`,
        SERVICE_NATS_URL: `nats://backup:${password}@127.0.0.1:${port}`,
      };
      return (await promisify(execFile)('sh', [join(import.meta.dirname, '../..', script), backup], { env })).stdout;
    };
    const { port } = new URL(url);
    expect(await call('backup.sh', port, 'store.sqlite')).toContain('is a whole backup');
    const kept = await readdir(join(backup, 'broker'));
    expect(kept).toEqual(expect.arrayContaining(['DELIVERIES', 'JOURNAL', 'KV_controls', 'KV_revocations', 'LOGS']));
    expect(kept.filter((name) => ['KV_members', 'KV_runners'].includes(name))).toEqual([]);
    await expect(call('restore.sh', port, 'other.sqlite')).rejects.toThrow(/has a stream/);

    // The server reads an included file from the folder of its own configuration.
    const second = await startTestBroker({
      config: `include "../${basename(folder)}/accounts.conf"`,
      storeBytesMax: 16 * 1024 * MIB,
    });
    closing.push(() => second.stop());
    expect(await call('restore.sh', String(second.port), 'other.sqlite')).toContain('Restored');
    const there = await busOf('scheduler', second.url);
    expect((await openLog(there, 0).last())?.sequence).toBe(
      (await openLog(await busOf('scheduler'), 0).last())?.sequence,
    );
  },
  120_000,
);
