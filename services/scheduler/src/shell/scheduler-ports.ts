/**
 * The world of a scheduler: broker, clocks, ids. Production has the broker's and the machine's; the simulation drives the same
 * classes with its own. What is asked of the broker throws what a request throws.
 */
import { randomUUID } from 'node:crypto';
import { machineTime, type Time } from '@penstock/async';
import {
  bucketAgeMs,
  buckets,
  type FLEET_BUCKET,
  type Bus,
  leaseAtLeader,
  type LeaseEvent,
  type LeaseWatch,
  type LogOptions,
  markLogEnds,
  openLog,
  purgeLogs,
  type PartitionLog,
  watchLeases,
} from '@penstock/bus';
import { membershipPorts, type MembershipPorts } from '../membership/membership.ts';
import type { AttemptLogRef } from '../run/ports.ts';

/** Of memberships and of runners' leases. */
export type LeaseBucket = typeof buckets.members | typeof buckets.runners;
/** And of what is paused, whose keys are no leases. */
type WatchedBucket = LeaseBucket | typeof buckets.controls;

export interface SchedulerPorts {
  readonly bus: Pick<Bus, 'request' | 'respond' | 'publish' | 'subscribe'>;
  readonly time: Time;
  readonly membership: MembershipPorts;
  /** Unique. */
  newId(): string;
  openLog(partition: number, options?: LogOptions): PartitionLog;
  watchLeases<V>(
    bucket: WatchedBucket | typeof FLEET_BUCKET,
    handler: (event: LeaseEvent<V>) => void,
    leaseMs?: number,
  ): Pick<LeaseWatch, 'ready' | 'current' | 'heardAt' | 'stop'>;
  /** Null: the lease is over, or the bucket was made anew since. */
  leaseAtLeader<V>(bucket: LeaseBucket, key: string): Promise<{ readonly value: V } | null>;
  bucketAgeMs(bucket: LeaseBucket): Promise<number>;
  /** Called each time that the connection to the broker stands again; answers how to end that. */
  onReconnected(then: () => void): () => void;
  /** The sequences of the first marks behind these logs of one run, in their order (P21). */
  markLogEnds(runId: string, logs: readonly AttemptLogRef[], signal: AbortSignal): Promise<readonly number[]>;
  /** Removes what is stored of the run's logs. */
  purgeLogs(runId: string): Promise<void>;
}

export function schedulerPorts(bus: Bus, membershipMs: number): SchedulerPorts {
  return {
    bus,
    time: machineTime,
    membership: membershipPorts(bus, membershipMs),
    newId: randomUUID,
    openLog: (partition, options) => openLog(bus, partition, options),
    watchLeases: (bucket, handler, leaseMs) =>
      watchLeases(bus, bucket, handler, { leaseMs, asNewAsLeader: bucket === buckets.controls }),
    leaseAtLeader: (bucket, key) => leaseAtLeader(bus, bucket, key),
    bucketAgeMs: (bucket) => bucketAgeMs(bus, bucket),
    onReconnected: (then) => {
      bus.events.on('reconnected', then);
      return () => void bus.events.off('reconnected', then);
    },
    markLogEnds: (runId, logs, signal) => markLogEnds(bus, runId, logs, Date.now(), signal),
    purgeLogs: (runId) => purgeLogs(bus, runId),
  };
}
