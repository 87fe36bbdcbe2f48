/**
 * What a partition offers to the dispatch, in its order. Nearly always it goes there at once; a take-over has a hundred thousand
 * runs to offer, which go some at a time, and what is offered meanwhile stands behind them.
 */
import type { Dispatch } from './dispatch.ts';
import type { ReadyStages } from './ready-stage.ts';

/** Of a few microseconds each. */
const OFFERS_AT_ONCE = 500;

export class Offers {
  readonly #dispatch: Pick<Dispatch, 'offer'>;
  #waiting: ReadyStages[] = [];
  #next = 0;
  #isOpen = false;

  constructor(dispatch: Pick<Dispatch, 'offer'>) {
    this.#dispatch = dispatch;
  }

  /** Some wait for their turn. */
  get isBusy(): boolean {
    return this.#next < this.#waiting.length;
  }

  /** Before it is open all wait: what is offered may be granted at once, by whichever partition matches. */
  open(): void {
    this.#isOpen = true;
  }

  add(ready: ReadyStages): void {
    if (this.#isOpen && !this.isBusy) this.#dispatch.offer(ready);
    else this.#waiting.push(ready);
  }

  /** The next ones. */
  goOn(): void {
    if (!this.#isOpen || this.#waiting.length === 0) return;
    const end = Math.min(this.#waiting.length, this.#next + OFFERS_AT_ONCE);
    for (; this.#next < end; this.#next++) this.#dispatch.offer(this.#waiting[this.#next] as ReadyStages);
    if (this.isBusy) return;
    this.#waiting = [];
    this.#next = 0;
  }

  clear(): void {
    this.#isOpen = false;
    this.#waiting = [];
    this.#next = 0;
  }
}
