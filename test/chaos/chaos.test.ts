/** A sample of what `chaos.long.test.ts` does with every schedule: all kinds of faults mixed, on one cluster of real processes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import { processesOfFolder } from '../support/orphans.ts';
import { CHAOS_CLUSTER } from './chaos-cluster.ts';
import { CHAOS_TEST_MS_MAX, expectSound, SHORT_LEASE_SECS } from './expect-sound.ts';

let cluster: Cluster;

beforeAll(async () => {
  cluster = await startCluster({ ...CHAOS_CLUSTER, runnerLeaseSecs: SHORT_LEASE_SECS });
}, CHAOS_TEST_MS_MAX);

afterAll(async () => {
  await cluster.stop();
}, CHAOS_TEST_MS_MAX);

describe('under a load, every accepted run is accounted for, and nothing runs twice', () => {
  it(
    'all faults mixed for a short time, several at a time',
    () => expectSound(cluster, 'mixed', { seed: 9, seconds: 12, leaseSecs: SHORT_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
});

describe('a cluster that is killed whole', () => {
  it(
    'leaves no process behind (P15)',
    async () => {
      await Promise.all(cluster.processes.map((one) => one.kill('SIGKILL')));
      await expect.poll(() => processesOfFolder(cluster.folder), { timeout: 20_000 }).toEqual([]);
    },
    CHAOS_TEST_MS_MAX,
  );
});
