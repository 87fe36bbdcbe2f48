/**
 * Pieces of work of many keys, a few at a time: those that wait have their turns key by key, so that nobody waits for all of another's.
 *
 *  TURNS-1 A piece that has begun keeps its place until it settles.
 *  TURNS-2 Of one key `waiting.perKeyMax` wait at most, of all `waiting.keysMax` keys; another one is refused.
 *  TURNS-3 Of one key `ofKeyAtOnce` are under way at most: one whose pieces take long leaves places to others.
 */
import { Counts } from './counts.ts';
import { FairQueue } from './fair-queue.ts';

export interface FairTurnsOptions {
  readonly atOnce: number;
  /** Default: all of them. */
  readonly ofKeyAtOnce?: number | undefined;
  readonly waiting: { readonly perKeyMax: number; readonly keysMax: number; readonly refusal: () => Error };
}

export class FairTurns {
  readonly #waiting: FairQueue<() => void>;
  readonly #refusal: () => Error;
  readonly #ofKeyMax: number;
  readonly #underWay = new Counts();
  #free: number;

  constructor({ atOnce, ofKeyAtOnce = atOnce, waiting: { perKeyMax, keysMax, refusal } }: FairTurnsOptions) {
    this.#free = atOnce;
    this.#ofKeyMax = ofKeyAtOnce;
    this.#refusal = refusal;
    this.#waiting = new FairQueue(perKeyMax, keysMax);
  }

  /** Settles as `work` does. Throws the refusal. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0 && this.#mayBegin(key)) this.#begin(key);
    else {
      const turn = Promise.withResolvers<void>();
      const begin = (): void => {
        this.#begin(key);
        turn.resolve();
      };
      if (!this.#waiting.add(key, begin)) throw this.#refusal();
      await turn.promise;
    }
    try {
      return await work();
    } finally {
      this.#underWay.add(key, -1);
      this.#free += 1;
      this.#waiting.next((other) => this.#mayBegin(other))?.();
    }
  }

  #mayBegin(key: string): boolean {
    return this.#underWay.of(key) < this.#ofKeyMax;
  }

  #begin(key: string): void {
    this.#free -= 1;
    this.#underWay.add(key, 1);
  }
}
