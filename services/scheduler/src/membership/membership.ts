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
import type { Logger } from '@penstock/telemetry';

const REJOIN_MS = 500;

export interface MembershipOptions {
  readonly bus: Bus;
  readonly ttlMs: number;
  readonly log: Logger;
  /** Called with each new id, before anything is done under it. */
  joined(member: string): void;
  /** The id is worth nothing any more: everything owned under it is to be forgotten at once. */
  lost(): void;
}

export class SchedulerMembership {
  readonly #options: MembershipOptions;
  readonly #stopped = new AbortController();
  #lease: Lease | undefined;
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
    return this.#lease !== undefined && bootMs() - this.#lease.sentAtMs < ACT_WITHIN_MS;
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
    const member = randomUUID();
    const value: Membership = { member, startedAt: new Date().toISOString() };
    this.#lease = await acquireLease(this.#options.bus, buckets.members, member, value, { ttlMs: this.#options.ttlMs });
    this.#trouble = undefined;
    this.#options.joined(member);
  }

  async #renewForEver(): Promise<void> {
    const { log, ttlMs } = this.#options;
    const { signal } = this.#stopped;
    for (;;) {
      await delay(this.#lease === undefined ? REJOIN_MS : ttlMs / MEMBERSHIP_RENEWALS, undefined, { signal }).catch(
        () => {},
      );
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
