/** Three brokers, and the one that leads JOURNAL killed under load. `cluster.long.test.ts` does it again and again. */
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectNothingLost, StreamCluster, STREAMS } from './cluster-load.ts';

/** An election and catching up. */
const TEST_MS_MAX = 90_000;

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
});
