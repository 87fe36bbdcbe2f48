/**
 * The schedules that need a cluster of their own: three brokers, a database, clocks and disks that can be changed, several of each
 * door. Shortened; `npm run chaos -- --schedule <name>` has them at full length, and `--seed N` replays one.
 */
import { canMount } from '@penstock/testkit';
import { describe, it } from 'vitest';
import { startCluster } from '../cluster/cluster.ts';
import { withMongoServer } from '../support/mongodb.ts';
import { CHAOS_CLUSTER } from './chaos-cluster.ts';
import { CHAOS_TEST_MS_MAX, expectSound, LONG_LEASE_SECS, SHORT_LEASE_SECS, type Shortened } from './expect-sound.ts';
import { schedules } from './schedules.ts';

const hasDisks = canMount('chaos: full disks');

async function expectSoundOnItsOwn(name: string, shortened: Shortened): Promise<void> {
  const cluster = await startCluster({
    ...CHAOS_CLUSTER,
    runnerLeaseSecs: shortened.leaseSecs,
    ...schedules[name]?.cluster,
  });
  try {
    await expectSound(cluster, name, shortened);
  } finally {
    await cluster.stop();
  }
}

describe('under a load, every accepted run is accounted for, and nothing runs twice', () => {
  it(
    'one of three brokers killed, frozen, cut off or stale, and leaders that step down (P25)',
    () => expectSoundOnItsOwn('three-brokers', { seed: 1, seconds: 40, leaseSecs: SHORT_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'wall clocks of single services an hour ahead and behind (P5, P7)',
    () => expectSoundOnItsOwn('clock-steps', { seed: 1, seconds: 30, leaseSecs: LONG_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'files of half a mebibyte and runs of 2,000 stages beside small ones (P1, P3)',
    () => expectSoundOnItsOwn('large-runs', { seed: 1, seconds: 25, leaseSecs: LONG_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'LOGS at its limit: what is missing is told as missing (P21)',
    () => expectSoundOnItsOwn('logs-limit', { seed: 1, seconds: 25, leaseSecs: LONG_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
  it.runIf(hasDisks)(
    'full disks of runners and of the broker (P16, P18)',
    () => expectSoundOnItsOwn('full-disks', { seed: 1, seconds: 30, leaseSecs: SHORT_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
});

describe('at the other doors', () => {
  it(
    'no accepted delivery or publication is lost or doubled, and sessions go on, over kills, freezes and cuts (P24)',
    () => expectSoundOnItsOwn('doors', { seed: 1, seconds: 35, leaseSecs: SHORT_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
});

await withMongoServer('chaos: links to a database', () => {
  it(
    'connections to the database that are cut, half open or slow: every run is accounted for (P6, P8)',
    () => expectSoundOnItsOwn('store-links', { seed: 1, seconds: 30, leaseSecs: LONG_LEASE_SECS }),
    CHAOS_TEST_MS_MAX,
  );
});
