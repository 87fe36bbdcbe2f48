/**
 * What a partition offers to the dispatch, in its order. Nearly always it goes there at once; a take-over has a hundred thousand
 * runs to offer, which go some at a time, and what is offered meanwhile stands behind them.
 *
 *  OFFERED-1 What stood there when it was opened goes in the order in which it was queued, as it came to the owner before: a lane is first come
 *     first served, and a take-over has the runs in the order of their creation. That is nearly so: stages of one run that need the same have
 *     one place, which is that of the first of them, and a time is by the wall clock of whoever owned the run when it was queued. Both decide
 *     about the order alone: all of it goes before what is offered later.
 *  OFFERED-2 What the dispatch has thrown at stands first still, and is offered again: a run whose offer is lost would wait for ever.
 */
import type { Dispatch } from './dispatch.ts';
import { Heap } from '../run/heap.ts';
import type { ReadyStages } from './ready-stage.ts';

interface Queued {
  readonly ready: ReadyStages;
  readonly at: number;
  /** Of those of one time. */
  readonly order: number;
}

/** Of a few microseconds each. */
const OFFERS_AT_ONCE = 500;

export class Offers {
  readonly #dispatch: Pick<Dispatch, 'offer'>;
  /** OFFERED-1: put in order as it comes, while runs are taken over, and as it goes; a hundred thousand at once would hold up all others. */
  #fromBefore = newHeap();
  #waiting: ReadyStages[] = [];
  #next = 0;
  #isOpen = false;

  constructor(dispatch: Pick<Dispatch, 'offer'>) {
    this.#dispatch = dispatch;
  }

  /** Some wait for their turn. */
  get isBusy(): boolean {
    return this.#fromBefore.size > 0 || this.#next < this.#waiting.length;
  }

  /** Before it is open all wait: what is offered may be granted at once, by whichever partition matches. */
  open(): void {
    this.#isOpen = true;
  }

  add(ready: ReadyStages): void {
    if (!this.#isOpen) this.#fromBefore.push({ ready, at: ready.since(0) ?? 0, order: this.#fromBefore.size });
    else if (this.isBusy) this.#waiting.push(ready);
    else this.#dispatch.offer(ready);
  }

  /** The next ones. */
  goOn(): void {
    if (!this.#isOpen || !this.isBusy) return;
    for (let offered = 0; offered < OFFERS_AT_ONCE && this.isBusy; offered += 1) this.#offerNext();
    if (this.isBusy) return;
    this.#waiting = [];
    this.#next = 0;
  }

  #offerNext(): void {
    const first = this.#fromBefore.peek();
    const ready = first?.ready ?? this.#waiting[this.#next];
    if (ready !== undefined) this.#dispatch.offer(ready);
    if (first === undefined) this.#next += 1;
    else this.#fromBefore.pop();
  }

  clear(): void {
    this.#isOpen = false;
    this.#fromBefore = newHeap();
    this.#waiting = [];
    this.#next = 0;
  }
}

function newHeap(): Heap<Queued> {
  return new Heap((a, b) => (a.at === b.at ? a.order < b.order : a.at < b.at));
}
