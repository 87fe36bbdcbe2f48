/** P37: what a tenant's own runner stores at the real broker, and what it costs others: nothing. */
import { mkdtemp, rm } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { headers, type NatsConnection, nkeyAuthenticator, nkeys, wsconnect } from '@nats-io/transport-node';
import {
  acquireLease,
  type AttemptReply,
  type AttemptRequest,
  type Bus,
  type BusSubscription,
  connectBus,
  encodeChunk,
  ensureStreams,
  inboxPrefixOf,
  readChunks,
  purgeLogs,
  runnerUserName,
  subjects,
} from '@penstock/bus';
import { newRunId, partitionOf, type RunId } from '@penstock/run';
import { silentLog } from '@penstock/telemetry/log';
import { brokerBinary } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lookAtTenantWrites } from '../src/api/tenant-writes.ts';
import { type EmbeddedBroker, startEmbeddedBroker } from '../src/broker.ts';

const PATIENT_MS = 20_000;
const PARTITIONS = 4;
const MEBIBYTE = 1024 * 1024;
const OF_ADA = `fr_${'a'.repeat(32)}`;
const SHARED = `fr_${'b'.repeat(32)}`;
const OF_BOB = `fr_${'c'.repeat(32)}`;
const ADA = 'user/ada';
const BOB = 'user/bob';

let dataDir: string;
let broker: EmbeddedBroker;
let core: Bus;
let ada: NatsConnection;
let owner: BusSubscription;
let looking: BusSubscription;
/** `<run> <stage> <attempt> <runner>` of what lives. */
const living = new Set<string>();
const asked: AttemptRequest[] = [];
/** Answers of the owner that wait for it. */
let silence: Promise<void> | undefined;
const tenants = new Map([
  [OF_ADA, ADA],
  [OF_BOB, BOB],
]);
const keys = new Map([OF_ADA, OF_BOB, SHARED].map((runner) => [runner, nkeys.createUser()]));

const runId = (): RunId => newRunId({ now: Date.now(), key: ADA, random: randomBytes(16) });

async function connectionOf(runner: string): Promise<NatsConnection> {
  return await wsconnect({
    servers: `ws://127.0.0.1:${broker.fleetPort}`,
    inboxPrefix: inboxPrefixOf(runnerUserName(runner)),
    authenticator: nkeyAuthenticator(keys.get(runner)?.getSeed() ?? new Uint8Array()),
    reconnect: false,
    timeout: PATIENT_MS,
  });
}

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'penstock-tenant-writes-'));
  broker = await startEmbeddedBroker({ dataDir, binary: brokerBinary(), log: silentLog });
  core = await connectBus({ servers: broker.url, user: broker.user, pass: broker.password, name: 'core' });
  await ensureStreams(core, { partitions: PARTITIONS, fleet: true, ...broker });
  await broker.setRunners(
    new Map([...keys].map(([runner, key]) => [runner, { publicKey: key.getPublicKey(), tenant: tenants.get(runner) }])),
  );
  ada = await connectionOf(OF_ADA);
});
const look = async (more: { logsBytesMax?: number; logBytesMax?: number; ownerMs?: number } = {}): Promise<void> => {
  looking = lookAtTenantWrites({
    bus: core,
    partitions: PARTITIONS,
    logsBytesMax: 64 * MEBIBYTE,
    logBytesMax: MEBIBYTE,
    log: silentLog,
    lookMs: 20,
    ...more,
  });
  await core.flush();
};
beforeEach(() => {
  living.clear();
  asked.length = 0;
  silence = undefined;
  owner = core.respond<AttemptRequest, AttemptReply>('run.*.attempt', async (request, { subject }) => {
    asked.push(request);
    if (request.runner === OF_ADA) await silence;
    const { runId: run, stage, attempt } = request.ref;
    const isIt = living.has([run, stage, attempt, request.runner].join(' '));
    if (subject !== subjects.owner(partitionOf(run, PARTITIONS), 'attempt')) throw new Error('not its owner');
    const tenant = tenants.get(request.runner) ?? '';
    return { ok: true, epoch: 1 as never, attempt: isIt ? { tenant, key: tenant, expireMs: 1 } : null };
  });
});
afterEach(() => {
  looking.stop();
  owner.stop();
});
afterAll(async () => {
  await ada.close();
  await core.close(0);
  await broker.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const chunkOf = (stage: string, more: { attempt?: number; bytes?: number; offset?: number; mark?: true } = {}) => {
  const { attempt = 1, bytes = 10, offset = 0, mark } = more;
  const head = { stage, attempt, offset, at: 0, parts: [['stdout', bytes]] as const };
  return encodeChunk({ ...head, ...(mark === undefined ? {} : { mark }), output: Buffer.alloc(bytes, 'x') });
};

/** Of the answer, as the stream gives it: 0 for what was kept nowhere. */
async function write(
  run: string,
  chunk: Uint8Array,
  by: NatsConnection = ada,
  runner = OF_ADA,
  timeout = PATIENT_MS,
): Promise<number> {
  const answer = await by.request(subjects.log(run, runner), chunk, { timeout });
  return answer.json<{ seq: number }>().seq;
}

/** Of `LOGS`. */
const ask = <T>(what: 'INFO' | 'UPDATE', body: object | null): Promise<T> =>
  core.request<object | null, T>(`$JS.API.STREAM.${what}.LOGS`, body, { timeoutMs: PATIENT_MS });

/** Of each runner the stage of its last chunk. */
async function stored(run: RunId): Promise<readonly string[]> {
  const chunks = await Array.fromAsync(readChunks(core, run, 1));
  const last = new Map(chunks.map(({ runner, chunk }) => [runner, chunk.stage]));
  return [...last].map(([runner, stage]) => `${runner} ${stage}`);
}

describe("a chunk of a tenant's own runner", { timeout: 120_000 }, () => {
  it('is stored under its name for an attempt that lives there, and the stream answers', async () => {
    await look();
    const run = runId();
    living.add(`${run} build 1 ${OF_ADA}`);
    expect(await write(run, chunkOf('build'))).toBeGreaterThan(0);
    expect(await stored(run)).toEqual([`${OF_ADA} build`]);
    await write(run, chunkOf('build', { offset: 10 }));
    // The owner's word holds for a while.
    expect(asked).toHaveLength(1);
  });

  it("is kept nowhere for another's run, an attempt that is over, a mark, or what is no chunk", async () => {
    await look();
    const [theirs, own] = [runId(), runId()];
    living.add(`${theirs} build 1 ${SHARED}`);
    living.add(`${own} build 2 ${OF_ADA}`);
    for (const [run, chunk] of [
      [theirs, chunkOf('build')],
      [own, chunkOf('build')],
      [own, chunkOf('other', { attempt: 2 })],
      [own, chunkOf('build', { attempt: 2, mark: true })],
      [own, chunkOf('build', { attempt: 2, bytes: 200_000 })],
      [own, chunkOf('x'.repeat(257))],
      [own, Buffer.from('no head')],
      [own, Buffer.from('[]\nx')],
      ['no-run-id', chunkOf('build')],
    ] as const)
      expect(await write(run, chunk), Buffer.from(chunk).toString().slice(0, 90)).toBe(0);
    expect(await Promise.all([stored(theirs), stored(own)])).toEqual([[], []]);
  });

  it('is stored for so many bytes of its attempt, and no more of it', async () => {
    await look({ logBytesMax: 0 });
    const run = runId();
    for (const stage of ['long', 'short']) living.add(`${run} ${stage} 1 ${OF_ADA}`);
    const answers: number[] = [];
    for (let count = 0; count < 20; count += 1)
      answers.push(await write(run, chunkOf('long', { bytes: 64 * 1024, offset: count * 64 * 1024 })));
    const kept = answers.filter((seq) => seq > 0).length;
    expect(kept).toBe(15);
    expect(await write(run, chunkOf('short'))).toBeGreaterThan(0);
  });

  it('waits where its tenant has its share of the logs, while those of others are stored', async () => {
    // A share of 64 KiB, of all tenants 512.
    await look({ logsBytesMax: MEBIBYTE });
    const [full, theirs] = [runId(), runId()];
    living.add(`${full} build 1 ${OF_ADA}`);
    expect(await write(full, chunkOf('build', { bytes: 60_000 }))).toBeGreaterThan(0);
    await expect(write(full, chunkOf('build', { bytes: 60_000 }), ada, OF_ADA, 500)).rejects.toThrow(/timeout/iu);
    const shared = await connectionOf(SHARED);
    expect(await write(theirs, chunkOf('build', { bytes: 60_000 }), shared, SHARED)).toBeGreaterThan(0);
    await shared.close();
    expect(await stored(theirs)).toEqual([`${SHARED} build`]);
  });

  it('is held while the owner of its run is asked, and no more of them than there is room for (WRITES-4)', async () => {
    await look({ logBytesMax: 32 * MEBIBYTE, logsBytesMax: 1024 * MEBIBYTE, ownerMs: PATIENT_MS });
    const answered = Promise.withResolvers<void>();
    silence = answered.promise;
    const [slow, theirs] = [runId(), runId()];
    living.add(`${slow} build 1 ${OF_ADA}`);
    living.add(`${theirs} build 1 ${OF_BOB}`);
    const bytes = 64 * 1024;
    const stored: number[] = [];
    for (let index = 0; index < 300; index += 1)
      write(slow, chunkOf('build', { bytes, offset: index * bytes })).then(
        (seq) => seq > 0 && stored.push(index),
        () => {},
      );
    await ada.flush();
    const bob = await connectionOf(OF_BOB);
    // Behind all of them.
    expect(await write(theirs, chunkOf('build'), bob, OF_BOB)).toBeGreaterThan(0);
    await bob.close();
    expect(stored).toEqual([]);
    answered.resolve();
    // Nothing is held any more; and the stream answers in order, so that by its answer those of all that were stored are here.
    const last = () => write(slow, chunkOf('build', { bytes, offset: 300 * bytes }), ada, OF_ADA, 500).catch(() => 0);
    await expect.poll(last, { timeout: PATIENT_MS }).toBeGreaterThan(0);
    // 9.6 MiB of them, each with its head.
    expect(stored.length).toBeGreaterThan(100);
    expect(stored.length).toBeLessThan(154);
    expect(stored).toEqual(Array.from(stored.keys()));
  });

  it('counts once, however often the broker has not stored it', async () => {
    await look({ logBytesMax: 0, logsBytesMax: 16 * MEBIBYTE });
    const run = runId();
    living.add(`${run} build 1 ${OF_ADA}`);
    const bytes = 64 * 1024;
    const { config } = await ask<{ readonly config: object }>('INFO', null);
    await ask('UPDATE', { ...config, max_msg_size: 100 });
    for (let count = 0; count < 40; count += 1) {
      const refused = await ada.request(subjects.log(run, OF_ADA), chunkOf('build', { bytes }), {
        timeout: PATIENT_MS,
      });
      expect(refused.json()).toMatchObject({ error: {} });
    }
    await ask('UPDATE', config);
    expect(await write(run, chunkOf('build', { bytes }))).toBeGreaterThan(0);
  });

  it('comes again where the owner of its run does not say', async () => {
    await look();
    const run = runId();
    living.add(`${run} build 1 ${OF_ADA}`);
    owner.stop();
    await core.flush();
    await expect(write(run, chunkOf('build'), ada, OF_ADA, 500)).rejects.toThrow(/timeout/iu);
    expect(await stored(run)).toEqual([]);
  });
});

describe("a lease of a tenant's own runner", { timeout: 120_000 }, () => {
  const lease = (session: string, more: object = {}) => ({
    runner: OF_ADA,
    session,
    labels: ['linux'],
    slots: 2,
    attempts: [],
    ...more,
  });
  let bus: Bus;

  beforeEach(async () => {
    await look();
    bus = await connectBus({
      servers: `ws://127.0.0.1:${broker.fleetPort}`,
      name: 'runner',
      seed: keys.get(OF_ADA)?.getSeed(),
      inboxPrefix: inboxPrefixOf(runnerUserName(OF_ADA)),
      openSocket: () => new WebSocket(`ws://127.0.0.1:${broker.fleetPort}`),
    });
  });
  afterEach(() => bus.close(0));

  it('is taken, renewed and ended as any', async () => {
    const held = await acquireLease(bus, 'runners', `${OF_ADA}.s1`, lease('s1'), { ttlMs: 15_000 });
    expect((await held.renew()).kind).toBe('accepted');
    // Somebody else's compare-and-set is refused by the broker, whoever looked at it.
    await expect(
      acquireLease(bus, 'runners', `${OF_ADA}.s1`, lease('s1'), { ttlMs: 15_000, timeoutMs: 2_000 }),
    ).rejects.toThrow(/held/u);
    await held.release();
    const again = await acquireLease(bus, 'runners', `${OF_ADA}.s1`, lease('s1'), { ttlMs: 15_000 });
    await again.release();
  });

  it("cannot empty the bucket of everybody's, or stay for ever", async () => {
    await acquireLease(core, 'runners', 'local.s9', { any: true }, { ttlMs: 60_000 });
    const head = headers();
    head.set('Nats-Rollup', 'all');
    head.set('Nats-TTL', '20000ms');
    const subject = `$KV.runners.${OF_ADA}.s2`;
    const bytes = JSON.stringify(lease('s2'));
    await ada.request(subject, bytes, { headers: head, timeout: PATIENT_MS });
    await expect(ada.request(subject, bytes, { timeout: 500 })).rejects.toThrow(/timeout/iu);
    await expect(acquireLease(core, 'runners', 'local.s9', {}, { ttlMs: 60_000 })).rejects.toThrow(/held/u);
  });
});

describe("at the broker, a tenant's own runner", { timeout: 120_000 }, () => {
  beforeEach(() => look());

  it("hears its tenant's demand, and is refused everybody's and any other tenant's", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    ada.subscribe(subjects.demandOfTenant('*', ADA), { callback: (_error, message) => resolve(message.subject) });
    await ada.flush();
    core.publish(subjects.demandOfTenant('s', 'user/bob'), {});
    core.publish(subjects.demandOfTenant('s', ADA), {});
    expect(await promise).toBe(subjects.demandOfTenant('s', ADA));
    for (const subject of ['demand.*', 'demand.>', subjects.demandOfTenant('*', 'user/bob'), 'looked.>', 'log.>']) {
      const refused = Promise.withResolvers<Error | null>();
      ada.subscribe(subject, { callback: (error) => refused.resolve(error) });
      await ada.flush();
      refused.resolve(null);
      expect((await refused.promise)?.message, subject).toMatch(/permission/iu);
    }
  });

  it('stores nothing past who looks, by no name that it has', async () => {
    const run = runId();
    for (const subject of [
      subjects.looked(subjects.log(run, SHARED)),
      subjects.looked(subjects.log(run, OF_ADA)),
      subjects.log(run, SHARED),
      `$KV.runners.${SHARED}.s1`,
      subjects.looked(`$KV.runners.${SHARED}.s1`),
    ])
      await expect(ada.request(subject, chunkOf('build'), { timeout: PATIENT_MS }), subject).rejects.toThrow(
        /permission/iu,
      );
    // Nobody looks: nobody stores.
    looking.stop();
    await core.flush();
    living.add(`${run} build 1 ${OF_ADA}`);
    await expect(write(run, chunkOf('build'))).rejects.toThrow(/responders/iu);
    expect(await stored(run)).toEqual([]);
    await purgeLogs(core, run);
  });

  it("cannot have an answer delivered as another runner's job, or into a journal", async () => {
    const shared = await connectionOf(SHARED);
    const jobs: string[] = [];
    shared.subscribe(subjects.job(SHARED), { callback: (_error, message) => void jobs.push(message.string()) });
    await shared.flush();
    const run = runId();
    living.add(`${run} build 1 ${OF_ADA}`);
    for (const reply of [subjects.job(SHARED), subjects.journal(0), subjects.log(run, SHARED)])
      ada.publish(subjects.log(run, OF_ADA), chunkOf('build'), { reply });
    // Behind all of them.
    await write(run, chunkOf('build'));
    await shared.flush();
    expect(jobs).toEqual([]);
    expect(await stored(run)).toEqual([`${OF_ADA} build`]);
    await shared.close();
  });
});
