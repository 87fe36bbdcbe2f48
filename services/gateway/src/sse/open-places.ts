/**
 * How many log streams, or downloads, are under way: of each user, of each address, and of all. It owns the counts; a place is
 * taken before one begins and given back after it.
 */
import { RateLimited, Unavailable } from '@penstock/errors';

const RETRY_SECS = 5;

export interface OpenPlacesLimits {
  /** What is counted, in the plural. */
  readonly what: 'log streams' | 'downloads';
  readonly max: number;
  /** Of one user, and of one address. */
  readonly perUserMax: number;
}

export class OpenPlaces {
  readonly #limits: OpenPlacesLimits;
  /** By user and by address. */
  readonly #counts = new Map<string, number>();
  #all = 0;

  constructor(limits: OpenPlacesLimits) {
    this.#limits = limits;
  }

  /** Gives the function that gives the place back. Throws `Unavailable` or `RateLimited`. */
  take(userId: string | undefined, address: string): () => void {
    const holders = [`address ${address}`, ...(userId === undefined ? [] : [`user ${userId}`])];
    if (this.#all >= this.#limits.max)
      throw new Unavailable(`Too many ${this.#limits.what} are open; close some, or try again in a moment.`, {
        retryAfterSecs: RETRY_SECS,
      });
    if (holders.some((holder) => (this.#counts.get(holder) ?? 0) >= this.#limits.perUserMax))
      throw new RateLimited(
        `At most ${this.#limits.perUserMax} ${this.#limits.what} of a user and of an address may be open: close one first.`,
        { retryAfter: RETRY_SECS },
      );
    for (const holder of holders) this.#counts.set(holder, (this.#counts.get(holder) ?? 0) + 1);
    this.#all += 1;
    return () => this.#giveBack(holders);
  }

  #giveBack(holders: readonly string[]): void {
    this.#all -= 1;
    for (const holder of holders) {
      const count = (this.#counts.get(holder) ?? 0) - 1;
      if (count > 0) this.#counts.set(holder, count);
      else this.#counts.delete(holder);
    }
  }
}
