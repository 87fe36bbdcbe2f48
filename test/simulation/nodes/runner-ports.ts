/** What the real runner needs of a world: the simulated broker and bus, virtual time, its disk, and processes that are none. */
import type { SharedContents } from '@penstock/executor';
import type { buckets, Job, LeaseEvent } from '@penstock/bus';
import { Attempt, type RunnerPorts } from '@penstock/runner/testing';
import type { Log } from '@penstock/telemetry/log';
import { noMeter } from '@penstock/telemetry/metrics';
import type { SimBroker } from '../world/broker.ts';
import { SimOutage } from '../world/errors.ts';
import { leased } from '../world/leases.ts';
import { SimBus } from '../world/sim-bus.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import { acquireSimLease } from './lease-port.ts';
import type { SimDisk } from './sim-disk.ts';
import { simChunks } from './sim-chunks.ts';
import { nothingKept, SimKeeping } from './kept-parts.ts';
import { SimGuard } from './sim-guard.ts';
import { SimStages } from './sim-stages.ts';

const ASK_MS = 4_000;

export interface RunnerMachine {
  readonly node: SimNode;
  readonly time: SimTime;
  readonly disk: SimDisk;
  readonly log: Log;
  /** Called with each guard, so that a crash of the runner is told to it. */
  guarded(guard: SimGuard): void;
}

export function simRunnerPorts(
  dependencies: NodeDependencies,
  { node, time, disk, log, guarded }: RunnerMachine,
): RunnerPorts<SimGuard, SimStages> {
  const { world, network, exchange, processes } = dependencies;
  const ask = <T>(work: (broker: SimBroker) => T): Promise<T> =>
    world.promise((resolve, reject) =>
      network.askBroker(node, work, ASK_MS, (answer) => {
        if (answer === undefined) reject(new SimOutage('the broker does not answer'));
        else resolve(answer);
      }),
    );
  const stagesOf = new WeakMap<SimGuard, SimStages>();
  const bus = new SimBus(world, exchange, node);
  const contents = new Map<string, SharedContents>();
  const keeping = world.profile.keeps > 0 ? new SimKeeping(world, bus, node.name, time, log) : undefined;
  return {
    bus,
    time,
    guardNow: () => time.bootNow(),
    newId: () => `${node.name}-${world.newId()}`,
    random: () => world.random.between(0, 1),
    session: {
      createGuard: () => {
        const guard: SimGuard = new SimGuard(world, node, time, () => stagesOf.get(guard)?.killAll());
        guarded(guard);
        return guard;
      },
      newKey: () => ({ publicKey: 'of a simulated session', open: () => Promise.reject(new SimOutage('sealed')) }),
      acquire: (key, value) =>
        acquireSimLease({ network, node, time, bucket: 'runners', ttlMs: world.profile.leaseMs }, key, value),
    },
    watchLeases: <V>(bucket: typeof buckets.members, handler: (event: LeaseEvent<V>) => void) =>
      network.broker.watch(node, bucket, (event) =>
        handler(event.kind === 'put' ? { ...event, value: leased<V>(event.value) } : event),
      ),
    endLease: (bucket, key) =>
      ask((broker) => {
        const held = broker.get(bucket, key);
        broker.delete(bucket, key, held?.revision ?? 0);
        return held !== undefined;
      }),
    results: disk.openResults(),
    // Its stages end with it.
    records: { earlier: [], open: () => undefined, close: () => {} },
    sessions: {
      read: () => [...disk.sessions],
      append: (session) => {
        disk.write();
        disk.sessions.push(session);
      },
      replace: (sessions) => {
        disk.write();
        disk.sessions.splice(0, disk.sessions.length, ...sessions);
      },
    },
    openChunks: () =>
      simChunks({ runner: node.name, ask: (work) => ask(work), pause: (milliseconds) => time.pause(milliseconds) }),
    folders: {
      partitions: () => [...new Set(disk.workspaces.values())],
      of: (partition) => ({
        list: () => [...disk.workspaces].filter(([, at]) => at === partition).map(([runId]) => runId),
        prepare: async ({ runId, fresh, fill }) => {
          disk.write();
          if (fill !== undefined && (fresh || !disk.workspaces.has(runId))) await fill(runId);
          disk.workspaces.set(runId, partition);
          await world.pause(node, world.random.between(0, 5));
          const home = `/sim/${runId}`;
          return { workspace: `${home}/w`, fresh, home, temporary: home, outputFile: '/proc/none' };
        },
        finish: async () => {},
        contentsOf: (runId) => {
          const known = contents.get(runId) ?? { isKnown: true, laidOut: new Map<string, Promise<void>>() };
          contents.set(runId, known);
          return known;
        },
        remove: async (runId) => {
          contents.delete(runId);
          if (disk.workspaces.delete(runId)) world.witness.workspaceRemoved(runId, node.name);
        },
      }),
    },
    hasRoom: () => !disk.full,
    createExecutors: (guard) => {
      const stages = new SimStages(world, node, processes);
      stagesOf.set(guard, stages);
      return stages;
    },
    startAttempt: (job, stages, parts) => {
      const { inherited, artifacts, caches } = keeping?.of(job) ?? nothingKept;
      return new Attempt(job, {
        ...parts,
        executor: stages.executorFor(job),
        place: undefined,
        sources: {
          checkouts: { filling: () => undefined },
          packages: { copyTo: async () => {} },
          inherited,
        },
        artifacts,
        leftInside: { of: () => undefined, clear: async () => {} },
        reports: { keep: async () => undefined },
        adds: async (verdict) => {
          if (verdict.status !== 'success') return verdict;
          const left = { ...verdict, ...drawOutputs(world, job) };
          const added = job.generates === undefined ? undefined : world.added.draw(world.random, job);
          return added === undefined ? left : { ...left, added };
        },
        caches,
        log,
        meter: noMeter,
        time,
      });
    },
  };
}

/** Where runs are repeated: what their reruns take over, now and then so much that few stages of it fit a commit. */
function drawOutputs(
  { profile, random }: World,
  { stage, attempt }: Job,
): { readonly outputs?: Record<string, string> } {
  if (profile.reruns === 0 || random.chance(0.3)) return {};
  return { outputs: { v: `${stage}#${attempt}${random.chance(0.1) ? '\u0001'.repeat(40_000) : ''}` } };
}
