/**
 * The credits of one session (P11): each stands for one free slot that one scheduler may grant a stage to.
 *
 * CREDITS-1. A number is never used twice in a session.
 * CREDITS-2. A credit is taken at most once, and only while it is open and younger than CREDIT_MS of the boot clock.
 * CREDITS-3. This side alone says whether a credit is open: what arrives for another is refused, at no cost to the stage.
 */
import { CREDIT_MS } from '@penstock/bus';

interface OpenCredit {
  readonly scheduler: string;
  readonly issuedAt: number;
}

export class Credits {
  readonly #now: () => number;
  readonly #nowOrBefore: () => number;
  /** The oldest first. */
  readonly #open = new Map<number, OpenCredit>();
  #last = 0;

  /** `now`: milliseconds of the boot clock. `nowOrBefore`: the same, and never ahead of it; what is issued by it is over the sooner. */
  constructor(now: () => number, nowOrBefore: () => number = now) {
    this.#now = now;
    this.#nowOrBefore = nowOrBefore;
  }

  get openCount(): number {
    return this.#open.size;
  }

  issue(scheduler: string): number {
    this.#last += 1;
    this.#open.set(this.#last, { scheduler, issuedAt: this.#nowOrBefore() });
    return this.#last;
  }

  isOpen(credit: number): boolean {
    return this.#openOne(credit) !== undefined;
  }

  /** The scheduler that had it, or null where it is not open (any more). */
  take(credit: number): string | null {
    const open = this.#openOne(credit);
    this.#open.delete(credit);
    return open?.scheduler ?? null;
  }

  #openOne(credit: number): OpenCredit | undefined {
    const open = this.#open.get(credit);
    return open === undefined || this.#now() - open.issuedAt >= CREDIT_MS ? undefined : open;
  }

  close(credits: readonly number[]): void {
    for (const credit of credits) this.#open.delete(credit);
  }

  closeAll(): void {
    this.#open.clear();
  }

  openAt(scheduler: string): number[] {
    return [...this.#open].filter(([, open]) => open.scheduler === scheduler).map(([credit]) => credit);
  }

  /** Closes what has expired; answers, by scheduler, what is older than `ageMs`. */
  olderThan(ageMs: number): Map<string, number[]> {
    const now = this.#now();
    const old = new Map<string, number[]>();
    for (const [credit, { scheduler, issuedAt }] of this.#open) {
      if (now - issuedAt >= CREDIT_MS) this.#open.delete(credit);
      else if (now - issuedAt >= ageMs) old.set(scheduler, [...(old.get(scheduler) ?? []), credit]);
    }
    return old;
  }
}
