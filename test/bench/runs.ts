/**
 * Runs a second: three stages, 50 in flight. With a runner that does nothing the engine is left, beside the broker's floor:
 * acknowledged commits a second of the size that the engine writes, and what the layout of a message per step would allow.
 * With real stages the fork is the budget; its floor is measured by the executor's own benchmark in the same way.
 */
import { randomUUID } from 'node:crypto';
import { openLog } from '@penstock/bus';
import { ProcessExecutor } from '@penstock/executor';
import { startRunner } from '@penstock/runner';
import { createLogger } from '@penstock/telemetry';
import { driveRuns, makeSurroundings, ratePerSecond, startNoOpRunner, type Surroundings } from './surroundings.ts';

const IN_FLIGHT = 50;
const MEASURE_MS = 5_000;
/** What a message per step would cost: created, and queued, started and completed of each stage, and the end. */
const MESSAGES_A_RUN = 12;

export async function benchRuns(): Promise<string[]> {
  return [
    ...(await noOp(false)),
    ...(await noOp(true)),
    ...(await realStages()),
  ];
}

async function noOp(syncAlways: boolean): Promise<string[]> {
  const around = await makeSurroundings({ syncAlways });
  try {
    const runner = await startNoOpRunner(around, IN_FLIGHT);
    const driver = driveRuns(around.bus);
    await ratePerSecond(() => driver.runOne(), IN_FLIGHT, 1_000);
    const before = await openLog(around.bus, 0).last();
    const rate = await ratePerSecond(() => driver.runOne(), IN_FLIGHT, MEASURE_MS);
    const after = await openLog(around.bus, 0).last();
    runner.stop();
    await around.scheduler.close();
    const commits = ((after?.sequence ?? 0) - (before?.sequence ?? 0)) / (MEASURE_MS / 1000);
    const floor = await appendsPerSecond(around);
    const name = syncAlways ? 'no-op executor, sync_interval always' : 'no-op executor';
    return [
      `${name}: ${rate.toFixed(0)} runs/s in ${commits.toFixed(0)} commits/s; the broker alone: ${floor.toFixed(0)} acknowledged commits/s one in flight`,
      `${name}: commits at ${(commits / floor * 100).toFixed(0)} % of that floor; ${(rate / (floor / MESSAGES_A_RUN)).toFixed(1)} x what a message per step could do one in flight`,
    ];
  } finally {
    await around.close();
  }
}

/** Of the size of a busy commit. */
async function appendsPerSecond({ bus }: Surroundings): Promise<number> {
  const log = openLog(bus, 7);
  const bytes = Buffer.alloc(8 * 1024, 120);
  let expectedSequence = 0;
  return ratePerSecond(async () => {
    const result = await log.append(bytes, { commitId: randomUUID(), expectedSequence });
    if (result.ok) expectedSequence = result.sequence;
  }, 1, 2_000);
}

async function realStages(): Promise<string[]> {
  const around = await makeSurroundings();
  try {
    const runner = await startRunner({
      bus: around.bus, runnerId: 'bench', slots: 4, labels: [], dataDir: around.folder, leaseMs: 15_000, log: createLogger({ service: 'bench', level: 'warn' }),
    });
    const driver = driveRuns(around.bus);
    await ratePerSecond(() => driver.runOne(), IN_FLIGHT, 1_000);
    const rate = await ratePerSecond(() => driver.runOne(), IN_FLIGHT, MEASURE_MS);
    await runner.drain(5_000);
    const floor = await stagesPerSecond();
    return [`real stages (sh -c true): ${rate.toFixed(0)} runs/s; the executor alone, without an engine: ${(floor / 3).toFixed(0)} runs/s; ${(rate / (floor / 3) * 100).toFixed(0)} %`];
  } finally {
    await around.close();
  }
}

async function stagesPerSecond(): Promise<number> {
  const executor = new ProcessExecutor();
  await executor.prewarm(4);
  const spec = { helperKey: 'bench', commands: [{ script: 'true', bindings: {} }], env: {}, cwd: '/', timeoutMs: 60_000 };
  try {
    return await ratePerSecond(() => executor.start(spec, { write: () => undefined }).ended, 4, 3_000);
  } finally {
    await executor.close();
  }
}
