/**
 * For one lease after it has connected to the broker an owner declares no loss (P5): the broker may have been away from all of
 * its runners for as long, and those whose leases have run out meanwhile come back with a session that lists their results (P13).
 */
import { RUNNER_LEASE_MS } from '@penstock/bus';
import type { Time } from '@penstock/async';

export interface LossPauseOptions {
  readonly runnerLeaseMs?: number | undefined;
  /** Nothing that held a lease is alive when the process starts: it has nothing to wait for then. */
  readonly leasesProvenDead?: boolean | undefined;
}

export class LossPause {
  readonly #time: Pick<Time, 'bootNow'>;
  readonly #leaseMs: number;
  #since: number;

  constructor({ runnerLeaseMs = RUNNER_LEASE_MS, leasesProvenDead }: LossPauseOptions, time: Pick<Time, 'bootNow'>) {
    this.#time = time;
    this.#leaseMs = runnerLeaseMs;
    this.#since = leasesProvenDead === true ? Number.NEGATIVE_INFINITY : time.bootNow();
  }

  /** The connection stands again. */
  begin(): void {
    this.#since = this.#time.bootNow();
  }

  get isOver(): boolean {
    return this.#time.bootNow() - this.#since >= this.#leaseMs;
  }
}
