/** Wrong guesses by client address: after so many in a minute the next ones are refused without a look. Bounded in memory. */
import { RateLimited } from '@penstock/errors';
import { clientKeyOf } from '@penstock/http';

const WINDOW_MS = 60_000;
/** Beyond it the longest known are forgotten: who has so many addresses is not held up by this, but by the size of the codes. */
const ADDRESSES_MAX = 10_000;

export class Tries {
  readonly #triesMax: number;
  readonly #now: () => number;
  readonly #failures = new Map<string, { since: number; count: number }>();

  constructor(triesMax: number, now: () => number) {
    this.#triesMax = triesMax;
    this.#now = now;
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
    return known === undefined || known.count < this.#triesMax ? 0 : Math.max(0, known.since + WINDOW_MS - this.#now());
  }

  failed(address: string): void {
    const key = clientKeyOf(address);
    const known = this.#failures.get(key);
    if (known !== undefined && this.#now() - known.since < WINDOW_MS) {
      known.count += 1;
      return;
    }
    this.#failures.delete(key);
    this.#failures.set(key, { since: this.#now(), count: 1 });
    const [longest] = this.#failures.keys();
    if (this.#failures.size > ADDRESSES_MAX && longest !== undefined) this.#failures.delete(longest);
  }
}
