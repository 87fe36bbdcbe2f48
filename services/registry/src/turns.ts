/** Work that is heavy for the machine, a few pieces at a time; it owns those that wait, and lets no more than so many of them wait. */
import { Unavailable } from '@penstock/http';

export class Turns {
  readonly #atOnce: number;
  readonly #waitingMax: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(atOnce: number, waitingMax: number) {
    this.#atOnce = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** In the order of the calls. Throws `Unavailable` where too many wait already. */
  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#atOnce) {
      if (this.#waiting.length >= this.#waitingMax) throw new Unavailable('Too many packages are being published at the moment.');
      // Whoever ends hands its place over, so that nobody who comes later takes it.
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    } else {
      this.#running += 1;
    }
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
