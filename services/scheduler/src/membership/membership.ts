/**
 * This scheduler's membership (P3, P5): a lease in the bucket `members`, renewed every third of its life. A member id is
 * new at each joining, also after a refused renewal, so that an old id in a log always names somebody who is gone.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { bootMs } from '@penstock/async';
import {
  acquireLease,
  ACT_WITHIN_MS,
  buckets,
  type Bus,
  type Lease,
  type Membership,
  MEMBERSHIP_RENEWALS,
} from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';

const REJOIN_MS = 500;

/** The world of a membership; the simulation has its own. */
export interface MembershipPorts {
  /** Milliseconds of the boot clock, by which a lease says when it was sent. */
  bootNow(): number;
  newId(): string;
  /** Ends early, without an error, when the signal aborts. */
  pause(milliseconds: number, signal: AbortSignal): Promise<void>;
  acquire(member: string): Promise<Pick<Lease, 'sentAtMs' | 'renew' | 'release'>>;
}

export function membershipPorts(bus: Bus, ttlMs: number): MembershipPorts {
  return {
    bootNow: bootMs,
    newId: randomUUID,
    pause: (milliseconds, signal) => delay(milliseconds, undefined, { signal }).catch(() => {}),
    acquire: (member) => {
      const value: Membership = { member, startedAt: new Date().toISOString() };
      return acquireLease(bus, buckets.members, member, value, { ttlMs });
    },
  };
}

export interface MembershipOptions {
  readonly ports: MembershipPorts;
  readonly ttlMs: number;
  readonly log: Pick<Log, 'warn'>;
  /** Called with each new id, before anything is done under it. */
  joined(member: string): void;
  /** The id is worth nothing any more: everything owned under it is to be forgotten at once. */
  lost(): void;
}

export class SchedulerMembership {
  readonly #options: MembershipOptions;
  readonly #stopped = new AbortController();
  #lease: Awaited<ReturnType<MembershipPorts['acquire']>> | undefined;
  #trouble: string | undefined;
  #running: Promise<void> | undefined;

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /** Resolves once joined; goes on in the background until `leave`. */
  async join(): Promise<void> {
    await this.#acquire();
    this.#running = this.#renewForEver();
  }

  /** P4: whether the last accepted renewal was sent so lately that nobody else can own anything of ours. */
  mayAct(): boolean {
    return this.#lease !== undefined && this.#options.ports.bootNow() - this.#lease.sentAtMs < ACT_WITHIN_MS;
  }

  /** Why the last renewal was not stored; undefined where it was. */
  get trouble(): string | undefined {
    return this.#lease === undefined ? (this.#trouble ?? 'it is no member') : this.#trouble;
  }

  async leave(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    const lease = this.#lease;
    this.#lease = undefined;
    await lease
      ?.release()
      .catch((error: unknown) =>
        this.#options.log.warn({ err: error }, 'the membership was not given up; it runs out by itself'),
      );
  }

  async #acquire(): Promise<void> {
    const { ports } = this.#options;
    const member = ports.newId();
    const lease = await ports.acquire(member);
    this.#lease = lease;
    this.#trouble = undefined;
    try {
      this.#options.joined(member);
    } catch (error) {
      // A member that nobody can ask would own its share and give out nothing of it.
      this.#lease = undefined;
      this.#options.lost();
      await lease.release().catch(() => {});
      throw error;
    }
  }

  async #renewForEver(): Promise<void> {
    const { log, ports, ttlMs } = this.#options;
    const { signal } = this.#stopped;
    for (;;) {
      await ports.pause(this.#lease === undefined ? REJOIN_MS : ttlMs / MEMBERSHIP_RENEWALS, signal);
      if (signal.aborted) return;
      try {
        if (this.#lease === undefined) {
          await this.#acquire();
          continue;
        }
        const result = await this.#lease.renew();
        this.#trouble = result.kind === 'unanswered' ? result.cause.message : undefined;
        if (result.kind !== 'lost') continue;
        log.warn({}, 'the membership has run out; joining anew');
        this.#lease = undefined;
        this.#options.lost();
      } catch (error) {
        this.#trouble = error instanceof Error ? error.message : String(error);
        log.warn({ err: error }, 'the membership could not be renewed; tried again');
      }
    }
  }
}
