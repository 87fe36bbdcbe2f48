/**
 * A runner's session (P10, P15): a guard, executors whose helpers the guard holds, and a lease in the broker's bucket
 * that says so. It ends when the guard does, for whatever reason; then everything it ran is dead.
 *
 * RUNNER-SESSION-1. The guard's deadline is the moment at which the last accepted renewal was sent, plus the lease less FENCE_MS.
 * RUNNER-SESSION-2. Once the guard is gone the lease is renewed no more, and nothing starts.
 */
import { randomUUID } from 'node:crypto';
import {
  acquireLease,
  buckets,
  type Bus,
  FENCE_MS,
  type Lease,
  RUNNER_LEASE_RENEWALS,
  type RunnerLease,
} from '@penstock/bus';
import { bootClockMs, Guard } from '@penstock/executor';
import type { Logger } from '@penstock/telemetry';
import { guarded } from '@penstock/telemetry/borders';
import type { SessionExecutors } from '../executors/session-executors.ts';

/** The world of a session; a test has its own. */
export interface SessionPorts {
  createGuard(): Guard;
  /** Its `sentAtMs` is of the clock by which the guard's deadlines are. */
  acquire(key: string, value: RunnerLease): Promise<Pick<Lease, 'sentAtMs' | 'renew' | 'release'>>;
}

export function sessionPorts(bus: Bus, leaseMs: number): SessionPorts {
  return {
    createGuard: () => new Guard(),
    acquire: (key, value) => acquireLease(bus, buckets.runners, key, value, { ttlMs: leaseMs, now: bootClockMs }),
  };
}

export interface SessionOptions {
  readonly ports: SessionPorts;
  readonly log: Pick<Logger, 'debug' | 'warn' | 'error'>;
  readonly runner: string;
  readonly leaseMs: number;
  /** The lease's value as of now. */
  readonly lease: (session: string) => RunnerLease;
  readonly createExecutors: (guard: Guard) => SessionExecutors;
}

interface SessionParts {
  readonly guard: Guard;
  readonly executors: SessionExecutors;
  readonly lease: Awaited<ReturnType<SessionPorts['acquire']>>;
}

export class Session {
  readonly id: string;
  readonly executors: SessionExecutors;
  /** Resolves with a phrase that says why when the guard is gone; what ran may still be dying: see `end`. */
  readonly over: Promise<string>;
  readonly #options: SessionOptions;
  readonly #guard: Guard;
  readonly #lease: SessionParts['lease'];
  #renewTimer: NodeJS.Timeout | undefined;
  #isOver = false;

  /** Rejects where the broker does not take the lease; nothing is left behind then. */
  static async begin(options: SessionOptions): Promise<Session> {
    const id = randomUUID();
    const guard = options.ports.createGuard();
    let executors: SessionExecutors | undefined;
    let lease: SessionParts['lease'] | undefined;
    try {
      executors = options.createExecutors(guard);
      const warm = executors.prewarm(1);
      lease = await options.ports.acquire(`${options.runner}.${id}`, options.lease(id));
      await guard.setDeadline(deadlineOf(lease.sentAtMs, options.leaseMs));
      await warm;
      return new Session(id, options, { guard, executors, lease });
    } catch (error) {
      await guard.fire();
      await executors?.close();
      // Where the broker cannot be reached it runs out: nobody renews it.
      await lease?.release().catch(() => {});
      throw error;
    }
  }

  private constructor(id: string, options: SessionOptions, parts: SessionParts) {
    this.id = id;
    this.executors = parts.executors;
    this.#options = options;
    this.#guard = parts.guard;
    this.#lease = parts.lease;
    this.over = parts.guard.gone.then((why) => {
      this.#isOver = true;
      clearTimeout(this.#renewTimer);
      return why;
    });
    this.#scheduleRenewal();
  }

  get isOver(): boolean {
    return this.#isOver || this.#guard.isGone;
  }

  /** Asks the guard: a stage that was killed from outside was killed by it, or by somebody else. */
  async isActive(): Promise<boolean> {
    return !this.isOver && (await this.#guard.confirm()) && !this.isOver;
  }

  /**
   * Ends everything that runs; resolves when it is dead and the lease, where the broker can be reached, is given up.
   * `givesUp`, asked then: false leaves the lease to run out.
   */
  async end(givesUp: () => boolean = () => true): Promise<void> {
    clearTimeout(this.#renewTimer);
    this.#isOver = true;
    await this.#guard.fire();
    await this.executors.close();
    if (!givesUp()) return;
    await this.#lease.release().catch((error: unknown) => {
      this.#options.log.debug({ err: error }, 'the lease could not be given up; it runs out');
    });
  }

  #scheduleRenewal(): void {
    const { log, leaseMs } = this.#options;
    const next = (): void => {
      if (!this.isOver) this.#scheduleRenewal();
    };
    this.#renewTimer = setTimeout(
      guarded('runner.lease-renewal', { log, about: { session: this.id }, failed: next }, () =>
        this.#renew().then(next),
      ),
      leaseMs / RUNNER_LEASE_RENEWALS,
    );
  }

  async #renew(): Promise<void> {
    const { log, leaseMs } = this.#options;
    try {
      const renewal = await this.#lease.renew(this.#options.lease(this.id));
      if (this.isOver) return;
      if (renewal.kind === 'lost') {
        log.warn({ session: this.id }, 'the lease is lost: the session ends');
        await this.#guard.fire();
        return;
      }
      if (renewal.kind === 'accepted') await this.#guard.setDeadline(deadlineOf(renewal.sentAtMs, leaseMs));
      else
        log.warn(
          { err: renewal.cause, session: this.id },
          'the lease could not be renewed; it is tried again until the guard ends the session',
        );
    } catch (error) {
      // The guard goes on with the deadline that it has.
      if (!this.isOver) log.warn({ err: error, session: this.id }, 'the lease could not be renewed');
    }
  }
}

function deadlineOf(sentAtMs: number, leaseMs: number): number {
  return sentAtMs + leaseMs - FENCE_MS;
}
