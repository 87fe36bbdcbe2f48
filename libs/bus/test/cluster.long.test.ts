import { afterAll, beforeAll, describe, it } from 'vitest';
import { expectNothingLost, StreamCluster } from './cluster-load.ts';

/** Elections and catching up, several times. */
const TEST_MS_MAX = 300_000;

let cluster: StreamCluster;

beforeAll(async () => {
  cluster = await StreamCluster.start();
});
afterAll(() => cluster.stop());

describe('three brokers', () => {
  it(
    'P1, P2, P5, P21: lose nothing and double nothing when the leader is killed under load, several times',
    () => expectNothingLost(cluster, 6),
    TEST_MS_MAX,
  );
});
