/**
 * Every named schedule that needs nothing of its own, shortened, on clusters of real processes; `npm run chaos -- --schedule <name>`
 * has them at full length, and `--seed N` replays one.
 */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import { CHAOS_CLUSTER } from './chaos-cluster.ts';
import { CHAOS_TEST_MS_MAX, expectSound, LONG_LEASE_SECS, SHORT_LEASE_SECS } from './expect-sound.ts';

function onCluster(leaseSecs: number): (name: string, seed: number, seconds: number) => Promise<void> {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await startCluster({ ...CHAOS_CLUSTER, runnerLeaseSecs: leaseSecs });
  }, CHAOS_TEST_MS_MAX);

  afterAll(async () => {
    await cluster.stop();
  }, CHAOS_TEST_MS_MAX);

  return (name, seed, seconds) => expectSound(cluster, name, { seed, seconds, leaseSecs });
}

describe('under a load that nothing happens to runners in, every accepted run is accounted for, and no attempt is lost', () => {
  const expectSoundOn = onCluster(LONG_LEASE_SECS);

  it(
    'an owner that is frozen with stages granted and wakes under load (P1, P4)',
    () => expectSoundOn('zombie-owner', 1, 12),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'the store down, and a scheduler killed meanwhile (P6, P8)',
    () => expectSoundOn('store-down', 4, 10),
    CHAOS_TEST_MS_MAX,
  );
  it('all schedulers killed at once (P3, P12)', () => expectSoundOn('all-schedulers', 6, 9), CHAOS_TEST_MS_MAX);
});

describe('under a load, every accepted run is accounted for, and nothing runs twice', () => {
  const expectSoundOn = onCluster(SHORT_LEASE_SECS);

  it(
    'a runner that is frozen while its stages tick: no overlap with their successors (P15)',
    () => expectSoundOn('frozen-runner', 2, 12),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'cancels that race completions, retries and take-overs (P14)',
    () => expectSoundOn('cancel-races', 3, 9),
    CHAOS_TEST_MS_MAX,
  );
  it('the broker killed again and again (P2, P18)', () => expectSoundOn('broker-kills', 5, 11), CHAOS_TEST_MS_MAX);
  it(
    'a rolling restart of every service: no request fails (P3, P20)',
    () => expectSoundOn('rolling-restart', 7, 5),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'connections of single services that are cut or half open (P4, P15, P20)',
    () => expectSoundOn('broken-links', 9, 40),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'a guard that is frozen while the stages of its runner tick (P15)',
    () => expectSoundOn('frozen-guard', 10, 24),
    CHAOS_TEST_MS_MAX,
  );
  it(
    'runs of 100 stages among many small ones, while owners are killed (P1, P3)',
    () => expectSoundOn('large-and-many', 11, 20),
    CHAOS_TEST_MS_MAX,
  );
  it('all faults mixed, several at a time', () => expectSoundOn('mixed', 8, 60), CHAOS_TEST_MS_MAX);
});
