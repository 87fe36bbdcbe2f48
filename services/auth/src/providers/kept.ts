/**
 * What a provider says of itself, kept for a while: it may move its endpoints, or its keys, while logins go on.
 *
 *  KEPT-1 It is asked again after ten minutes, and after a login that came to nothing; once a minute at most, one question at a time.
 *  KEPT-2 While it does not answer, or is slow to, what it said last holds.
 */
import { within } from '@penstock/async';

const KEPT_MS = 10 * 60_000;
const ASKED_EVERY_MS = 60_000;
/** For a newer answer, where there is one. */
const NEWER_MS_MAX = 3_000;

export class Kept<T> {
  readonly #ask: () => Promise<T>;
  readonly #now: () => number;
  #last: { readonly value: T } | undefined;
  #askedAt = -Infinity;
  #isDoubted = false;
  #asking: Promise<T> | undefined;

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(ask: () => Promise<T>, now: () => number) {
    this.#ask = ask;
    this.#now = now;
  }

  /** Rejects only where it has never answered. */
  async get(): Promise<T> {
    const last = this.#last;
    if (last === undefined) return await this.#asked();
    if (!this.#isDue()) return last.value;
    return await within(
      NEWER_MS_MAX,
      this.#asked().catch(() => last.value),
      () => last.value,
    );
  }

  /** Something that it said did not hold. */
  doubt(): void {
    this.#isDoubted = true;
  }

  #isDue(): boolean {
    const age = this.#now() - this.#askedAt;
    return age >= KEPT_MS || (this.#isDoubted && age >= ASKED_EVERY_MS);
  }

  #asked(): Promise<T> {
    this.#asking ??= this.#askNow().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #askNow(): Promise<T> {
    this.#askedAt = this.#now();
    // Until it has answered.
    this.#isDoubted = true;
    const value = await this.#ask();
    this.#last = { value };
    this.#isDoubted = false;
    return value;
  }
}
