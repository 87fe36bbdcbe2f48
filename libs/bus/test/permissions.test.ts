/** The generated configuration, held to what each service does with it. */
import { once } from 'node:events';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { oncePlaced, startTestCluster } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  acquireLease,
  brokerPermissions,
  type Bus,
  buckets,
  clockDifference,
  type ClockedService,
  connectBus,
  createLogWriter,
  encodeChunk,
  ensureStreams,
  leaseAtLeader,
  type LeaseEvent,
  type LiveChunk,
  openDeliveryLog,
  openLog,
  putExpiring,
  loggedRuns,
  purgeLogs,
  readChunks,
  startDeliveryConsumer,
  subjects,
  subscribeLiveChunks,
  watchLeases,
} from '../src/index.ts';
import { lastChunks } from '../src/jetstream/log-reader.ts';
import {
  chunk,
  chunksOf,
  GeneratedBroker,
  patient,
  soon,
  streamsOptions,
  MIB,
  subscribing,
  timely,
} from './generated-broker.ts';

let broker: GeneratedBroker;
const busOf: GeneratedBroker['busOf'] = (...of) => broker.busOf(...of);
const rawOf: GeneratedBroker['rawOf'] = (user) => broker.rawOf(user);

beforeAll(async () => {
  broker = await GeneratedBroker.start('r1,r2');
});
afterEach(() => broker.closeOpened());
afterAll(() => broker.stop());

describe('the set-up', () => {
  it('is refused to the scheduler before, and found well by it after', async () => {
    const scheduler = await busOf('scheduler');
    await expect(ensureStreams(scheduler, streamsOptions)).rejects.toThrow(/permission/i);
    const setup = await busOf('setup');
    expect(await ensureStreams(setup, streamsOptions)).toEqual({ bucketsCreated: true });
    expect(await ensureStreams(setup, streamsOptions)).toEqual({ bucketsCreated: false });
    expect(await ensureStreams(scheduler, streamsOptions)).toEqual({ bucketsCreated: false });
    await expect(ensureStreams(scheduler, { ...streamsOptions, partitions: 16 })).rejects.toMatchObject({
      tag: 'PartitionsMismatch',
    });
  });

  it('keeps passwords where only their owner reads them, and hashes in the configuration', async () => {
    const text = await readFile(join(broker.folder, 'accounts.conf'), 'utf8');
    for (const user of await readdir(join(broker.folder, 'credentials'))) {
      expect(text).not.toContain(await broker.passwordOf(user));
      expect((await stat(join(broker.folder, 'credentials', user))).mode & 0o777).toBe(0o600);
    }
    expect((await stat(join(broker.folder, 'accounts.conf'))).mode & 0o777).toBe(0o600);
    expect(text).not.toMatch(/deny/);
  });

  it('P10: takes only runner ids that are one token, each once', () => {
    for (const ids of [['a.b'], ['*'], ['>'], [''], ['a b'], ['a"b'], ['r', 'r']])
      expect(() => brokerPermissions(ids)).toThrow(RangeError);
  });

  it("lets nobody in without a password, or with another's", async () => {
    const pass = await broker.passwordOf('runner_r1');
    const strangers = [
      {},
      { user: 'runner_r1' },
      { user: 'runner_r1', pass: `${pass}x` },
      { user: 'runner_r2', pass },
      { user: '', pass: '' },
      { token: pass },
    ];
    for (const credentials of strangers) {
      await expect(connectBus({ servers: broker.url, name: 'stranger', ...credentials })).rejects.toMatchObject({
        tag: 'BrokerAway',
      });
    }
  });
});

describe('each service does its whole job as its own user', () => {
  it('the scheduler: journal, membership, watches, logs', async () => {
    const bus = await busOf('scheduler');
    const log = openLog(bus, 0);
    expect(await log.last()).toBeNull();
    expect(await log.append(Buffer.from('a'), { commitId: 'a', expectedSequence: 0 })).toMatchObject({
      ok: true,
      sequence: 1,
    });
    expect(await log.append(Buffer.from('b'), { commitId: 'b', expectedSequence: 1 })).toMatchObject({
      ok: true,
      sequence: 2,
    });
    expect((await Array.fromAsync(log.read(1))).map(({ commitId }) => commitId)).toEqual(['a', 'b']);
    expect(await log.purgeTo(2)).toMatchObject({ purged: 1 });
    expect(await log.bytesUsedRatio()).toBeGreaterThan(0);
    expect(await chunksOf(bus, 'nothing')).toEqual([]);
    const watches = [buckets.members, buckets.runners].map((bucket) => watchLeases(bus, bucket, () => {}));
    await Promise.all(watches.map(({ ready }) => ready));
    const member = await acquireLease(bus, buckets.members, crypto.randomUUID(), {}, { ttlMs: 6_000 });
    // A second one at the key reads who holds it.
    await expect(acquireLease(bus, buckets.members, member.key, {}, { ttlMs: 6_000 })).rejects.toMatchObject({
      tag: 'LeaseHeld',
    });
    expect(await member.renew()).toMatchObject({ kind: 'accepted' });
    expect(await leaseAtLeader(bus, buckets.members, member.key)).toEqual({ value: {}, revision: member.revision });
    expect(await leaseAtLeader(bus, buckets.runners, 'r.s')).toBeNull();
    await member.release();
    for (const watch of watches) watch.stop();
  });

  it('processes of one service: tell each other that they live', async () => {
    const [one, other] = [await busOf('gateway'), await busOf('gateway')];
    const heard = Promise.withResolvers<unknown>();
    other.subscribe(subjects.alive('gateway'), heard.resolve);
    await other.flush();
    one.publish(subjects.alive('gateway'), { id: 'one' });
    expect(await heard.promise).toEqual({ id: 'one' });
  });

  it('each of them: what time it is at the broker', async () => {
    const users = { runner: 'runner_r1' } as Readonly<Partial<Record<ClockedService, string>>>;
    for (const service of ['scheduler', 'gateway', 'auth', 'registry', 'webhook-ingest', 'runner'] as const) {
      const bus = await busOf(users[service] ?? service);
      const hourAhead = (): number => Date.now() + 3_600_000;
      const { aheadMs, withinMs } = (await clockDifference(bus, service, hourAhead)) ?? { aheadMs: 0, withinMs: 0 };
      expect(Math.abs(aheadMs - 3_600_000), service).toBeLessThanOrEqual(withinMs + 100);
    }
  });

  it('the gateway: asks owners, also for long answers, and hears of events and chunks', async () => {
    const [scheduler, gateway, runner] = [await busOf('scheduler'), await busOf('gateway'), await busOf('runner_r1')];
    const long = 'x'.repeat(3 * MIB);
    scheduler.respond(subjects.ownerAll(2), (_body, { subject }) => (subject.endsWith('.watch') ? long : subject));
    scheduler.respond(subjects.committing, (_body, { subject }) => subject);
    await scheduler.flush();
    expect(await gateway.request(subjects.committing, null, soon)).toBe(subjects.committing);
    for (const verb of ['create', 'cancel', 'get'] as const) {
      expect(await gateway.request(subjects.owner(2, verb), {}, soon)).toBe(subjects.owner(2, verb));
    }
    expect(await gateway.request(subjects.owner(2, 'watch'), {}, soon)).toBe(long);
    const heard: unknown[] = [];
    const enough = Promise.withResolvers<void>();
    const note = (what: unknown): void => void (heard.push(what) === 3 && enough.resolve());
    gateway.subscribe(subjects.events('*'), note);
    gateway.subscribe(subjects.opened('*'), note);
    subscribeLiveChunks(gateway, 'run1', ({ runner: from, chunk: { offset } }: LiveChunk) => note([from, offset]));
    await gateway.flush();
    scheduler.publish(subjects.events('run1'), 'an event');
    scheduler.publish(subjects.opened(2), 'opened');
    await createLogWriter(runner).publish(subjects.log('run1', 'r1'), chunk(0));
    await enough.promise;
    expect(heard).toEqual(expect.arrayContaining(['an event', 'opened', ['r1', 0]]));
    expect(await lastChunks(gateway, 'run1')).toEqual([{ runner: 'r1', sequence: 1 }]);
    const writer = createLogWriter(runner);
    await Promise.all(
      Array.from({ length: 600 }, (_, index) => writer.publish(subjects.log('run2', 'r1'), chunk(2 * index))),
    );
    expect((await chunksOf(gateway, 'run2')).map(({ chunk: { offset } }) => offset)).toEqual(
      Array.from({ length: 600 }, (_, index) => 2 * index),
    );
  });

  it('a runner: lease, members, demand, pull, job, stop, release, chunks and result', async () => {
    const [scheduler, runner] = [await busOf('scheduler'), await busOf('runner_r1')];
    const seen: LeaseEvent<unknown>[] = [];
    const gone = Promise.withResolvers<void>();
    const watch = watchLeases(runner, buckets.members, (event) => {
      seen.push(event);
      if (event.kind === 'expired' && event.key === 'm1') gone.resolve();
    });
    await watch.ready;
    await acquireLease(scheduler, buckets.members, 'm1', { member: 'm1' }, { ttlMs: 1_000 });
    await gone.promise;
    expect(seen.filter(({ key }) => key === 'm1').map(({ kind }) => kind)).toEqual(['put', 'expired']);
    watch.stop();
    const lease = await acquireLease(runner, buckets.runners, 'r1.s1', { runner: 'r1' }, { ttlMs: 6_000 });
    await expect(acquireLease(runner, buckets.runners, 'r1.s1', {}, { ttlMs: 6_000 })).rejects.toMatchObject({
      tag: 'LeaseHeld',
    });
    expect(await lease.renew()).toMatchObject({ kind: 'accepted' });
    await lease.release();
    scheduler.respond(subjects.pull('m1', '*'), (_body, { subject }) => subject);
    scheduler.respond(subjects.ownerAll(1), (_body, { subject }) => subject);
    runner.respond(subjects.job('r1'), (_body, { subject }) => subject);
    runner.respond(subjects.stop('r1'), (_body, { subject }) => subject);
    const [demand, release] = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()];
    runner.subscribe(subjects.demand('*'), demand.resolve);
    runner.subscribe(subjects.release('r1'), release.resolve);
    await Promise.all([scheduler.flush(), runner.flush()]);
    expect(await leaseAtLeader(runner, buckets.members, 'm1')).toBeNull();
    for (const subject of [subjects.pull('m1', 'r1'), subjects.result(1, 'r1'), subjects.owner(1, 'open')]) {
      expect(await runner.request(subject, {}, soon)).toBe(subject);
    }
    for (const subject of [subjects.job('r1'), subjects.stop('r1')])
      expect(await scheduler.request(subject, {}, soon)).toBe(subject);
    scheduler.publish(subjects.demand('m1'), 'demand');
    scheduler.publish(subjects.release('r1'), 'release');
    expect(await Promise.all([demand.promise, release.promise])).toEqual(['demand', 'release']);
  });

  it('P31: a runner presents slips by its own name, and auth reads the lease that they are for', async () => {
    const [runner, auth] = [await busOf('runner_r1'), await busOf('auth')];
    const lease = { runner: 'r1', session: 'p31', sealTo: 'x'.repeat(43) };
    const held = await acquireLease(runner, buckets.runners, 'r1.p31', lease, { ttlMs: 60_000 });
    auth.respond(
      subjects.slip('*'),
      async (_, { subject }) => ({ subject, lease: await leaseAtLeader(auth, buckets.runners, 'r1.p31') }),
      { queue: 'auth' },
    );
    await auth.flush();
    expect(await runner.request(subjects.slip('r1'), {}, soon)).toMatchObject({
      subject: 'slip.r1',
      lease: { value: lease },
    });
    const raw = await rawOf('runner_r1');
    expect(await subscribing(raw, subjects.slip('r1'))).not.toBeNull();
    await held.release();
  });

  it('P31: the ingest alone asks auth what opens a repository', async () => {
    const [ingest, auth] = [await busOf('webhook-ingest'), await busOf('auth')];
    auth.respond(subjects.cloneSecret, () => 'answered', { queue: 'auth' });
    await auth.flush();
    expect(await ingest.request(subjects.cloneSecret, {}, soon)).toBe('answered');
    for (const user of ['gateway', 'registry', 'runner_r1', 'scheduler']) {
      const raw = await rawOf(user);
      await expect(raw.request(subjects.cloneSecret, '{}', timely)).rejects.toThrow(/[Pp]ermissions [Vv]iolation/u);
    }
    for (const user of ['webhook-ingest', 'gateway', 'registry', 'runner_r1'])
      expect(await subscribing(await rawOf(user), subjects.cloneSecret)).not.toBeNull();
  });

  it('services ask each other what each is there for, and tell their own kind what has changed', async () => {
    const users = ['gateway', 'auth', 'registry', 'webhook-ingest', 'runner_r1'] as const;
    const [gateway, auth, registry, ingest, runner] = (await Promise.all(users.map((user) => busOf(user)))) as [
      Bus,
      Bus,
      Bus,
      Bus,
      Bus,
    ];
    const long = 'x'.repeat(3 * MIB);
    const verbs = ['user', 'token', 'token.used', 'session', 'tokens.list', 'tokens.create', 'tokens.revoke'];
    for (const verb of verbs) auth.respond(subjects.service('auth', verb), () => `auth ${verb}`, { queue: 'auth' });
    const registryVerbs = ['resolve', 'package', 'artifact.get', 'cache.list', 'log.part'];
    for (const verb of registryVerbs)
      registry.respond(subjects.service('registry', verb), () => long, { queue: 'registry' });
    ingest.respond(subjects.service('webhook-ingest', 'list'), () => long, { queue: 'webhook-ingest' });
    await Promise.all([auth.flush(), registry.flush(), ingest.flush()]);
    for (const verb of verbs)
      expect(await gateway.request(subjects.service('auth', verb), {}, soon)).toBe(`auth ${verb}`);
    for (const verb of ['token', 'token.used', 'session'])
      expect(await registry.request(subjects.service('auth', verb), {}, soon)).toBe(`auth ${verb}`);
    expect(await ingest.request(subjects.service('auth', 'user'), {}, soon)).toBe('auth user');
    for (const [asking, subject] of [
      ...registryVerbs.map((verb) => [gateway, subjects.service('registry', verb)] as const),
      [gateway, subjects.service('webhook-ingest', 'list')],
      [ingest, subjects.service('registry', 'resolve')],
      [runner, subjects.service('registry', 'package')],
    ] as const)
      expect(await asking.request(subject, {}, soon)).toBe(long);
    for (const [user, subject] of [
      ['registry', subjects.registryChanged],
      ['webhook-ingest', subjects.decided],
      ['webhook-ingest', subjects.connections],
    ] as const) {
      const [one, other, stranger] = [await busOf(user), await busOf(user), await rawOf('gateway')];
      const heard = Promise.withResolvers<unknown>();
      other.subscribe(subject, heard.resolve);
      await other.flush();
      one.publish(subject, 'news');
      expect(await heard.promise).toBe('news');
      expect(await subscribing(stranger, subject)).not.toBeNull();
    }
  });

  it('P10: a runner stores what its own attempts leave, and nobody else speaks in its name', async () => {
    const [registry, runner, owner] = [await busOf('registry'), await busOf('runner_r1'), await busOf('scheduler')];
    const long = 'x'.repeat(700_000);
    const own = [subjects.artifacts('r1', 'put'), subjects.upload('r1', 'some')];
    for (const subject of own) registry.respond<string, string>(subject, (body) => body, { queue: 'registry' });
    owner.respond(subjects.ownerAll(0), (_body, { subject }) => subject);
    await Promise.all([registry.flush(), owner.flush()]);
    for (const subject of own) expect(await runner.request(subject, long, soon)).toBe(long);
    for (const verb of ['attempt', 'open'] as const)
      expect(await registry.request(subjects.owner(0, verb), {}, soon)).toBe(subjects.owner(0, verb));
    // Another's, those of gateways, and the owner's word on an attempt are not for runners.
    for (const subject of [
      subjects.artifacts('r2', 'put'),
      subjects.upload('r2', 'some'),
      subjects.service('registry', 'artifact.get'),
      subjects.owner(0, 'attempt'),
    ])
      await expect(runner.request(subject, {}, soon), subject).rejects.toMatchObject({ tag: 'NotPermitted' });
  });

  it('auth tells of dead tokens, and gateway and registry hear it, those that come later too', async () => {
    const auth = await busOf('auth');
    await putExpiring(auth, buckets.revocations, 'session.first', { before: 1 }, 60_000);
    for (const user of ['gateway', 'registry']) {
      const heard: string[] = [];
      const second = Promise.withResolvers<void>();
      const watch = watchLeases(await busOf(user), buckets.revocations, ({ key }) => {
        heard.push(key);
        if (key === `user.${user}`) second.resolve();
      });
      await watch.ready;
      expect(heard).toContain('session.first');
      expect(await leaseAtLeader(await busOf(user), buckets.revocations, 'session.first')).toMatchObject({
        value: { before: 1 },
      });
      await putExpiring(auth, buckets.revocations, `user.${user}`, { before: 2 }, 60_000);
      await second.promise;
      watch.stop();
    }
  });

  it('the webhook ingest: takes deliveries in, is handed each of them, acknowledges, removes, and asks owners', async () => {
    const [ingest, scheduler] = [await busOf('webhook-ingest'), await busOf('scheduler')];
    const log = openDeliveryLog(ingest);
    await log.ensureConsumer();
    expect(await log.persist('d1', Buffer.from('one'), { lane: 'l', host: 'h' })).toMatchObject({ stored: true });
    expect(await log.persist('d1', Buffer.from('two'), { lane: 'l', host: 'h' })).toMatchObject({ stored: false });
    expect(Buffer.from((await log.find('d1', 'l')) ?? []).toString()).toBe('one');
    const handed = Promise.withResolvers<void>();
    const consumer = startDeliveryConsumer(ingest, {
      onDelivery: (delivery) => {
        delivery.acknowledge();
        handed.resolve();
      },
    });
    await handed.promise;
    expect((await log.readLane('l', 0, { deliveries: 2, bytes: 1024 })).deliveries).toHaveLength(1);
    expect(await log.most()).toEqual({ deliveries: expect.any(Number), bytes: expect.any(Number) });
    await vi.waitFor(
      async () => {
        await log.removeProcessed(Date.now() + 60_000);
        expect(await log.find('d1', 'l')).toBeNull();
      },
      { timeout: 10_000 },
    );
    await log.persist('d2', Buffer.from('two'), { lane: 'l', host: 'h' });
    await log.removeEach((await log.readOld(0, Date.now() + 60_000)).map(({ sequence }) => sequence));
    expect(await log.find('d2', 'l')).toBeNull();
    await consumer.stop();
    scheduler.respond(subjects.ownerAll(2), (_body, { subject }) => subject);
    scheduler.respond(subjects.committing, (_body, { subject }) => subject);
    await scheduler.flush();
    expect(await ingest.request(subjects.committing, null, soon)).toBe(subjects.committing);
    for (const verb of ['create', 'get', 'watch', 'schedule'] as const)
      expect(await ingest.request(subjects.owner(2, verb), {}, soon)).toBe(subjects.owner(2, verb));
  });

  it('the registry: packages on the broker, in a stream that the set-up has made', async () => {
    const [setup, registry] = [await rawOf('setup'), await rawOf('registry')];
    const config = {
      name: 'OBJ_packages',
      subjects: ['$O.packages.C.>', '$O.packages.M.>'],
      max_msgs_per_subject: 1,
      allow_direct: true,
    };
    expect(
      (await setup.request('$JS.API.STREAM.CREATE.OBJ_packages', JSON.stringify(config), timely)).json(),
    ).not.toHaveProperty('error');
    for (const [subject, body] of [
      ['$O.packages.C.x.0', 'bytes'],
      ['$O.packages.M.k', '{}'],
      ['$JS.API.STREAM.INFO.OBJ_packages', '{"subjects_filter":"$O.packages.M.>"}'],
      ['$JS.API.STREAM.MSG.GET.OBJ_packages', '{"last_by_subj":"$O.packages.M.k"}'],
      ['$JS.API.STREAM.PURGE.OBJ_packages', '{"filter":"$O.packages.C.y.>"}'],
    ] as const)
      expect((await registry.request(subject, body, timely)).json()).not.toHaveProperty('error');
    expect((await registry.request('$JS.API.DIRECT.GET.OBJ_packages.$O.packages.C.x.0', '', timely)).string()).toBe(
      'bytes',
    );
  });

  it('P34: the registry sees which runs LOGS has, reads their chunks and purges them', async () => {
    const [registry, runner] = [await busOf('registry'), await busOf('runner_r1')];
    const writer = createLogWriter(runner);
    const output = Buffer.from('line\n');
    const chunk = { stage: 's', attempt: 1, offset: 0, at: 1, parts: [['stdout', 5] as const], output };
    await writer.publish(subjects.log('archived', 'r1'), encodeChunk(chunk));
    writer.close();
    const has = async (): Promise<boolean> =>
      (await loggedRuns(registry)).runs.some(({ runId }) => runId === 'archived');
    expect(await has()).toBe(true);
    expect(await Array.fromAsync(readChunks(registry, 'archived', 1))).toMatchObject([
      { runner: 'r1', chunk: { at: 1 } },
    ]);
    await purgeLogs(registry, 'archived');
    expect(await has()).toBe(false);
  });

  it('P3, P12: that nobody answers is known at once, also from one account to another', async () => {
    const [scheduler, gateway, runner] = [await busOf('scheduler'), await busOf('gateway'), await busOf('runner_r1')];
    for (const [bus, subject] of [
      [scheduler, subjects.job('r2')],
      [scheduler, subjects.stop('r2')],
      [gateway, subjects.owner(3, 'create')],
      [gateway, subjects.service('auth', 'user')],
      [runner, subjects.pull('nobody', 'r1')],
      [runner, subjects.result(3, 'r1')],
    ] as const) {
      await expect(bus.request(subject, {}, patient)).rejects.toMatchObject({ tag: 'NoResponders' });
    }
  });
});

describe('a runner that comes later', () => {
  it('gets in after a reload, and out after another, and those that are there do not notice', async () => {
    const r1 = await busOf('runner_r1');
    const breaks = vi.fn<() => void>();
    r1.events.on('disconnected', breaks);
    await broker.generate('r1,r2,r3');
    broker.reload();
    const r3 = await vi.waitFor(() => busOf('runner_r3'), { timeout: 10_000, interval: 100 });
    const scheduler = await busOf('scheduler');
    r3.respond(subjects.job('r3'), () => 'here');
    r1.respond(subjects.job('r1'), () => 'still here');
    await Promise.all([r3.flush(), r1.flush()]);
    expect(await scheduler.request(subjects.job('r3'), {}, soon)).toBe('here');
    expect(await scheduler.request(subjects.job('r1'), {}, soon)).toBe('still here');
    const out = once(r3.events, 'disconnected');
    await broker.generate('r1,r2');
    broker.reload();
    await out;
    await expect(scheduler.request(subjects.job('r3'), {}, soon)).rejects.toMatchObject({ tag: 'NoResponders' });
    expect(await readdir(join(broker.folder, 'credentials'))).not.toContain('runner_r3');
    expect(await scheduler.request(subjects.job('r1'), {}, soon)).toBe('still here');
    expect(breaks).not.toHaveBeenCalled();
  });
});

describe('in a cluster of three', () => {
  it('the same accounts hold between services at different brokers', async () => {
    const cluster = await startTestCluster({
      config: broker.config,
      user: 'setup',
      pass: await broker.passwordOf('setup'),
    });
    broker.opened.push({ close: () => cluster.stop() });
    const [one, two, three] = cluster.brokers.map(({ url }) => url);
    const setup = await busOf('setup', one);
    await oncePlaced(() => ensureStreams(setup, streamsOptions));
    await cluster.inStep('LOGS');
    const [scheduler, gateway, runner] = [
      await busOf('scheduler', one),
      await busOf('gateway', two),
      await busOf('runner_r1', three),
    ];
    const put = Promise.withResolvers<unknown>();
    const watch = watchLeases(runner, buckets.members, put.resolve);
    await watch.ready;
    await acquireLease(scheduler, buckets.members, 'm1', {}, { ttlMs: 60_000 });
    expect(await put.promise).toMatchObject({ kind: 'put', key: 'm1' });
    watch.stop();
    const live = Promise.withResolvers<LiveChunk>();
    subscribeLiveChunks(gateway, 'run1', live.resolve);
    scheduler.respond(subjects.ownerAll(0), (_body, { subject }) => subject);
    runner.respond(subjects.job('r1'), (_body, { subject }) => subject);
    await Promise.all([gateway.flush(), scheduler.flush(), runner.flush()]);
    // Interest spreads between the brokers after a flush: until then nobody answers.
    const retrying = { deadlineMs: 10_000 };
    expect(await gateway.requestRetrying(subjects.owner(0, 'watch'), {}, retrying)).toBe(subjects.owner(0, 'watch'));
    expect(await runner.requestRetrying(subjects.result(0, 'r1'), {}, retrying)).toBe(subjects.result(0, 'r1'));
    expect(await scheduler.requestRetrying(subjects.job('r1'), {}, retrying)).toBe(subjects.job('r1'));
    expect(await (await acquireLease(runner, buckets.runners, 'r1.s', {}, { ttlMs: 60_000 })).renew()).toMatchObject({
      kind: 'accepted',
    });
    await createLogWriter(runner).publish(subjects.log('run1', 'r1'), chunk(0));
    expect(await live.promise).toMatchObject({ runner: 'r1', sequence: 1 });
    expect(await openLog(scheduler, 0).append(Buffer.from('a'), { commitId: 'a', expectedSequence: 0 })).toMatchObject({
      ok: true,
    });
    await expect(runner.request(subjects.job('r2'), {}, patient)).rejects.toMatchObject({ tag: 'NotPermitted' });
    await expect(scheduler.request(subjects.stop('r2'), {}, patient)).rejects.toMatchObject({ tag: 'NoResponders' });
  });
});
