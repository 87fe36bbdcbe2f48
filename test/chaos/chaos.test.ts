/**
 * Every named schedule, shortened, on one cluster of real processes; `npm run chaos -- --schedule <name>` has them at full
 * length, and `--seed N` replays one.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import { processesOfFolder } from '../support/orphans.ts';
import { reportLines } from './report.ts';
import { runChaos } from './run-chaos.ts';
import { schedules } from './schedules.ts';

/** Long enough that a starved machine does not lose leases by itself, short enough that a freeze of 7 s does. */
const LEASE_SECS = 8;
const TEST_MS_MAX = 240_000;

let cluster: Cluster;

beforeAll(async () => {
  cluster = await startCluster({ runnerLeaseSecs: LEASE_SECS });
}, TEST_MS_MAX);

afterAll(async () => {
  await cluster.stop();
}, TEST_MS_MAX);

async function expectSound(name: string, seed: number, seconds: number): Promise<void> {
  const schedule = schedules[name];
  if (schedule === undefined) throw new RangeError(`there is no schedule '${name}'`);
  const report = await runChaos({ cluster, schedule, seed, seconds, runnerLeaseSecs: LEASE_SECS });
  const account = [
    `replay: npm run chaos -- --schedule ${name} --seed ${seed} --seconds ${seconds} --lease-secs ${LEASE_SECS}`,
    ...reportLines(report),
  ].join('\n');
  expect(report.violations, account).toEqual([]);
  expect(report.totals.accepted, account).toBeGreaterThan(0);
}

describe('under a load, every accepted run is accounted for, and nothing runs twice', () => {
  it(
    'an owner that is frozen with stages granted and wakes under load (P1, P4)',
    () => expectSound('zombie-owner', 1, 12),
    TEST_MS_MAX,
  );
  it(
    'a runner that is frozen while its stages tick: no overlap with their successors (P15)',
    () => expectSound('frozen-runner', 2, 12),
    TEST_MS_MAX,
  );
  it(
    'cancels that race completions, retries and take-overs (P14)',
    () => expectSound('cancel-races', 3, 9),
    TEST_MS_MAX,
  );
  it('the store down, and a scheduler killed meanwhile (P6, P8)', () => expectSound('store-down', 4, 10), TEST_MS_MAX);
  it('the broker killed again and again (P2, P18)', () => expectSound('broker-kills', 5, 11), TEST_MS_MAX);
  it('all schedulers killed at once (P3, P12)', () => expectSound('all-schedulers', 6, 9), TEST_MS_MAX);
  it(
    'a rolling restart of every service: no request fails (P3, P20)',
    () => expectSound('rolling-restart', 7, 5),
    TEST_MS_MAX,
  );
  it('all faults mixed, several at a time', () => expectSound('mixed', 8, 30), TEST_MS_MAX);
});

describe('a cluster that is killed whole', () => {
  it(
    'leaves no process behind (P15)',
    async () => {
      await Promise.all(cluster.processes.map((one) => one.kill('SIGKILL')));
      await expect.poll(() => processesOfFolder(cluster.folder), { timeout: 20_000 }).toEqual([]);
    },
    TEST_MS_MAX,
  );
});
