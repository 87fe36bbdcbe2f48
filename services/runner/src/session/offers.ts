/**
 * Keeps every free slot on offer, at one scheduler at a time (P11): standing offers, so that a stage that becomes ready
 * finds a runner without asking. It owns a session's credits and the requests that carry them.
 *
 * OFFERS-1. Open credits and stages that run are together never more than the slots.
 * OFFERS-2. An offer is renewed before it is over, and moved to a scheduler that has stages waiting from one that has none;
 *     either way it is withdrawn first.
 * OFFERS-3. A request that fails closes its credits here: whatever its receiver grants from them is refused, at no cost.
 * OFFERS-4. A slot does not stay with a scheduler for as long as that has stages: one that asks and has been offered nothing for
 *     STARVING_MS gets the next one. Its stages are other keys'.
 */
import { CREDIT_RENEWED_AFTER_MS, type PullReply, type PullRequest, subjects } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import { guarded } from '@penstock/telemetry/borders';
import { FullSlots } from './full-slots.ts';
import type { SessionWorld } from './session-world.ts';
import type { Credits } from './credits.ts';
import type { Schedulers } from './schedulers.ts';

export interface OffersOptions {
  readonly ports: Pick<SessionWorld, 'bus' | 'time'>;
  readonly log: Log;
  readonly runner: string;
  readonly session: string;
  readonly labels: readonly string[];
  /** At this moment: none where no stage can be taken. */
  readonly slots: () => number;
  readonly credits: Credits;
  readonly schedulers: Schedulers;
  /** The run that the session serves alone, once it has one; absent: it serves any. */
  readonly only?: (() => PullRequest['only']) | undefined;
  /** It takes nothing any more but stages that are bound to its runner; absent: it takes any. */
  readonly isLeaving?: (() => boolean) | undefined;
  /** Slots whose stage runs. */
  readonly busy: () => number;
}

const TICK_MS = 1_000;
const PULL_TIMEOUT_MS = 2_000;
/** A credit that has been open for this long is one that its scheduler has no stage for at present. */
const UNTAKEN_MS = 50;
/** So long a slot may stay where its results carry it, though another scheduler asks: asking anew costs a stage its turn-around. */
const STARVING_MS = 250;
/** A scheduler that did not answer is left alone for this long; a new one subscribes a moment after it is seen. */
const SHUN_MS = 250;
/** Nor is one whose stage was declined: it may be of a release that gives a runner that leaves whatever waits, and would do so again and again. */
const DECLINED_MS = 1_000;

interface Candidate {
  readonly scheduler: string;
  readonly asks: boolean;
  readonly open: number;
  readonly issuedAt: number;
}

export class Offers {
  readonly #options: OffersOptions;
  #callOffTick: () => void = () => {};
  readonly #shunned = new Map<string, number>();
  /** When each scheduler was last offered a slot. */
  readonly #issuedAt = new Map<string, number>();
  /** Being withdrawn: not withdrawn twice. */
  readonly #leaving = new Set<number>();
  readonly #fullSlots: FullSlots;
  #pumping = false;
  #stopped = false;

  constructor(options: OffersOptions) {
    this.#options = options;
    this.#fullSlots = new FullSlots(options.log);
    this.#tickLater();
  }

  /** To be called whenever a slot may have become free or a scheduler may have come; many calls make one request. */
  pump(): void {
    if (this.#pumping || this.#stopped) return;
    this.#pumping = true;
    queueMicrotask(
      this.#guarded(() => {
        this.#pumping = false;
        this.#offerFree();
        this.#moveToDemand();
      }),
    );
  }

  /** Whose stage takes this slot next, without asking: the credit for a result to carry. Null: nobody's. */
  offerAlong(scheduler: string): number | null {
    const { schedulers } = this.#options;
    if (this.#stopped || this.#free() <= 0 || !schedulers.members.has(scheduler)) return null;
    return this.#hasStarving(scheduler) ? null : this.#issue(scheduler);
  }

  gone(scheduler: string): void {
    this.#options.credits.close(this.#options.credits.openAt(scheduler));
    this.#shunned.delete(scheduler);
    this.#issuedAt.delete(scheduler);
  }

  /** Takes back what was offered for anything: it is offered anew for what is bound to the runner. */
  leaving(): void {
    const { credits, schedulers } = this.#options;
    for (const scheduler of schedulers.members) void this.#withdraw(scheduler, credits.openAt(scheduler));
  }

  /** A stage of this scheduler's was refused, and is not to come again at once. */
  declined(scheduler: string): void {
    this.#shun(scheduler, DECLINED_MS);
  }

  /** Takes everything back. Resolves when no further stage can be granted from what was offered. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#callOffTick();
    const { credits, schedulers } = this.#options;
    await Promise.all([...schedulers.members].map((scheduler) => this.#withdraw(scheduler, credits.openAt(scheduler))));
    credits.closeAll();
  }

  #free(): number {
    const { slots, busy, credits } = this.#options;
    return slots() - busy() - credits.openCount;
  }

  #offerFree(): void {
    if (this.#stopped) return;
    const offered = new Map<string, number[]>();
    for (let free = this.#free(); free > 0; free -= 1) {
      const scheduler = this.#choose();
      if (scheduler === null) break;
      const credit = this.#issue(scheduler);
      const others = offered.get(scheduler);
      if (others === undefined) offered.set(scheduler, [credit]);
      else others.push(credit);
    }
    for (const [scheduler, numbers] of offered) void this.#pull(scheduler, numbers, []);
  }

  #issue(scheduler: string): number {
    this.#issuedAt.set(scheduler, this.#options.ports.time.bootNow());
    return this.#options.credits.issue(scheduler);
  }

  /** OFFERS-4. */
  #hasStarving(than: string): boolean {
    const { schedulers, credits } = this.#options;
    const before = this.#options.ports.time.bootNow() - STARVING_MS;
    for (const scheduler of schedulers.members) {
      const isStarving =
        scheduler !== than && schedulers.isAsking(scheduler) && (this.#issuedAt.get(scheduler) ?? 0) < before;
      if (isStarving && credits.openAt(scheduler).length === 0) return true;
    }
    return false;
  }

  /** One that asks before one that does not; of equals the one with the fewest offers, then the one that had none for longest. */
  #choose(): string | null {
    const { schedulers, credits } = this.#options;
    const now = this.#options.ports.time.bootNow();
    let best: Candidate | null = null;
    for (const scheduler of schedulers.members) {
      if ((this.#shunned.get(scheduler) ?? 0) > now) continue;
      const candidate = {
        scheduler,
        asks: schedulers.isAsking(scheduler),
        open: credits.openAt(scheduler).length,
        issuedAt: this.#issuedAt.get(scheduler) ?? 0,
      };
      if (best === null || isBetter(candidate, best)) best = candidate;
    }
    return best?.scheduler ?? null;
  }

  /**
   * OFFERS-2. Half of what a scheduler without demand holds, so that it too keeps a slot for its next stage. Where it has asked a
   * moment ago: of what it has had for a while, for a scheduler with a stage that waits takes a credit at once.
   */
  #moveToDemand(): void {
    const { schedulers, credits } = this.#options;
    if (this.#stopped || schedulers.members.size < 2) return;
    const needy = [...schedulers.members].some(
      (scheduler) => schedulers.isAsking(scheduler) && credits.openAt(scheduler).length === 0,
    );
    if (!needy) return;
    const untaken = new Map(credits.olderThan(UNTAKEN_MS));
    for (const scheduler of schedulers.members) {
      const open = schedulers.isAsking(scheduler) ? (untaken.get(scheduler) ?? []) : credits.openAt(scheduler);
      void this.#withdraw(scheduler, open.slice(0, Math.ceil(open.length / 2)));
    }
  }

  #tickLater(): void {
    this.#callOffTick = this.#options.ports.time.after(TICK_MS, () => {
      this.#tickLater();
      this.#guarded(() => this.#renew())();
    });
  }

  #renew(): void {
    const { ports, slots, busy, schedulers } = this.#options;
    const isAsked = [...schedulers.members].some((scheduler) => schedulers.isAsking(scheduler));
    this.#fullSlots.look({ slots: slots(), busy: busy(), isAsked }, ports.time.bootNow());
    for (const [scheduler, old] of this.#options.credits.olderThan(CREDIT_RENEWED_AFTER_MS))
      void this.#withdraw(scheduler, old);
    this.pump();
  }

  async #withdraw(scheduler: string, numbers: readonly number[]): Promise<void> {
    const leaving = numbers.filter((credit) => !this.#leaving.has(credit));
    if (leaving.length === 0) return;
    for (const credit of leaving) this.#leaving.add(credit);
    await this.#pull(scheduler, [], leaving);
    for (const credit of leaving) this.#leaving.delete(credit);
    this.pump();
  }

  /** A round that fails costs itself: the next one offers what is free then. */
  #guarded(callback: () => void): () => void {
    const { log, session } = this.#options;
    return guarded('runner.offers', { log, about: { session }, failed: () => (this.#pumping = false) }, callback);
  }

  async #pull(scheduler: string, credits: readonly number[], withdraw: readonly number[]): Promise<void> {
    const { ports, log, runner, session, labels } = this.#options;
    const only = this.#options.only?.();
    const leaving = this.#options.isLeaving?.() === true;
    const request: PullRequest = {
      ...{ session, runner, labels, credits, withdraw },
      ...(only && { only }),
      ...(leaving && { leaving }),
    };
    try {
      const reply = await ports.bus.request<PullRequest, PullReply>(subjects.pull(scheduler, runner), request, {
        timeoutMs: PULL_TIMEOUT_MS,
      });
      // What was not withdrawn was granted: its stage is on its way, and the credit stays open for it.
      this.#options.credits.close(reply.withdrawn);
      if (reply.ok) return;
      this.#options.credits.close(credits);
    } catch (error) {
      this.#options.credits.close([...credits, ...withdraw]);
      log.debug({ err: error, scheduler }, 'a scheduler did not take an offer');
    }
    this.#shun(scheduler, SHUN_MS);
  }

  #shun(scheduler: string, forMs: number): void {
    const { time } = this.#options.ports;
    this.#shunned.set(scheduler, time.bootNow() + forMs);
    time.after(forMs + 1, () => this.pump());
  }
}

function isBetter(candidate: Candidate, best: Candidate): boolean {
  if (candidate.asks !== best.asks) return candidate.asks;
  return candidate.open === best.open ? candidate.issuedAt < best.issuedAt : candidate.open < best.open;
}
