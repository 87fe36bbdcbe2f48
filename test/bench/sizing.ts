/**
 * What a run of three stages costs each part of an installation, with every service a process: commits, bytes and processor time, one
 * run at a time and many. From it follows the table of docs/operating.md ("Scale"): costs of a busy machine with two processors, above
 * those of a machine that has nothing else to do.
 */
import { readdirSync, statSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { setTimeout as rest } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startCluster, type Cluster } from '../cluster/cluster.ts';
import { endRuns, PIPELINES } from './ended-runs.ts';
import { processorTimes } from './processor-times.ts';

const SLOTS = 8;
const ALONE_RUNS = 60;
const MANY_RUNS = 600;
const IN_FLIGHT = 32;
/** Projections are written, and processes have ended. */
const SETTLED_MS = 3_000;

interface Cost {
  readonly commits: number;
  readonly journalBytes: number;
  readonly storeBytes: number;
  /** Milliseconds. */
  readonly scheduler: number;
  readonly gateway: number;
  readonly broker: number;
  readonly runner: number;
}

export async function benchSizing(): Promise<string[]> {
  const cluster = await startCluster({ schedulers: 1, gateways: 1, runners: 1, auths: 0, ingests: 0, slots: SLOTS });
  const connection = await connect({ servers: cluster.broker.url });
  try {
    const journal = async (): Promise<{ readonly last: number; readonly bytes: number }> => {
      const { state } = await (await jetstreamManager(connection)).streams.info('JOURNAL');
      return { last: state.last_seq, bytes: state.bytes };
    };
    const look = async (): Promise<Cost> => {
      await rest(SETTLED_MS);
      const { last, bytes } = await journal();
      const [scheduler, gateway, runner] = (['scheduler', 'gateway', 'runner'] as const).map(
        (service) => processorTimes(cluster.at(service, 0).pid ?? 0).own,
      );
      return {
        commits: last,
        journalBytes: bytes,
        storeBytes: bytesOfStore(cluster),
        scheduler: scheduler ?? 0,
        gateway: gateway ?? 0,
        broker: processorTimes(cluster.broker.pid).own,
        runner: runner ?? 0,
      };
    };
    await endRuns(cluster, 40, 8);
    const before = await look();
    await endRuns(cluster, ALONE_RUNS, 1);
    const alone = await look();
    const from = performance.now();
    await endRuns(cluster, MANY_RUNS, IN_FLIGHT);
    const rate = MANY_RUNS / ((performance.now() - from) / 1_000);
    const many = await look();
    const [one, busy] = [perRun(before, alone, ALONE_RUNS), perRun(alone, many, MANY_RUNS)];
    return [
      `one at a time: ${lineOf(one)}`,
      `${IN_FLIGHT} at a time, ${PIPELINES} pipelines, ${SLOTS} slots (${rate.toFixed(0)} runs/s): ${lineOf(busy)}`,
      ...[1, 100, 10_000].map((wanted) => needs(wanted, busy)),
      `load of the machine: ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} processors`,
    ];
  } finally {
    await connection.close();
    await cluster.stop();
  }
}

/** The database with its journal. */
function bytesOfStore({ folder }: Cluster): number {
  return readdirSync(folder)
    .filter((name) => name.startsWith('store.db'))
    .reduce((sum, name) => sum + statSync(`${folder}/${name}`).size, 0);
}

function perRun(before: Cost, after: Cost, count: number): Cost {
  const each = (name: keyof Cost): number => (after[name] - before[name]) / count;
  return {
    commits: each('commits'),
    journalBytes: each('journalBytes'),
    storeBytes: each('storeBytes'),
    scheduler: each('scheduler'),
    gateway: each('gateway'),
    broker: each('broker'),
    runner: each('runner'),
  };
}

function lineOf({ commits, journalBytes, storeBytes, scheduler, gateway, broker, runner }: Cost): string {
  return [
    `${commits.toFixed(1)} commits`,
    `${journalBytes.toFixed(0)} bytes of journal`,
    `${storeBytes.toFixed(0)} bytes of store`,
    `processor time of scheduler ${scheduler.toFixed(1)} ms, gateway ${gateway.toFixed(1)} ms, broker ${broker.toFixed(1)} ms, runner without its stages ${runner.toFixed(1)} ms`,
  ].join(', ');
}

function needs(wanted: number, { journalBytes, scheduler, gateway, broker, runner }: Cost): string {
  const processors = (milliseconds: number): string => ((wanted * milliseconds) / 1_000).toFixed(wanted < 10 ? 3 : 1);
  const gigabytes = (wanted * journalBytes * 86_400) / 1e9;
  return `${wanted} runs a second, by the costs of many: processors for schedulers ${processors(scheduler)}, gateways ${processors(gateway)}, brokers ${processors(broker)}, runners without their stages ${processors(runner)}; ${gigabytes.toFixed(1)} GB of journal a day, of which two hours are kept`;
}
