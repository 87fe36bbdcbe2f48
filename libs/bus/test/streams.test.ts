import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { acquireLease, type Bus, buckets, connectBus, deleteBuckets, ensureStreams } from '../src/index.ts';

const MIB = 1024 * 1024;
const options = { partitions: 4, journalBytesMax: 64 * MIB, logsBytesMax: 64 * MIB };

let broker: TestBroker;
let bus: Bus;

beforeEach(async () => {
  broker = await startTestBroker();
  bus = await connectBus({ servers: broker.url, name: 'setup' });
});
afterEach(async () => {
  await bus.close(0);
  await broker.stop();
});

async function configOf(stream: string) {
  const raw = await connect({ servers: broker.url });
  const info = await (await jetstreamManager(raw)).streams.info(stream);
  await raw.close();
  return info.config;
}

describe('the streams', () => {
  it('are the same after a second set-up, by whichever service', async () => {
    expect(await ensureStreams(bus, options)).toEqual({ bucketsCreated: true });
    const before = await configOf('JOURNAL');
    expect(await ensureStreams(bus, options)).toEqual({ bucketsCreated: false });
    expect(await configOf('JOURNAL')).toEqual(before);
    expect(before).toMatchObject({
      discard: 'new',
      deny_delete: true,
      deny_purge: false,
      allow_direct: true,
      storage: 'file',
      num_replicas: 1,
    });
  });

  it('are all there, with the limits that docs/operating.md names where nothing else is said', async () => {
    const large = await startTestBroker({ storeBytesMax: 16 * 1024 * MIB });
    const on = await connectBus({ servers: large.url, name: 'defaults' });
    await ensureStreams(on, { partitions: 4 });
    const raw = await connect({ servers: large.url });
    const manager = await jetstreamManager(raw);
    const limits: Record<string, unknown> = {};
    for await (const { config } of manager.streams.list())
      limits[config.name] = [config.max_bytes / MIB, config.max_msgs, config.max_age / 3_600_000_000_000];
    expect(limits).toEqual({
      JOURNAL: [2_048, -1, 0],
      LOGS: [4_096, -1, 7 * 24],
      DELIVERIES: [1_024, 1_000_000, 0],
      ...Object.fromEntries(Object.values(buckets).map((bucket) => [`KV_${bucket}`, [-1 / MIB, -1, 0]])),
    });
    const bucket = (await manager.streams.info(`KV_${buckets.runners}`)).config;
    // A marker that stays longer than what a watch rides out (P5), and no longer: each ended lease leaves one.
    expect([bucket.subject_delete_marker_ttl, bucket.max_msgs_per_subject]).toEqual([60_000_000_000, 1]);
    // No message id is used: nothing is remembered for one.
    expect((await manager.streams.info('JOURNAL')).config.duplicate_window).toBe(1_000_000_000);
    await raw.close();
    await on.close(0);
    await large.stop();
  });

  it('are made once when several services start together', async () => {
    const buses = await Promise.all([1, 2, 3].map((n) => connectBus({ servers: broker.url, name: `service-${n}` })));
    await Promise.all(buses.map((each) => ensureStreams(each, options)));
    expect(await ensureStreams(bus, options)).toEqual({ bucketsCreated: false });
    await Promise.all(buses.map((each) => each.close(0)));
  });

  it.each([1, 2])(
    'that another service has made meanwhile are taken over, also where %i look(s) miss them',
    async (looks) => {
      await ensureStreams(bus, options);
      const raw = await connect({ servers: broker.url });
      const manager = await jetstreamManager(raw);
      const asked = vi.spyOn(Object.getPrototypeOf(manager.streams) as typeof manager.streams, 'info');
      try {
        const missing = await manager.streams.info('NOBODY_HAS_IT').catch((error: unknown) => error);
        for (let look = 0; look < looks; look++) asked.mockRejectedValueOnce(missing);
        await ensureStreams(bus, { ...options, journalBytesMax: 48 * MIB });
      } finally {
        asked.mockRestore();
        await raw.close();
      }
      expect(await configOf('JOURNAL')).toMatchObject({ max_bytes: 48 * MIB });
    },
  );

  it('they take new limits at a start', async () => {
    await ensureStreams(bus, options);
    await ensureStreams(bus, { ...options, logsBytesMax: 32 * MIB });
    expect(await configOf('LOGS')).toMatchObject({
      max_bytes: 32 * MIB,
      discard: 'old',
      republish: { src: 'log.>', dest: 'live.log.>' },
    });
  });

  it('that the broker has no room for are a start-up error', async () => {
    await ensureStreams(bus, options);
    // The broker of a test has 1 GiB.
    await expect(ensureStreams(bus, { ...options, journalBytesMax: 4_096 * MIB })).rejects.toThrow(/storage/);
    expect(await configOf('JOURNAL')).toMatchObject({ max_bytes: 64 * MIB });
  });

  it('P9: another number of partitions is a start-up error that names both, also in a race', async () => {
    const other = await connectBus({ servers: broker.url, name: 'other' });
    const both = await Promise.allSettled([
      ensureStreams(bus, options),
      ensureStreams(other, { ...options, partitions: 16 }),
    ]);
    const refused = both.filter((result) => result.status === 'rejected').map(({ reason }) => reason as Error);
    expect(refused).toHaveLength(1);
    expect(refused[0]?.message).toMatch(/(\b4\b.*\b16\b)|(\b16\b.*\b4\b)/);
    await other.close(0);
    expect(refused[0]).toMatchObject({ tag: 'PartitionsMismatch' });
  });

  it('P17: memberships and leases can be forgotten, and their buckets made anew', async () => {
    await deleteBuckets(bus);
    await ensureStreams(bus, options);
    await acquireLease(bus, buckets.members, 'm', {}, { ttlMs: 60_000 });
    await deleteBuckets(bus);
    expect(await ensureStreams(bus, options)).toEqual({ bucketsCreated: true });
    await acquireLease(bus, buckets.members, 'm', {}, { ttlMs: 60_000 });
  });
});
