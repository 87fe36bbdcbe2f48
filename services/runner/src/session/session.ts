/**
 * A runner's session (P10, P15): a guard, executors whose helpers the guard holds, and a lease in the broker's bucket
 * that says so. It ends when the guard does, for whatever reason; then everything it ran is dead.
 *
 * RUNNER-SESSION-1. The guard's deadline is the moment at which the last accepted renewal was sent, plus the lease less FENCE_MS.
 * RUNNER-SESSION-2. Once the guard is gone the lease is renewed no more, and nothing starts.
 */
import { type Time } from '@penstock/async';
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
import type { Log } from '@penstock/telemetry/log';
import { guarded } from '@penstock/telemetry/borders';
import { newSealingKey, type SealingKey } from '@penstock/identity';

/** What a session asks of its guard. */
export type SessionGuard = Pick<Guard, 'gone' | 'isGone' | 'setDeadline' | 'confirm' | 'fire'>;

/** What a session asks of its executors. */
interface Executors {
  prewarm(count: number): Promise<void>;
  close(): Promise<void>;
}

/** The world of a session; a test has its own. */
export interface SessionPorts<Guarding extends SessionGuard = Guard> {
  createGuard(): Guarding;
  newKey(): SealingKey;
  /** Its `sentAtMs` is of the clock by which the guard's deadlines are. */
  acquire(key: string, value: RunnerLease): Promise<Pick<Lease, 'sentAtMs' | 'renew' | 'release'>>;
}

export function sessionPorts(bus: Bus, leaseMs: number): SessionPorts {
  return {
    createGuard: () => new Guard(),
    newKey: newSealingKey,
    acquire: (key, value) => acquireLease(bus, buckets.runners, key, value, { ttlMs: leaseMs, now: bootClockMs }),
  };
}

export interface SessionOptions<Guarding extends SessionGuard, Stages extends Executors> {
  readonly ports: SessionPorts<Guarding>;
  readonly time: Pick<Time, 'after'>;
  readonly newId: () => string;
  readonly log: Pick<Log, 'debug' | 'warn' | 'error'>;
  readonly runner: string;
  readonly leaseMs: number;
  /** The lease's value as of now. */
  readonly lease: (session: string) => RunnerLease;
  readonly createExecutors: (guard: Guarding) => Stages;
}

interface SessionParts<Stages> {
  readonly guard: SessionGuard;
  readonly executors: Stages;
  readonly key: SealingKey;
  readonly lease: Awaited<ReturnType<SessionPorts['acquire']>>;
}

export class Session<Stages extends Executors> {
  readonly id: string;
  readonly executors: Stages;
  /** What is given to its stages is sealed to it. */
  readonly key: SealingKey;
  /** Resolves with a phrase that says why when the guard is gone; what ran may still be dying: see `end`. */
  readonly over: Promise<string>;
  readonly #options: Omit<SessionOptions<never, Stages>, 'ports' | 'createExecutors'>;
  readonly #guard: SessionGuard;
  readonly #lease: SessionParts<Stages>['lease'];
  #callOffRenewal: () => void = () => {};
  /** One renewal is under way at a time. */
  #lastRenewal: Promise<void> = Promise.resolve();
  #nextRenewal: Promise<void> | null = null;
  #isOver = false;

  /** Rejects where the broker does not take the lease, or the executors do not come up; nothing is left behind then. */
  static async begin<Guarding extends SessionGuard, Stages extends Executors>(
    options: SessionOptions<Guarding, Stages>,
  ): Promise<Session<Stages>> {
    const id = options.newId();
    const guard = options.ports.createGuard();
    const key = options.ports.newKey();
    let executors: Stages | undefined;
    let lease: SessionParts<Stages>['lease'] | undefined;
    try {
      executors = options.createExecutors(guard);
      const warm = executors.prewarm(1);
      // Also before the lease is there.
      warm.catch(() => {});
      lease = await options.ports.acquire(`${options.runner}.${id}`, leaseOf(options, id, key));
      await guard.setDeadline(deadlineOf(lease.sentAtMs, options.leaseMs));
      await warm;
      return new Session(id, options, { guard, executors, key, lease });
    } catch (error) {
      await guard.fire();
      await executors?.close();
      // Where the broker cannot be reached it runs out: nobody renews it.
      await lease?.release().catch(() => {});
      throw error;
    }
  }

  private constructor(
    id: string,
    options: Omit<SessionOptions<never, Stages>, 'ports' | 'createExecutors'>,
    parts: SessionParts<Stages>,
  ) {
    this.id = id;
    this.executors = parts.executors;
    this.key = parts.key;
    this.#options = options;
    this.#guard = parts.guard;
    this.#lease = parts.lease;
    this.over = parts.guard.gone.then((why) => {
      this.#isOver = true;
      this.#callOffRenewal();
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
    this.#callOffRenewal();
    this.#isOver = true;
    await this.#guard.fire();
    await this.executors.close();
    if (!givesUp()) return;
    await this.#lease.release().catch((error: unknown) => {
      this.#options.log.debug({ err: error }, 'the lease could not be given up; it runs out');
    });
  }

  #scheduleRenewal(): void {
    const { log, leaseMs, time } = this.#options;
    const next = (): void => {
      if (!this.isOver) this.#scheduleRenewal();
    };
    this.#callOffRenewal = time.after(
      leaseMs / RUNNER_LEASE_RENEWALS,
      guarded('runner.lease-renewal', { log, about: { session: this.id }, failed: next }, () =>
        this.renewNow().then(next),
      ),
    );
  }

  /** With what the lease is to list now; who asks while one is under way shares the next. Never rejects. */
  renewNow(): Promise<void> {
    this.#nextRenewal ??= this.#lastRenewal.then(() => {
      this.#nextRenewal = null;
      this.#lastRenewal = this.#renew();
      return this.#lastRenewal;
    });
    return this.#nextRenewal;
  }

  async #renew(): Promise<void> {
    const { log, leaseMs } = this.#options;
    if (this.isOver) return;
    try {
      const renewal = await this.#lease.renew(leaseOf(this.#options, this.id, this.key));
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

function leaseOf({ lease }: Pick<SessionOptions<never, never>, 'lease'>, id: string, key: SealingKey): RunnerLease {
  return { ...lease(id), sealTo: key.publicKey };
}

function deadlineOf(sentAtMs: number, leaseMs: number): number {
  return sentAtMs + leaseMs - FENCE_MS;
}
