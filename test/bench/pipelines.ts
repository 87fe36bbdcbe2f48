/**
 * Runs a second of one pipeline, of 40 and of 400, as a hosted engine has them: three stages of `true`, 50 runs in flight. A
 * process that has served one pipeline serves no other: what many of them cost is that their helpers are kept, or started anew.
 */
import { RUNNER_LEASE_MS } from '@penstock/bus';
import { startRunner } from '@penstock/runner';
import { createLogger } from '@penstock/telemetry';
import { driveRuns, makeDependencies, ratePerSecond, type RunDriver } from './dependencies.ts';

const PIPELINES = [1, 40, 400] as const;
const IN_FLIGHT = 50;
const SLOTS = 4;
const WARM_MS = 2_000;
const MEASURE_MS = 4_000;
/** Interleaved: the neighbours' load moves all alike. */
const ROUNDS = 3;

export async function benchPipelines(): Promise<string[]> {
  const around = await makeDependencies();
  try {
    const runner = await startRunner({
      bus: around.bus,
      runnerId: 'bench',
      slots: SLOTS,
      labels: [],
      dataDir: around.folder,
      leaseMs: RUNNER_LEASE_MS,
      log: createLogger({ service: 'bench', level: 'warn' }),
    });
    const measured = PIPELINES.map((keys) => ({
      keys,
      driver: driveRuns(around.client, { keys }),
      rates: [] as number[],
    }));
    // Each has its helper, where the machine has room for as many.
    for (const { keys, driver } of measured) await driveMany(driver, 2 * keys);
    for (let round = 0; round < ROUNDS; round += 1)
      for (const { driver, rates } of measured) {
        await ratePerSecond(() => driver.runOne(), IN_FLIGHT, WARM_MS);
        rates.push(await ratePerSecond(() => driver.runOne(), IN_FLIGHT, MEASURE_MS));
      }
    await runner.drain(5_000);
    const one = median(measured[0]?.rates ?? []);
    return measured.map(({ keys, rates }) => {
      const rate = median(rates);
      return `three stages of true, ${keys} ${keys === 1 ? 'pipeline' : 'pipelines'}: ${rate.toFixed(0)} runs/s (${((rate / one) * 100).toFixed(0)} %)`;
    });
  } finally {
    await around.close();
  }
}

async function driveMany(driver: RunDriver, count: number): Promise<void> {
  let left = count;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await driver.runOne();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
