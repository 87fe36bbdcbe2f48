/**
 * Room that many share, in bytes or in places: each may hold a quarter of what is free, and `own` whatever others hold. So one alone has
 * much, none is shut out by others, and n of them together never hold more than `shared + n * own`.
 */
import { Counts } from './counts.ts';

export interface RoomBounds {
  readonly shared: number;
  readonly own: number;
}

const SHARE_OF_FREE = 1 / 4;

export class FairRoom {
  readonly #bounds: RoomBounds;
  readonly #held = new Counts();
  #all = 0;

  constructor(bounds: RoomBounds) {
    this.#bounds = bounds;
  }

  /** False: it is too much for now. Else it is held until it is given back. */
  take(who: string, more: number): boolean {
    const { shared, own } = this.#bounds;
    const held = this.#held.of(who) + more;
    if (held > own && held > (shared - this.#all) * SHARE_OF_FREE) return false;
    this.#held.add(who, more);
    this.#all += more;
    return true;
  }

  giveBack(who: string, amount: number): void {
    this.#held.add(who, -amount);
    this.#all -= amount;
  }
}
