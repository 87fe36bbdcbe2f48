import { bootMs } from '@penstock/async';
import { once } from 'node:events';
import { type Proxy, startProxy, startTestBroker, type TestBroker } from '@penstock/testkit';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, nanos } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  acquireLease,
  type Bus,
  buckets,
  connectBus,
  deleteBuckets,
  endLease,
  ensureStreams,
  leaseAtLeader,
  type LeaseEvent,
  type LeaseWatch,
  NoResponders,
  watchLeases,
} from '../src/index.ts';
import { heldSequences } from '../src/jetstream/held-sequences.ts';
import { wireOf } from '../src/wire/nats-bus.ts';

const MIB = 1024 * 1024;
const streamsOptions = { partitions: 1, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB };
const long = { ttlMs: 60_000 };
const short = { ttlMs: 1_000 };
const bucket = buckets.runners;

let broker: TestBroker;
let proxy: Proxy;
let bus: Bus;
let events: Events;

/** What a watch has seen, to be waited for. */
class Events {
  readonly seen: LeaseEvent<unknown>[] = [];
  readonly watch: LeaseWatch;
  #wake: () => void = () => {};

  constructor(over: Bus, leaseMs?: number) {
    this.watch = watchLeases<unknown>(
      over,
      bucket,
      (event) => {
        this.seen.push(event);
        this.#wake();
      },
      { leaseMs },
    );
  }

  async find(kind: LeaseEvent<unknown>['kind'], key: string): Promise<LeaseEvent<unknown>> {
    for (;;) {
      const found = this.seen.find((event) => event.kind === kind && event.key === key);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

interface Replica {
  catchUp(): void;
  /** The stream has no leader from now on; resolves when it has been asked for in vain. */
  leaderAway(): Promise<void>;
  leaderElected(): void;
}

/**
 * From now on the bus reads from a stand-in for a replica that is behind: a consumer sees only what is stored from now on, and a
 * direct get says what it would have said now. What the leader answers is the broker's own.
 */
async function replicaFallsBehind(over: Bus, keys: readonly string[]): Promise<Replica> {
  const wire = wireOf(over);
  const call = wire.call.bind(wire);
  const subjectOf = (key: string): string => `$JS.API.DIRECT.GET.KV_${bucket}.$KV.${bucket}.${key}`;
  const answers = new Map(
    await Promise.all(
      keys.map(async (key) => [subjectOf(key), await call(subjectOf(key), '', undefined, 5_000)] as const),
    ),
  );
  let loseLeader: (() => void) | undefined;
  const spy = vi.spyOn(wire, 'call').mockImplementation((subject, payload, ...rest) => {
    const old = answers.get(subject);
    if (loseLeader !== undefined && subject.startsWith('$JS.API.STREAM.MSG.GET.')) {
      loseLeader();
      return Promise.reject(new NoResponders(subject));
    }
    if (old !== undefined) return Promise.resolve(old);
    return call(subject, subject.startsWith('$JS.API.CONSUMER.CREATE.') ? fromNowOn(payload) : payload, ...rest);
  });
  return {
    catchUp: () => spy.mockRestore(),
    leaderAway: () => new Promise((resolve) => (loseLeader = resolve)),
    leaderElected: () => (loseLeader = undefined),
  };
}

function fromNowOn(payload: string | Uint8Array): string {
  const request = JSON.parse(Buffer.from(payload).toString()) as { readonly config: object };
  return JSON.stringify({ ...request, config: { ...request.config, deliver_policy: 'new' } });
}

/** As a broker's restart does, but for the moment at which it is over. */
async function cutAndReconnect(): Promise<void> {
  const back = once(bus.events, 'reconnected');
  proxy.cut();
  await back;
}

beforeEach(async () => {
  broker = await startTestBroker();
  proxy = await startProxy(broker.port);
  const direct = await connectBus({ servers: broker.url, name: 'setup' });
  await ensureStreams(direct, streamsOptions);
  await direct.close();
  bus = await connectBus({ servers: proxy.url, name: 'holder' });
  events = new Events(bus);
  await events.watch.ready;
});
afterEach(async () => {
  events.watch.stop();
  await bus.close(0);
  await proxy.stop();
  await broker.stop();
});

describe('a lease', () => {
  it("P5: is seen by watchers with its value, and its end by the broker's marker", async () => {
    const lease = await acquireLease(bus, bucket, 'r1.s1', { slots: 2 }, short);
    expect(await events.find('put', 'r1.s1')).toMatchObject({ value: { slots: 2 }, revision: lease.revision });
    expect(await events.find('expired', 'r1.s1')).toMatchObject({ revision: lease.revision + 1 });
  });

  it('P5: a renewal counts from when it was sent, and keeps the TTL', async () => {
    const lease = await acquireLease(bus, bucket, 'k', 1, short);
    const before = bootMs();
    const renewed = await lease.renew(2);
    expect(renewed).toMatchObject({ kind: 'accepted', revision: lease.revision });
    if (renewed.kind !== 'accepted') throw new Error('not renewed');
    expect(renewed.sentAtMs).toBeGreaterThanOrEqual(before);
    await events.find('expired', 'k');
    expect(bootMs() - renewed.sentAtMs).toBeGreaterThanOrEqual(short.ttlMs);
  });

  it('P5: a renewal after the end is refused, and the lease stays over', async () => {
    const lease = await acquireLease(bus, bucket, 'k', 1, short);
    await events.find('expired', 'k');
    expect(await lease.renew()).toEqual({ kind: 'lost' });
    const next = await acquireLease(bus, bucket, 'k', 2, long);
    expect(await lease.renew()).toEqual({ kind: 'lost' });
    expect(await next.renew()).toMatchObject({ kind: 'accepted' });
  });

  it("P5: is one holder's at a time", async () => {
    const lease = await acquireLease(bus, bucket, 'k', 1, long);
    await expect(acquireLease(bus, bucket, 'k', 2, long)).rejects.toMatchObject({ tag: 'LeaseHeld' });
    await lease.release();
    await events.find('expired', 'k');
    await acquireLease(bus, bucket, 'k', 2, long);
    expect(await lease.renew()).toEqual({ kind: 'lost' });
  });

  it('P5: a renewal whose answer was lost is no loss, and the next one goes over it', async () => {
    const lease = await acquireLease(bus, bucket, 'k', 1, { ...long, timeoutMs: 300 });
    proxy.blackhole('to-client');
    const first = await lease.renew(2);
    expect(first).toMatchObject({ kind: 'unanswered' });
    const back = once(bus.events, 'reconnected');
    proxy.cut();
    await back;
    expect(await lease.renew(3)).toMatchObject({ kind: 'accepted' });
    // What has arrived after all is not what was to be written now.
    expect(await leaseAtLeader(bus, bucket, 'k')).toMatchObject({ value: 3 });
    expect(await lease.renew(4)).toMatchObject({ kind: 'accepted' });
  });

  it('P5: a renewal that was lost on the way is no loss either', async () => {
    const lease = await acquireLease(bus, bucket, 'k', 1, { ...long, timeoutMs: 300 });
    proxy.blackhole('to-broker');
    expect(await lease.renew(2)).toMatchObject({ kind: 'unanswered' });
    const back = once(bus.events, 'reconnected');
    proxy.cut();
    await back;
    expect(await lease.renew(3)).toMatchObject({ kind: 'accepted' });
  });

  it('P5: a replica that is behind ends no lease that its holder still has', async () => {
    const replica = await replicaFallsBehind(bus, ['k']);
    const lease = await acquireLease(bus, bucket, 'k', 1, { ...long, timeoutMs: 300 });
    proxy.blackhole('to-client');
    expect(await lease.renew(2)).toMatchObject({ kind: 'unanswered' });
    await cutAndReconnect();
    expect(await lease.renew(3)).toMatchObject({ kind: 'unanswered' });
    replica.catchUp();
    expect(await lease.renew(4)).toMatchObject({ kind: 'accepted' });
  });

  it('P5: a replica that is behind keeps no dead holder’s lease from being ended', async () => {
    const lease = await acquireLease(bus, bucket, 'k', 1, long);
    await replicaFallsBehind(bus, ['k']);
    await lease.renew(2);
    await endLease(bus, bucket, 'k');
    expect(await leaseAtLeader(bus, bucket, 'k')).toBeNull();
  });

  it('P5: the leader is asked for what a replica that is behind does not have', async () => {
    await replicaFallsBehind(bus, ['k']);
    expect(await leaseAtLeader(bus, bucket, 'k')).toBeNull();
    const lease = await acquireLease(bus, bucket, 'k', { slots: 1 }, long);
    expect(await leaseAtLeader(bus, bucket, 'k')).toEqual({ value: { slots: 1 }, revision: lease.revision });
    await lease.release();
    expect(await leaseAtLeader(bus, bucket, 'k')).toBeNull();
  });

  it('P5: what a leader that was stopped shows of a key is no proof that its lease is over: who leads now has it renewed', async () => {
    // It stands before the other, whose sequences are then holes.
    await acquireLease(bus, bucket, 'first', 1, long);
    const lease = await acquireLease(bus, bucket, 'k', 1, long);
    const wire = wireOf(bus);
    const call = wire.call.bind(wire);
    const get = `$JS.API.STREAM.MSG.GET.KV_${bucket}`;
    const change = <M extends { data: Uint8Array }>(
      message: M,
      changed: (answer: Record<string, object>) => object,
    ): M => ({
      ...message,
      data: Buffer.from(JSON.stringify(changed(JSON.parse(Buffer.from(message.data).toString())))),
    });
    /** Stored so long ago that the key should be gone. */
    const asOld = async () =>
      change(await call(get, JSON.stringify({ last_by_subj: `$KV.${bucket}.k` }), undefined, 5_000), ({ message }) => ({
        message: { ...message, time: '2026-01-01T00:00:00Z' },
      }));
    const ofStopped = await asOld();
    let answeredByStopped = 0;
    const spy = vi.spyOn(wire, 'call').mockImplementation(async (subject, ...rest) => {
      if (subject === get && answeredByStopped > 0) {
        answeredByStopped -= 1;
        return ofStopped;
      }
      const answer = await call(subject, ...rest);
      if (!subject.startsWith('$JS.API.STREAM.INFO.')) return answer;
      return change(answer, (info) => ({ ...info, cluster: { replicas: [{ current: true, active: 0 }] } }));
    });
    try {
      answeredByStopped = 1;
      expect(await leaseAtLeader(bus, bucket, 'k')).toBeNull();
      await lease.renew(2);
      answeredByStopped = 2;
      expect(await leaseAtLeader(bus, bucket, 'k')).toEqual({ value: 2, revision: lease.revision });
    } finally {
      spy.mockRestore();
    }
  });

  it('P5: which sequences there are is asked once at a time, and again for who asks meanwhile', async () => {
    const wire = wireOf(bus);
    const spy = vi.spyOn(wire, 'call');
    const ask = () => heldSequences(wire, `KV_${bucket}`, 5_000);
    try {
      const [first, ...others] = await Promise.all([ask(), ask(), ask(), ask()]);
      expect(spy.mock.calls).toHaveLength(2);
      expect(new Set(others)).toEqual(new Set([others[0]]));
      expect(others[0]).not.toBe(first);
      spy.mockRejectedValueOnce(new Error('no answer'));
      const [failed, next] = await Promise.allSettled([ask(), ask()]);
      expect([failed.status, next.status]).toEqual(['rejected', 'fulfilled']);
      await ask();
      expect(spy.mock.calls).toHaveLength(5);
    } finally {
      spy.mockRestore();
    }
  });

  it('P5: its end is seen although it came while the broker was down', async () => {
    await acquireLease(bus, bucket, 'k', 1, short);
    await events.find('put', 'k');
    await broker.kill();
    await broker.restart();
    expect(await events.find('expired', 'k')).toMatchObject({ kind: 'expired' });
  });
});

describe('a watch of leases', () => {
  it('begins with the values that are there', async () => {
    for (const key of ['a', 'b', 'c']) await acquireLease(bus, bucket, key, { key }, long);
    const late = new Events(bus);
    await late.watch.ready;
    expect(late.watch.current).toBe(true);
    expect(late.seen.map(({ kind, key }) => `${kind} ${key}`)).toEqual(['put a', 'put b', 'put c']);
    late.watch.stop();
  });

  it('goes on after the connection broke, with what happened meanwhile', async () => {
    const direct = await connectBus({ servers: broker.url, name: 'direct' });
    const gone = await acquireLease(direct, bucket, 'gone', 1, long);
    await events.find('put', 'gone');
    const away = once(bus.events, 'disconnected');
    proxy.cut();
    await away;
    await gone.release();
    await acquireLease(direct, bucket, 'new', 1, long);
    expect(await events.find('expired', 'gone')).toMatchObject({ kind: 'expired' });
    expect(await events.find('put', 'new')).toMatchObject({ value: 1 });
    await direct.close(0);
  });

  it('says again that a key has ended when it begins anew, as long as the marker of the end stands', async () => {
    await acquireLease(bus, bucket, 'ended', 1, short);
    await events.find('expired', 'ended');
    const away = once(bus.events, 'disconnected');
    proxy.cut();
    await away;
    const direct = await connectBus({ servers: broker.url, name: 'direct' });
    await acquireLease(direct, bucket, 'next', 1, long);
    await events.find('put', 'next');
    expect(events.seen.map(({ kind, key }) => `${kind} ${key}`)).toEqual([
      'put ended',
      'expired ended',
      'expired ended',
      'put next',
    ]);
    await direct.close(0);
  });

  it('P5: a key that lives is not over because the watch begins anew on a replica that lacks it', async () => {
    const lease = await acquireLease(bus, bucket, 'lives', 1, long);
    await events.find('put', 'lives');
    await replicaFallsBehind(bus, []);
    const away = once(bus.events, 'disconnected');
    proxy.cut();
    await away;
    await vi.waitUntil(() => events.watch.current, { timeout: 10_000 });
    expect(events.seen.map(({ kind, key }) => `${kind} ${key}`)).toEqual(['put lives', 'put lives']);
    await lease.release();
    expect(await events.find('expired', 'lives')).toMatchObject({ revision: lease.revision + 1 });
  });

  it('P5: a key that has ended without a marker is over when the watch begins anew', async () => {
    await acquireLease(bus, bucket, 'purged', 1, long);
    await events.find('put', 'purged');
    const away = once(bus.events, 'disconnected');
    proxy.cut();
    await away;
    const raw = await connect({ servers: broker.url });
    await (await jetstreamManager(raw)).streams.purge(`KV_${bucket}`, { filter: `$KV.${bucket}.purged` });
    expect(await events.find('expired', 'purged')).toMatchObject({ revision: 0 });
    await raw.close();
  });

  it('P5: while the leader cannot be asked a watch that begins anew declares nothing gone, and is not current', async () => {
    await acquireLease(bus, bucket, 'lives', 1, long);
    await events.find('put', 'lives');
    const replica = await replicaFallsBehind(bus, []);
    const asked = replica.leaderAway();
    proxy.cut();
    await asked;
    expect(events.watch.current).toBe(false);
    replica.leaderElected();
    await vi.waitUntil(() => events.watch.current, { timeout: 10_000 });
    expect(events.seen.map(({ kind, key }) => `${kind} ${key}`)).toEqual(['put lives', 'put lives']);
  });

  it('P5: the keys of a bucket that was made anew are gone one lease later, not at once', async () => {
    const patient = new Events(bus, 1_000);
    await patient.watch.ready;
    await acquireLease(bus, bucket, 'old', 1, long);
    await patient.find('put', 'old');
    const away = once(bus.events, 'disconnected');
    const direct = await connectBus({ servers: broker.url, name: 'direct' });
    await deleteBuckets(direct);
    await ensureStreams(direct, streamsOptions);
    await acquireLease(direct, bucket, 'next', 1, long);
    proxy.cut();
    await away;
    await patient.find('put', 'next');
    await patient.find('expired', 'old');
    expect(patient.seen.map(({ kind, key }) => `${kind} ${key}`)).toEqual(['put old', 'put next', 'expired old']);
    patient.watch.stop();
    await direct.close(0);
  });

  it('P5: a key that a killed broker shows again when its marker is gone too is over', async () => {
    const brief = 'brief';
    const direct = await connect({ servers: broker.url });
    const manager = await jetstreamManager(direct);
    await manager.streams.add({
      name: `KV_${brief}`,
      subjects: [`$KV.${brief}.>`],
      max_msgs_per_subject: 1,
      allow_msg_ttl: true,
      subject_delete_marker_ttl: nanos(1_000),
      allow_direct: true,
    });
    await acquireLease(bus, brief, 'over', 1, short);
    const overAtMs = Date.now() + short.ttlMs;
    await acquireLease(bus, brief, 'lives', 1, long);
    const stored = async (): Promise<number> => (await manager.streams.info(`KV_${brief}`)).state.messages;
    await expect.poll(stored, { timeout: 30_000 }).toBe(1);
    await expect.poll(() => Date.now() - overAtMs, { timeout: 30_000 }).toBeGreaterThan(6_000);
    await direct.close();
    const back = once(bus.events, 'reconnected');
    await broker.kill();
    await broker.restart();
    await back;
    const seen: string[] = [];
    const watch = watchLeases<unknown>(bus, brief, ({ kind, key }) => seen.push(`${kind} ${key}`));
    await watch.ready;
    watch.stop();
    expect(seen.filter((event) => event.startsWith('put'))).toEqual(['put lives']);
    expect(await leaseAtLeader(bus, brief, 'over')).toBe(null);
    expect(await leaseAtLeader(bus, brief, 'lives')).toMatchObject({ value: 1 });
  }, 90_000);
});
