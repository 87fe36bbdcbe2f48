/**
 * Runs a second: three stages, 50 in flight. With a runner that does nothing the engine is left, beside the broker's floor:
 * acknowledged commits a second of the size that the engine writes, and what the layout of a message per step would allow.
 * With real stages the fork is the budget: the floors are the same helpers without an engine, once with the acknowledged
 * messages of a run and once without any.
 */
import { randomUUID } from 'node:crypto';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { openLog, RUNNER_LEASE_MS } from '@penstock/bus';
import { ProcessExecutor, type StageSpec } from '@penstock/executor';
import { defaultSlots, startRunner } from '@penstock/runner';
import { createLogger } from '@penstock/telemetry';
import PQueue from 'p-queue';
import { driveRuns, makeDependencies, ratePerSecond, startNoOpRunner, type Dependencies } from './dependencies.ts';

const IN_FLIGHT = 50;
const MEASURE_MS = 5_000;
/** As a machine has them that nobody has told. */
const SLOTS = defaultSlots();
/** In its first seconds a server compiles, and starts a helper for each run in flight. */
const WARM_MS = 5_000;
/** What a server does all day V8 makes fast by half a minute of it. */
const STEADY_AFTER_MS = 30_000;
/** What a message per step would cost: created, and queued, started and completed of each stage, and the end. */
const MESSAGES_A_RUN = 12;

export async function benchRuns(): Promise<string[]> {
  return [...(await noOp(false)), ...(await noOp(true)), ...(await realStages())];
}

async function noOp(syncAlways: boolean): Promise<string[]> {
  const around = await makeDependencies({ syncAlways });
  try {
    const runner = await startNoOpRunner(around.bus, [around.scheduler.member], IN_FLIGHT);
    const driver = driveRuns(around.client);
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
      `${name}: commits at ${((commits / floor) * 100).toFixed(0)} % of that floor; ${(rate / (floor / MESSAGES_A_RUN)).toFixed(1)} x what a message per step could do one in flight`,
    ];
  } finally {
    await around.close();
  }
}

/** Of the size of a busy commit. */
async function appendsPerSecond({ bus }: Dependencies): Promise<number> {
  const log = openLog(bus, 7);
  const bytes = Buffer.alloc(8 * 1024, 120);
  let expectedSequence = 0;
  return ratePerSecond(
    async () => {
      const result = await log.append(bytes, { commitId: randomUUID(), expectedSequence });
      if (result.ok) expectedSequence = result.sequence;
    },
    1,
    2_000,
  );
}

async function realStages(): Promise<string[]> {
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
    const driver = driveRuns(around.client);
    await ratePerSecond(() => driver.runOne(), IN_FLIGHT, WARM_MS);
    const young = await ratePerSecond(() => driver.runOne(), IN_FLIGHT, MEASURE_MS);
    await ratePerSecond(() => driver.runOne(), IN_FLIGHT, STEADY_AFTER_MS - WARM_MS - MEASURE_MS);
    const rate = await ratePerSecond(() => driver.runOne(), IN_FLIGHT, MEASURE_MS);
    await runner.drain(5_000);
    const bare = await bareRunsPerSecond(around);
    const floor = await stagesPerSecond();
    return [
      `real stages (sh -c true), ${SLOTS} slots: ${rate.toFixed(0)} runs/s after ${STEADY_AFTER_MS / 1000} s, ${young.toFixed(0)} after ${WARM_MS / 1000} s; the same helpers with ${MESSAGES_A_RUN} acknowledged messages a run and no engine: ${bare.toFixed(0)} runs/s; ${((rate / bare) * 100).toFixed(0)} %`,
      `real stages (sh -c true), ${SLOTS} slots: the helpers without any message: ${(floor / 3).toFixed(0)} runs/s; ${((rate / (floor / 3)) * 100).toFixed(0)} %`,
    ];
  } finally {
    await around.close();
  }
}

/** Three stages one after the other, with a message acknowledged by a stream for each step: what a durable engine cannot do without. */
async function bareRunsPerSecond({ broker }: Dependencies): Promise<number> {
  const connection = await connect({ servers: broker.url });
  await (
    await jetstreamManager(connection)
  ).streams.add({ name: 'BARE', subjects: ['bare.*'], max_bytes: 100 * 1024 ** 2 });
  const stream = jetstream(connection);
  const executor = new ProcessExecutor();
  await executor.prewarm(SLOTS);
  const slots = new PQueue({ concurrency: SLOTS });
  const message = Buffer.alloc(300, 120);
  const step = (): Promise<unknown> => stream.publish('bare.step', message);
  const runOne = async (): Promise<void> => {
    for (let stage = 0; stage < 3; stage++) {
      for (const _ of ['wanted', 'granted']) await step();
      await slots.add(() => executor.start(TRUE_STAGE, { write: () => undefined }).ended);
      for (const _ of ['reported', 'ended']) await step();
    }
  };
  try {
    await ratePerSecond(runOne, IN_FLIGHT, 500);
    return await ratePerSecond(runOne, IN_FLIGHT, 3_000);
  } finally {
    await executor.close();
    await connection.close();
  }
}

const TRUE_STAGE: StageSpec = {
  helperKey: 'bench',
  commands: [{ script: 'true', bindings: {} }],
  env: {},
  cwd: '/',
  timeoutMs: 60_000,
};

async function stagesPerSecond(): Promise<number> {
  const executor = new ProcessExecutor();
  await executor.prewarm(SLOTS);
  try {
    return await ratePerSecond(() => executor.start(TRUE_STAGE, { write: () => undefined }).ended, SLOTS, 3_000);
  } finally {
    await executor.close();
  }
}
