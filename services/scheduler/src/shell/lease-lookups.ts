/**
 * Leases read fresh from the broker. A picture of a bucket is a replica's, which may be behind; that a lease is gone is said by the
 * stream's leader only, and only once the bucket is older than a lease (P5).
 */
import { deadlineIn, unlessAborted } from '@penstock/async';
import { buckets, type Membership, MEMBERSHIP_MS, RUNNER_LEASE_MS, type RunnerLease } from '@penstock/bus';
import type { LeaseBucket, SchedulerPorts } from './scheduler-ports.ts';

/** A watch begins within milliseconds; one that has not after so long is of no use to who waits for a partition. */
const PICTURE_MS_MAX = 10_000;

export interface LeaseLookupsOptions {
  readonly membershipMs?: number | undefined;
  readonly runnerLeaseMs?: number | undefined;
  /** See `SchedulerOptions`. */
  readonly leasesProvenDead?: boolean | undefined;
}

export class LeaseLookups {
  readonly #options: LeaseLookupsOptions;
  readonly #ports: Pick<SchedulerPorts, 'leaseAtLeader' | 'bucketAgeMs' | 'watchLeases' | 'time'>;

  constructor(
    options: LeaseLookupsOptions,
    ports: Pick<SchedulerPorts, 'leaseAtLeader' | 'bucketAgeMs' | 'watchLeases' | 'time'>,
  ) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Whether the member's lease is over. */
  async isGone(member: string): Promise<boolean> {
    const lease = await this.#ports.leaseAtLeader<Membership>(buckets.members, member);
    return lease === null && (await this.youngForMs(buckets.members)) <= 0;
  }

  /** Null: over, or the bucket was made anew since. `key`: `<runner>.<session>`. */
  async ofSession(key: string): Promise<RunnerLease | null> {
    const lease = await this.#ports.leaseAtLeader<RunnerLease>(buckets.runners, key);
    return lease === null ? null : lease.value;
  }

  /** How long the absence of a key in the bucket does not mean yet that its lease is over; 0 or less: it does. */
  async youngForMs(bucket: LeaseBucket): Promise<number> {
    const { leasesProvenDead, membershipMs = MEMBERSHIP_MS, runnerLeaseMs = RUNNER_LEASE_MS } = this.#options;
    if (leasesProvenDead === true) return 0;
    return (bucket === buckets.members ? membershipMs : runnerLeaseMs) - (await this.#ports.bucketAgeMs(bucket));
  }

  /**
   * The leases of runners, by key, as one replica has them: a watch that ends once it has shown the present values. Throws
   * where that takes longer than `PICTURE_MS_MAX`.
   */
  async runnersNow(signal: AbortSignal): Promise<Map<string, RunnerLease>> {
    const leases = new Map<string, RunnerLease>();
    const watch = this.#ports.watchLeases<RunnerLease>(buckets.runners, (event) => {
      if (event.kind === 'put') leases.set(event.key, event.value);
      else leases.delete(event.key);
    });
    const late = deadlineIn(this.#ports.time, PICTURE_MS_MAX);
    try {
      await unlessAborted(watch.ready, AbortSignal.any([signal, late.signal]));
    } finally {
      late.end();
      watch.stop();
    }
    return leases;
  }
}
