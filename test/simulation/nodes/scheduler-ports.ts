/** What the real scheduler needs of a world: the simulated broker with its logs, leases and marks, and virtual time. */
import { buckets, FLEET_BUCKET, MEMBERSHIP_MS, type FleetEntry, type LeaseEvent } from '@penstock/bus';
import type { SchedulerPorts } from '@penstock/scheduler/testing';
import type { Bucket, SimBroker } from '../world/broker.ts';
import { SimOutage } from '../world/errors.ts';
import { SimPartitionLog } from '../world/journal.ts';
import { leased } from '../world/leases.ts';
import { SimBus } from '../world/sim-bus.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import { LossRule } from '../world/loss-rule.ts';
import { acquireSimLease } from './lease-port.ts';

const ASK_MS = 4_000;

export function simSchedulerPorts(
  { world, network, exchange }: NodeDependencies,
  node: SimNode,
  time: SimTime,
): SchedulerPorts {
  const ask = <T>(work: (broker: SimBroker) => T): Promise<T> =>
    world.promise((resolve, reject) =>
      network.askBroker(node, work, ASK_MS, (answer) => {
        if (answer === undefined) reject(new SimOutage('the broker does not answer'));
        else resolve(answer);
      }),
    );
  const losses = new LossRule(world);
  return {
    bus: new SimBus(world, exchange, node),
    time,
    membership: {
      bootNow: () => time.bootNow(),
      newId: () => `${node.name}-${world.newId()}`,
      pause: (milliseconds, signal) => time.pause(milliseconds, signal),
      acquire: (member) =>
        acquireSimLease({ network, node, time, bucket: 'members', ttlMs: MEMBERSHIP_MS }, member, { member }),
    },
    newId: () => world.newId(),
    openLog: (partition, options) => new SimPartitionLog(network, node, partition, options),
    watchLeases: <V>(bucket: Bucket, handler: (event: LeaseEvent<V>) => void) => {
      let isDeaf = world.mutation === 'pauses-not-read' && bucket === buckets.controls;
      const watch = network.broker.watch(node, bucket, (event) => {
        if (isDeaf) return;
        if (event.kind === 'expired') handler(event);
        else handler({ ...event, value: shownTo<V>(world, bucket, event.value) });
      });
      let heardAt = Number.NEGATIVE_INFINITY;
      return {
        ready: world.promise<void>((resolve) =>
          watch.whenCurrent(() => {
            isDeaf = false;
            resolve();
          }),
        ),
        current: true,
        get heardAt() {
          if (watch.isHeard) heardAt = time.bootNow();
          return heardAt;
        },
        stop: () => watch.stop(),
      };
    },
    leaseAtLeader: async <V>(bucket: 'members' | 'runners', key: string) => {
      const held = await ask((broker) => broker.get(bucket, key) ?? null);
      const isHidden = world.mutation === 'opens-by-force' && bucket === buckets.members;
      return held === null || isHidden ? null : { value: leased<V>(held.value) };
    },
    bucketAgeMs: (bucket) =>
      ask((broker) => (world.mutation === 'forgets-the-old-bucket' ? Number.POSITIVE_INFINITY : broker.ageMs(bucket))),
    onReconnected: (then) =>
      network.broker.onReconnected(node, () => {
        losses.connected();
        then();
      }),
    purgeLogs: (runId) =>
      ask((broker) => {
        broker.logs.purge(runId);
      }),
    markLogEnds: (_runId, logs) => {
      for (const log of logs) losses.declared(log);
      return ask((broker) =>
        logs.map((log) => {
          const sequence = broker.markLog(log);
          if (sequence === null) throw new SimOutage('the broker is full');
          return sequence;
        }),
      );
    },
  };
}

function shownTo<V>({ mutation }: World, bucket: Bucket, value: unknown): V {
  if (bucket === buckets.controls) return value as V;
  if (bucket !== FLEET_BUCKET) return leased<V>(value);
  const { tenant, ...everybodys } = value as FleetEntry;
  return (mutation === 'shares-tenants-runners' || tenant === undefined ? everybodys : value) as V;
}
