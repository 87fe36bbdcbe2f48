/** What every test of chaos expects: a schedule is lived on a cluster, and the account of it has no violation. */
import { expect } from 'vitest';
import type { Cluster } from '../cluster/cluster.ts';
import { reportLines } from './report.ts';
import { runChaos } from './run-chaos.ts';
import { schedules } from './schedules.ts';

/** Long enough that a starved machine does not lose leases by itself, short enough that a freeze of 7 s does. */
export const LEASE_SECS = 8;

/** Beyond the sum of all that a run waits for at most: a world that does not settle is told as what is missing, never as a time-out. */
export const CHAOS_TEST_MS_MAX = 420_000;

export async function expectSound(cluster: Cluster, name: string, seed: number, seconds: number): Promise<void> {
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
