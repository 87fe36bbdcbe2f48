/**
 * How long until the next of a line may begin: so many places, what still goes on in them, and one after the other those that are
 * ahead. Pure.
 */
import { Heap } from './heap.ts';

/** Of places; with more of them all is spread evenly. */
const PLACES_MAX = 2_000;

export class ExpectedLine {
  /** When each place is free, from now. */
  readonly #free = new Heap<number>((a, b) => a < b);
  readonly #places: number;
  #spreadMs = 0;
  #isKnown: boolean;

  /** `remainingMs`: of what goes on now; an undefined one is not known, and then nothing is. */
  constructor(places: number, remainingMs: readonly (number | undefined)[]) {
    this.#places = Math.min(places, PLACES_MAX);
    this.#isKnown = places >= 1;
    // More go on than there are places, as after a limit was lowered: the first to end free none.
    const all = remainingMs.map((ms) => ms ?? Number.NaN).sort((a, b) => a - b);
    for (const ms of all.slice(Math.max(0, all.length - this.#places))) this.#occupy(ms);
    while (this.#free.size < this.#places) this.#free.push(0);
  }

  /** From now; undefined: not known. */
  get nextMs(): number | undefined {
    return this.#isKnown ? this.#spreadMs + (this.#free.peek() ?? 0) : undefined;
  }

  /** So many go on before the next. */
  push(lengthMs: number | undefined, times = 1): void {
    if (lengthMs === undefined && times > 0) this.#isKnown = false;
    if (!this.#isKnown) return;
    const ms = lengthMs ?? 0;
    const rounds = Math.max(0, Math.floor(times / this.#places) - 1);
    this.#spreadMs += rounds * ms;
    for (let left = times - rounds * this.#places; left > 0; left -= 1) this.#occupy((this.#free.pop() ?? 0) + ms);
  }

  #occupy(ms: number): void {
    if (Number.isNaN(ms)) this.#isKnown = false;
    else this.#free.push(ms);
  }
}
