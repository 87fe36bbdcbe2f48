/**
 * Room in memory that many share, in bytes: each may hold a quarter of what is free, and `ownBytes` whatever others hold. So one alone has
 * much, none is shut out by others, and n of them together never hold more than `sharedBytes + n * ownBytes`.
 */
export interface RoomBounds {
  readonly sharedBytes: number;
  readonly ownBytes: number;
}

const SHARE_OF_FREE = 1 / 4;

export class FairRoom {
  readonly #bounds: RoomBounds;
  readonly #held = new Map<string, number>();
  #bytes = 0;

  constructor(bounds: RoomBounds) {
    this.#bounds = bounds;
  }

  /** False: it is too much for now. Else it is held until it is given back. */
  take(who: string, bytes: number): boolean {
    const { sharedBytes, ownBytes } = this.#bounds;
    const held = (this.#held.get(who) ?? 0) + bytes;
    if (held > ownBytes && held > (sharedBytes - this.#bytes) * SHARE_OF_FREE) return false;
    this.#held.set(who, held);
    this.#bytes += bytes;
    return true;
  }

  giveBack(who: string, bytes: number): void {
    const left = (this.#held.get(who) ?? 0) - bytes;
    if (left > 0) this.#held.set(who, left);
    else this.#held.delete(who);
    this.#bytes -= bytes;
  }
}
