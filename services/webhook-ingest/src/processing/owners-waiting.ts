/** How much waits of each owner, and of all together, put together from the lanes in which it waits. */

export interface Waiting {
  readonly deliveries: number;
  readonly bytes: number;
}

export const NOTHING_WAITS: Waiting = { deliveries: 0, bytes: 0 };

type Sum = { -readonly [K in keyof Waiting]: number };

interface Owner extends Sum {
  lanes: number;
}

export class OwnersWaiting {
  readonly #byOwner = new Map<string, Owner>();
  readonly #all: Sum = { ...NOTHING_WAITS };

  get all(): Waiting {
    return this.#all;
  }

  of(owner: string): Waiting {
    return this.#byOwner.get(owner) ?? NOTHING_WAITS;
  }

  /** An owner has a lane more, in which nothing waits yet. */
  begin(owner: string): void {
    const its = this.#byOwner.get(owner) ?? { lanes: 0, ...NOTHING_WAITS };
    its.lanes += 1;
    this.#byOwner.set(owner, its);
  }

  /** In one of the owner's lanes. */
  changed(owner: string, before: Waiting, now: Waiting): void {
    const its = this.#byOwner.get(owner);
    if (its === undefined) return;
    add(its, before, now);
    add(this.#all, before, now);
  }

  /** In one of the owner's lanes nothing waits any more. */
  end(owner: string, before: Waiting): void {
    this.changed(owner, before, NOTHING_WAITS);
    const its = this.#byOwner.get(owner);
    if (its === undefined) return;
    its.lanes -= 1;
    if (its.lanes === 0) this.#byOwner.delete(owner);
  }
}

function add(sum: Sum, before: Waiting, now: Waiting): void {
  sum.deliveries += now.deliveries - before.deliveries;
  sum.bytes += now.bytes - before.bytes;
}
