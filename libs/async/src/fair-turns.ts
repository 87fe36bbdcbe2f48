/**
 * Pieces of work of many keys, a few at a time: those that wait have their turns key by key, so that nobody waits for all of another's.
 *
 *  TURNS-1 A piece that has begun keeps its place until it settles.
 *  TURNS-2 Of one key `waiting.perKeyMax` wait at most, of all `waiting.keysMax` keys; another one is refused.
 */
import { FairQueue } from './fair-queue.ts';

export interface FairTurnsOptions {
  readonly atOnce: number;
  readonly waiting: { readonly perKeyMax: number; readonly keysMax: number; readonly refusal: () => Error };
}

export class FairTurns {
  readonly #waiting: FairQueue<() => void>;
  readonly #refusal: () => Error;
  #free: number;

  constructor({ atOnce, waiting: { perKeyMax, keysMax, refusal } }: FairTurnsOptions) {
    this.#free = atOnce;
    this.#refusal = refusal;
    this.#waiting = new FairQueue(perKeyMax, keysMax);
  }

  /** Settles as `work` does. Throws the refusal. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else {
      const turn = Promise.withResolvers<void>();
      if (!this.#waiting.add(key, turn.resolve)) throw this.#refusal();
      await turn.promise;
    }
    try {
      return await work();
    } finally {
      this.#giveOn();
    }
  }

  #giveOn(): void {
    const next = this.#waiting.next();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
