/**
 * What a partition offers to the dispatch, in its order. Nearly always it goes there at once; a take-over has a hundred thousand
 * runs to offer, which go some at a time, and what is offered meanwhile stands behind them.
 *
 *  OFFERED-1 What stood there when it was opened goes in the order in which it was queued, as it came to the owner before: a lane is first come
 *     first served, and a take-over has the runs in the order of their creation.
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
  /** OFFERED-1: what comes first is found as it goes; to put a hundred thousand in order at once would hold up all others. */
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
    for (const [order, ready] of this.#waiting.entries())
      this.#fromBefore.push({ ready, at: ready.since(0) ?? 0, order });
    this.#waiting = [];
  }

  add(ready: ReadyStages): void {
    if (this.#isOpen && !this.isBusy) this.#dispatch.offer(ready);
    else this.#waiting.push(ready);
  }

  /** The next ones. */
  goOn(): void {
    if (!this.#isOpen || !this.isBusy) return;
    for (let offered = 0; offered < OFFERS_AT_ONCE && this.isBusy; offered += 1) {
      const ready = this.#fromBefore.pop()?.ready ?? this.#waiting[this.#next++];
      if (ready !== undefined) this.#dispatch.offer(ready);
    }
    if (this.isBusy) return;
    this.#waiting = [];
    this.#next = 0;
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
