/**
 * The throughput figures with the services as processes, beside the same in one process: runs a second without real stages,
 * and with them. One scheduler and two, 16 partitions, runs spread over as many pipelines.
 */
import { connectBus, RUNNER_LEASE_MS } from '@penstock/bus';
import { startRunner } from '@penstock/runner';
import { createLogger } from '@penstock/telemetry';
import { startCluster } from '../cluster/cluster.ts';
import { driveRuns, makeDependencies, ratePerSecond, startNoOpRunner } from './dependencies.ts';

const IN_FLIGHT = 50;
const MEASURE_MS = 5_000;
const WARM_UP_MS = 1_500;
const SLOTS = 4;
const PARTITIONS = 16;
/** What has no part in a run that is created on the bus. */
const OTHERS = { gateways: 0, auths: 0, registries: 0, ingests: 0 } as const;
/** As many as partitions: a helper serves one key only, and a runner keeps so many idle. */
const KEYS = 16;

interface Rates {
  readonly noOp: number;
  readonly real: number;
}

export async function benchCluster(): Promise<string[]> {
  const together = await inOneProcess();
  const one = await apart(1);
  const two = await apart(2);
  const line = (name: string, { noOp, real }: Rates): string =>
    `${name}: no-op executor ${noOp.toFixed(0)} runs/s, real stages ${real.toFixed(0)} runs/s`;
  const share = (a: number, b: number): string => `${((a / b) * 100).toFixed(0)} %`;
  return [
    line('in one process', together),
    `${line('one scheduler, one runner, as processes', one)} (${share(one.noOp, together.noOp)} and ${share(one.real, together.real)} of one process)`,
    `${line('two schedulers, one runner, as processes', two)} (${share(two.noOp, one.noOp)} and ${share(two.real, one.real)} of one scheduler)`,
  ];
}

async function inOneProcess(): Promise<Rates> {
  const around = await makeDependencies();
  try {
    const driver = driveRuns(around.client);
    const idle = await startNoOpRunner(around.bus, [around.scheduler.member], IN_FLIGHT);
    const noOp = await measured(() => driver.runOne());
    idle.stop();
    const runner = await startRunner({
      bus: around.bus,
      runnerId: 'bench',
      slots: SLOTS,
      labels: [],
      dataDir: around.folder,
      leaseMs: RUNNER_LEASE_MS,
      log: createLogger({ service: 'bench', level: 'warn' }),
    });
    // The other one's credits are still open where nobody answers: they come back at no cost (P12).
    const real = await measured(() => driver.runOne());
    await runner.drain(5_000);
    return { noOp, real };
  } finally {
    await around.close();
  }
}

async function apart(schedulers: number): Promise<Rates> {
  return { noOp: await noOpApart(schedulers), real: await realApart(schedulers) };
}

async function noOpApart(schedulers: number): Promise<number> {
  const cluster = await startCluster({ schedulers, runners: 0, ...OTHERS, partitions: PARTITIONS });
  const bus = await connectBus({ servers: cluster.broker.url, name: 'bench' });
  try {
    const members = cluster.of('scheduler').map(({ name, identities }) => {
      const member = identities.at(-1)?.id;
      if (member === undefined) throw new Error(`${name} has not joined`);
      return member;
    });
    const runner = await startNoOpRunner(bus, members, IN_FLIGHT);
    const driver = driveRuns(bus, { partitions: PARTITIONS, keys: KEYS });
    const rate = await measured(() => driver.runOne());
    runner.stop();
    return rate;
  } finally {
    await bus.close();
    await cluster.stop();
  }
}

async function realApart(schedulers: number): Promise<number> {
  const cluster = await startCluster({ schedulers, runners: 1, ...OTHERS, partitions: PARTITIONS, slots: SLOTS });
  const bus = await connectBus({ servers: cluster.broker.url, name: 'bench' });
  try {
    const driver = driveRuns(bus, { partitions: PARTITIONS, keys: KEYS });
    return await measured(() => driver.runOne());
  } finally {
    await bus.close();
    await cluster.stop();
  }
}

async function measured(work: () => Promise<unknown>): Promise<number> {
  await ratePerSecond(work, IN_FLIGHT, WARM_UP_MS);
  return await ratePerSecond(work, IN_FLIGHT, MEASURE_MS);
}
