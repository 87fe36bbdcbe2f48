/** What every test of chaos expects: a schedule is lived on a cluster, and the account of it has no violation. */
import { expect } from 'vitest';
import type { Cluster } from '../cluster/cluster.ts';
import { reportLines } from './report.ts';
import { runChaos } from './run-chaos.ts';
import { schedules } from './schedules.ts';
import { toldOf } from './told.ts';

/** Of schedules whose runners meet faults: short enough that one that is frozen for 9 s loses its lease. */
export const SHORT_LEASE_SECS = 8;
/** Of schedules that leave runners alone, in which a lost attempt is a violation: a machine that stands still for seconds loses none. */
export const LONG_LEASE_SECS = 30;

/** Beyond the sum of all that a run waits for at most: a world that does not settle is told as what is missing, never as a time-out. */
export const CHAOS_TEST_MS_MAX = 420_000;

export interface Shortened {
  readonly seed: number;
  readonly seconds: number;
  /** As the cluster was started with. */
  readonly leaseSecs: number;
}

export async function expectSound(
  cluster: Cluster,
  name: string,
  { seed, seconds, leaseSecs }: Shortened,
): Promise<void> {
  const schedule = schedules[name];
  if (schedule === undefined) throw new RangeError(`there is no schedule '${name}'`);
  const report = await runChaos({ cluster, schedule, seed, seconds, runnerLeaseSecs: leaseSecs });
  const account = [
    `replay: npm run chaos -- --schedule ${name} --seed ${seed} --seconds ${seconds} --lease-secs ${leaseSecs}`,
    ...reportLines(report),
    ...toldOf(cluster, report.violations),
  ].join('\n');
  expect(report.violations, account).toEqual([]);
  expect(report.totals.accepted, account).toBeGreaterThan(0);
}
