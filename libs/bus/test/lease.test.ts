import { once } from 'node:events';
import { type Proxy, startProxy, startTestBroker, type TestBroker } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  acquireLease,
  type Bus,
  buckets,
  connectBus,
  deleteBuckets,
  ensureStreams,
  type LeaseEvent,
  type LeaseWatch,
  monotonicMs,
  watchLeases,
} from '../src/index.ts';

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
    const before = monotonicMs();
    const renewed = await lease.renew(2);
    expect(renewed).toMatchObject({ kind: 'accepted', revision: lease.revision });
    if (renewed.kind !== 'accepted') throw new Error('not renewed');
    expect(renewed.sentAtMs).toBeGreaterThanOrEqual(before);
    await events.find('expired', 'k');
    expect(monotonicMs() - renewed.sentAtMs).toBeGreaterThanOrEqual(short.ttlMs);
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
});
