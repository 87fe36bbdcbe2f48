/**
 * Wrong guesses by client address: after so many in a minute the next ones are refused without a look. Bounded in memory. The minute is
 * not the wall clock's, whose setting back would hold an address up for as long.
 */
import { RateLimited } from '@penstock/errors';
import { clientKeyOf } from '@penstock/http';

const WINDOW_MS = 60_000;
/** Beyond it the longest known are forgotten: who has so many addresses is not held up by this, but by the size of the codes. */
const ADDRESSES_MAX = 10_000;

export class Tries {
  readonly #triesMax: number;
  readonly #bootNow: () => number;
  readonly #failures = new Map<string, { since: number; count: number }>();

  /** `bootNow`: see `Time`. */
  constructor(triesMax: number, bootNow: () => number) {
    this.#triesMax = triesMax;
    this.#bootNow = bootNow;
  }

  /** Throws `RateLimited` where this address has used up its tries. */
  check(address: string): void {
    const restMs = this.restMs(address);
    if (restMs > 0)
      throw new RateLimited('Too many wrong codes came from this address: wait a minute and try again.', {
        retryAfter: Math.ceil(restMs / 1000),
      });
  }

  /** For how long this address has used up its tries; 0: it has some left. */
  restMs(address: string): number {
    const known = this.#failures.get(clientKeyOf(address));
    return known === undefined || known.count < this.#triesMax
      ? 0
      : Math.max(0, known.since + WINDOW_MS - this.#bootNow());
  }

  failed(address: string): void {
    const key = clientKeyOf(address);
    const known = this.#failures.get(key);
    if (known !== undefined && this.#bootNow() - known.since < WINDOW_MS) {
      known.count += 1;
      return;
    }
    this.#failures.delete(key);
    this.#failures.set(key, { since: this.#bootNow(), count: 1 });
    const [longest] = this.#failures.keys();
    if (this.#failures.size > ADDRESSES_MAX && longest !== undefined) this.#failures.delete(longest);
  }
}
