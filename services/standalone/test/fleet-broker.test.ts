/** P37: what a runner of the fleet may do at the real broker, and what it may not; and how it is let in and cut off. */
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type NatsConnection, nkeyAuthenticator, nkeys, wsconnect } from '@nats-io/transport-node';
import {
  acquireLease,
  type Bus,
  connectBus,
  deleteBuckets,
  ensureStreams,
  hearMembers,
  inboxPrefixOf,
  openLog,
  runnerUserName,
  subjects,
} from '@penstock/bus';
import { silentLog } from '@penstock/telemetry/log';
import { brokerBinary } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EmbeddedBroker, startEmbeddedBroker } from '../src/broker.ts';

const PATIENT_MS = 20_000;
const A = `fr_${'a'.repeat(32)}`;
const B = `fr_${'b'.repeat(32)}`;

let dataDir: string;
let broker: EmbeddedBroker;
let core: Bus;
const keys = new Map([A, B].map((runner) => [runner, nkeys.createUser()]));
const publicKeys = new Map([...keys].map(([runner, key]) => [runner, { publicKey: key.getPublicKey() }]));
const opened: NatsConnection[] = [];

const start = (): Promise<EmbeddedBroker> => startEmbeddedBroker({ dataDir, binary: brokerBinary(), log: silentLog });
const coreOf = ({ url, user, password }: EmbeddedBroker): Promise<Bus> =>
  connectBus({ servers: url, user, pass: password, name: 'core' });

async function runnerOf(runner: string, seed = keys.get(runner)?.getSeed()): Promise<NatsConnection> {
  const connection = await wsconnect({
    servers: `ws://127.0.0.1:${broker.fleetPort}`,
    inboxPrefix: inboxPrefixOf(runnerUserName(runner)),
    authenticator: nkeyAuthenticator(seed ?? new Uint8Array()),
    reconnect: false,
    timeout: PATIENT_MS,
  });
  opened.push(connection);
  return connection;
}

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'penstock-fleet-'));
  broker = await start();
  core = await coreOf(broker);
  await ensureStreams(core, { partitions: 1, fleet: true, ...broker });
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
  await core.close(0);
  await broker.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe('the door of the broker', () => {
  it(
    'is shut to who was not let in, and opens and shuts without anybody else noticing',
    { timeout: 120_000 },
    async () => {
      await expect(runnerOf(A)).rejects.toThrow(/authorization/i);
      let breaks = 0;
      core.events.on('disconnected', () => (breaks += 1));
      await broker.setRunners(new Map([...publicKeys].slice(0, 1)));
      const a = await runnerOf(A);
      await expect(runnerOf(B)).rejects.toThrow(/authorization/i);
      await broker.setRunners(publicKeys);
      const b = await runnerOf(B);
      await b.flush();
      const cutOff = a.closed();
      await broker.setRunners(new Map([...publicKeys].slice(1)));
      await cutOff;
      await expect(runnerOf(A)).rejects.toThrow(/authorization/i);
      // Whoever is still let in has noticed nothing.
      await b.flush();
      expect(breaks).toBe(0);
      expect(b.isClosed()).toBe(false);
      await core.flush();
    },
  );
});

/** What a runner asks for in its work; the core account answers each. */
const asksOf = (runner: string): readonly string[] => [
  subjects.pull('s', runner),
  subjects.result(0, runner),
  subjects.owner(0, 'open'),
  subjects.service('registry', 'package'),
  subjects.artifacts(runner, 'put'),
  subjects.upload(runner, 'u1'),
  subjects.slip(runner),
  // These are answered by streams.
  subjects.log('run1', runner),
  `$KV.runners.${runner}.s1`,
  `$JS.API.DIRECT.GET.KV_runners.$KV.runners.${runner}.s1`,
  `$JS.API.DIRECT.GET.LOGS.${subjects.log('run1', runner)}`,
];

describe('a runner that the broker refuses at first', { timeout: 120_000 }, () => {
  // The broker does so to whoever is about to say who it is while it reads who is let in.
  it('dials again, and is in', async () => {
    let dials = 0;
    const runner = await connectBus({
      servers: broker.url,
      name: 'runner',
      seed: keys.get(A)?.getSeed(),
      inboxPrefix: inboxPrefixOf(runnerUserName(A)),
      connectTimeoutMs: PATIENT_MS,
      openSocket: () => {
        dials += 1;
        if (dials === 2) void broker.setRunners(publicKeys);
        return new WebSocket(`ws://127.0.0.1:${broker.fleetPort}`);
      },
    });
    expect(dials).toBeGreaterThan(1);
    await runner.close(0);
  });
});

describe('a list that the broker does not take', { timeout: 120_000 }, () => {
  it('is told, and changes nothing, also not for the next start of the broker', async () => {
    await broker.setRunners(publicKeys);
    await expect(broker.setRunners(new Map([[A, { publicKey: 'UNOKEY' }]]))).rejects.toThrow(/did not take/u);
    await (await runnerOf(A)).flush();
    await core.close(0);
    const killed = broker.pid;
    process.kill(killed, 'SIGKILL');
    // Connects when the next one is there: the client has one kind of connection at a time, and so no bus to wait for it by.
    core = await coreOf(broker);
    await (await runnerOf(B)).flush();
    expect(broker.pid).not.toBe(killed);
  });
});

describe('a runner of the fleet', { timeout: 120_000 }, () => {
  let a: NatsConnection;

  beforeEach(async () => {
    await broker.setRunners(publicKeys);
    a = await runnerOf(A);
  });

  it('does its whole work from the moment that it is let in', async () => {
    for (const subject of asksOf(A).slice(0, 7)) core.respond(subject, () => 'answered');
    await core.flush();
    for (const subject of asksOf(A)) {
      const answer = await a.request(subject, '{}', { timeout: PATIENT_MS });
      expect(answer.data.length, subject).toBeGreaterThan(0);
    }
    a.subscribe(subjects.job(A), { callback: (_error, message) => void message.respond('"mine"') });
    const heard = ['demand.s', subjects.release(A), '$KV.members.m1'].map(async (subject) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      a.subscribe(subject, { callback: (_error, message) => resolve(message.subject) });
      return await promise;
    });
    await a.flush();
    expect(await core.request(subjects.job(A), {}, { timeoutMs: PATIENT_MS })).toBe('mine');
    core.publish('demand.s', {});
    core.publish(subjects.release(A), {});
    await acquireLease(core, 'members', 'm1', {}, { ttlMs: 60_000 });
    expect(await Promise.all(heard)).toEqual(['demand.s', subjects.release(A), '$KV.members.m1']);
  });

  it('is refused to publish anything else', async () => {
    const forbidden = [
      ...asksOf(B).filter((subject) => !asksOf(A).includes(subject)),
      ...[subjects.job(B), subjects.stop(B), subjects.job(A), subjects.release(B), subjects.demand('s')],
      ...[subjects.journal(0), subjects.events('run1'), subjects.opened(0), subjects.owner(0, 'create')],
      ...[subjects.owner(0, 'cancel'), subjects.owner(0, 'get'), subjects.delivery('l', 'd')],
      ...['$KV.members.m1', `$KV.fleet.${A}`, '$KV.revocations.x', '$O.packages.C.x'],
      ...['STREAM.CREATE.X', 'STREAM.DELETE.JOURNAL', 'STREAM.PURGE.LOGS', 'STREAM.UPDATE.LOGS'],
      ...['STREAM.MSG.GET.JOURNAL', 'STREAM.MSG.GET.KV_runners', 'STREAM.INFO.JOURNAL', 'STREAM.NAMES', 'INFO'],
      ...['CONSUMER.CREATE.KV_members.c', 'CONSUMER.CREATE.LOGS.c', 'CONSUMER.DURABLE.CREATE.LOGS.c'],
      ...['DIRECT.GET.LOGS', 'DIRECT.GET.JOURNAL.journal.0', 'DIRECT.GET.KV_runners'],
      ...['svc.auth.token', 'svc.auth.runner-tokens.create', 'svc.registry.cache.list', 'svc.webhook-ingest.x'],
      ...['$SYS.REQ.SERVER.PING', '$SYS.REQ.SERVER.x.RELOAD', `${inboxPrefixOf(runnerUserName(B))}.x`, '_INBOX.x', 'x'],
    ].map((subject) => (/^(?:STREAM|CONSUMER|DIRECT|INFO)/u.test(subject) ? `$JS.API.${subject}` : subject));
    for (const subject of forbidden)
      await expect(a.request(subject, '{}', { timeout: PATIENT_MS }), subject).rejects.toThrow(/permission/iu);
    expect(await openLog(core, 0).last()).toBeNull();
  });

  it('is refused to hear anything else', async () => {
    const forbidden = [
      ...['>', '*', 'job.*', 'log.>', 'live.log.>', 'journal.>', 'run.>', 'slip.*', 'svc.>', 'events.*', '_INBOX.>'],
      ...['_R_.>', '$KV.runners.>', '$KV.fleet.>', '$JS.>', '$SYS.>', 'release.*', subjects.job(B), subjects.slip(A)],
    ];
    for (const subject of forbidden) {
      const { promise, resolve } = Promise.withResolvers<Error | null>();
      a.subscribe(subject, { callback: (error) => resolve(error) });
      await a.flush();
      resolve(null);
      expect((await promise)?.message, subject).toMatch(/permission/iu);
    }
  });

  it("cannot have an answer delivered as another runner's job, or into a journal or a log", async () => {
    const b = await runnerOf(B);
    const jobs: string[] = [];
    b.subscribe(subjects.job(B), {
      callback: (_error, message) => {
        jobs.push(message.string());
        message.respond('"taken"');
      },
    });
    const asked: Promise<unknown>[] = [];
    core.respond(subjects.slip(A), () => {
      asked.push(Promise.resolve());
      return 'forged';
    });
    await Promise.all([b.flush(), core.flush()]);
    for (const reply of [subjects.job(B), subjects.journal(0), subjects.log('run1', B), '$KV.members.m2'])
      for (const subject of [subjects.slip(A), `$KV.runners.${A}.s1`, subjects.log('run2', A)])
        a.publish(subject, '{"forged":true}', { reply });
    await a.flush();
    // Behind all of them.
    core.respond(subjects.owner(0, 'open'), () => 'last');
    await core.flush();
    await a.request(subjects.owner(0, 'open'), '{}', { timeout: PATIENT_MS });
    expect(await core.request(subjects.job(B), { real: true }, { timeoutMs: PATIENT_MS })).toBe('taken');
    expect(jobs).toEqual(['{"real":true}']);
    expect(asked.length).toBeGreaterThan(0);
    expect(await openLog(core, 0).last()).toBeNull();
  });

  it('knows the schedulers by what it hears of them, without a consumer', async () => {
    const bus = await connectBus({ servers: broker.url, user: broker.user, pass: broker.password, name: 'ear' });
    const { promise: come, resolve: resolveCome } = Promise.withResolvers<string>();
    const { promise: gone, resolve: resolveGone } = Promise.withResolvers<string>();
    const hearing = hearMembers(bus, (event) => (event.kind === 'put' ? resolveCome : resolveGone)(event.key));
    await bus.flush();
    const lease = await acquireLease(core, 'members', 'm3', { at: 1 }, { ttlMs: 60_000 });
    expect(await come).toBe('m3');
    await lease.release();
    expect(await gone).toBe('m3');
    hearing.stop();
    await bus.close(0);
  });
});

describe('the store of an earlier release', { timeout: 120_000 }, () => {
  const account = (name: string): string => join(dataDir, 'broker', 'store', 'jetstream', name);

  it('goes on under its account, and is not guessed at where there are two', async () => {
    await openLog(core, 0).append(Buffer.from('kept'), { commitId: 'c', expectedSequence: 0 });
    await core.close(0);
    await broker.stop();
    await rename(account('PENSTOCK'), account('$G'));
    broker = await start();
    core = await coreOf(broker);
    expect(await openLog(core, 0).last()).toMatchObject({ commitId: 'c', sequence: 1 });
    await core.close(0);
    await broker.stop();
    await mkdir(account('$G'));
    await expect(start()).rejects.toThrow(/streams twice/u);
    await rm(account('$G'), { recursive: true });
    broker = await start();
    core = await coreOf(broker);
  });
});

describe('P17: a start with runners elsewhere', { timeout: 120_000 }, () => {
  it('keeps their leases, and ends those of its own machine', async () => {
    await acquireLease(core, 'runners', `${A}.s1`, {}, { ttlMs: 60_000 });
    await acquireLease(core, 'runners', 'local.s2', {}, { ttlMs: 60_000 });
    await acquireLease(core, 'members', 'm1', {}, { ttlMs: 60_000 });
    expect(await deleteBuckets(core)).toBe(false);
    await ensureStreams(core, { partitions: 1, fleet: true, ...broker });
    // Whose key is there cannot take it again.
    await expect(acquireLease(core, 'runners', `${A}.s1`, {}, { ttlMs: 60_000 })).rejects.toThrow(/held/u);
    await acquireLease(core, 'runners', 'local.s2', {}, { ttlMs: 60_000 });
    await acquireLease(core, 'members', 'm1', {}, { ttlMs: 60_000 });
  });

  it('has nothing to wait for where there were none', async () => {
    await acquireLease(core, 'runners', 'local.s2', {}, { ttlMs: 60_000 });
    expect(await deleteBuckets(core)).toBe(true);
  });
});
