/** Three brokers, and the one that leads JOURNAL killed under load. `cluster.long.test.ts` does it again and again. */
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  acquireLease,
  allLastChunks,
  buckets,
  createLogWriter,
  encodeChunk,
  leaseAtLeader,
  readAllChunks,
  subjects,
} from '../src/index.ts';
import { streams } from '../src/contract/subjects.ts';
import { bucketStream } from '../src/jetstream/streams.ts';
import { expectNothingLost, StreamCluster, STREAMS } from './cluster-load.ts';

/** An election and catching up. */
const TEST_MS_MAX = 90_000;
const CATCH_UP_MS_MAX = 30_000;

let cluster: StreamCluster;

beforeAll(async () => {
  cluster = await StreamCluster.start();
});
afterAll(() => cluster.stop());

describe('three brokers', () => {
  it('P25: three brokers keep three copies of every stream, without being told', async () => {
    const raw = await connect({ servers: cluster.brokers.url.split(',') });
    const manager = await jetstreamManager(raw, { checkAPI: false });
    for (const stream of STREAMS) {
      await cluster.brokers.inStep(stream);
      expect((await manager.streams.info(stream)).config.num_replicas).toBe(3);
    }
    await raw.close();
  });

  it(
    'P1, P2, P5, P21: lose nothing and double nothing when the leader is killed under load',
    () => expectNothingLost(cluster, 1),
    TEST_MS_MAX,
  );

  it(
    'P5: of what a leader of runners that was cut off does not know nothing counts as over',
    async () => {
      const { brokers } = cluster;
      const stream = bucketStream(buckets.runners);
      await brokers.inStep(stream);
      const leader = await brokers.leaderOf(stream);
      const others = brokers.brokers.filter((one) => one !== leader).map(({ url }) => url);
      const [reader, bus] = await Promise.all([
        cluster.newBus('reader', leader.url),
        cluster.newBus('holder', others.join(',')),
      ]);
      expect(await leaseAtLeader(reader, buckets.runners, 'cut.one')).toBeNull();
      brokers.isolate(leader);
      try {
        // Acknowledged by those that have elected another.
        const lease = { ttlMs: TEST_MS_MAX, timeoutMs: CATCH_UP_MS_MAX };
        await acquireLease(bus, buckets.runners, 'cut.one', 'lives', lease);
        const seen = leaseAtLeader(reader, buckets.runners, 'cut.one').catch((error: Error) => error.name);
        expect(await seen).toBeOneOf(['StoreRefused', 'RequestTimeout', 'NoResponders']);
      } finally {
        brokers.rejoin(leader);
      }
      await brokers.inStep(stream);
      const known = (): Promise<unknown> => leaseAtLeader(reader, buckets.runners, 'cut.one');
      await expect.poll(known, { timeout: CATCH_UP_MS_MAX }).toMatchObject({ value: 'lives' });
      expect(await leaseAtLeader(reader, buckets.runners, 'cut.two')).toBeNull();
    },
    TEST_MS_MAX,
  );

  it(
    'P21: of what a leader of LOGS that was cut off does not know nothing counts as missing',
    async () => {
      const chunk = (offset: number): Uint8Array =>
        encodeChunk({ stage: 'a', attempt: 1, offset, at: 0, parts: [['stdout', 1]], output: Buffer.from('x') });
      const { brokers } = cluster;
      await brokers.inStep(streams.logs);
      const leader = await brokers.leaderOf(streams.logs);
      const others = brokers.brokers.filter((one) => one !== leader).map(({ url }) => url);
      const [reader, bus] = await Promise.all([
        cluster.newBus('reader', leader.url),
        cluster.newBus('writer', others.join(',')),
      ]);
      const writer = createLogWriter(bus, { attemptTimeoutMs: 500 });
      await writer.publish(subjects.log('cut', 'r1'), chunk(0));
      brokers.isolate(leader);
      try {
        // Acknowledged by those that have elected another.
        await writer.publish(subjects.log('cut', 'r1'), chunk(1));
        await writer.publish(subjects.log('gone', 'r1'), chunk(0));
        for (const [runId, chunks] of [
          ['cut', 2],
          ['gone', 1],
        ] as const) {
          const read = Array.fromAsync(readAllChunks(reader, runId, 1)).then(
            ({ length }) => length,
            (error: Error) => error.name,
          );
          expect(await read).toBeOneOf([chunks, 'StoreRefused', 'RequestTimeout', 'NoResponders']);
        }
      } finally {
        brokers.rejoin(leader);
        writer.close();
      }
      await brokers.inStep(streams.logs);
      // The one that was away asks the new leader for what it lacks when it likes, and says until then that it cannot say.
      const caughtUp = { timeout: CATCH_UP_MS_MAX };
      await expect.poll(() => Array.fromAsync(readAllChunks(reader, 'cut', 1)), caughtUp).toHaveLength(2);
      const runnersOf = async (runId: string): Promise<string[]> =>
        (await allLastChunks(reader, runId)).map(({ runner }) => runner);
      await expect.poll(() => runnersOf('gone'), caughtUp).toEqual(['r1']);
      await expect.poll(() => runnersOf('another'), caughtUp).toEqual([]);
    },
    TEST_MS_MAX,
  );
});
