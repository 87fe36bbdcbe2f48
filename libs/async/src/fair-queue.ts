/** A queue of queues: each key has its own, bounded, and they are served in turn, so that nobody's items wait for all of another's. */

export class FairQueue<Item> {
  readonly #byKey = new Map<string, Item[]>();
  readonly #perKeyMax: number;
  readonly #keysMax: number;
  #size = 0;

  constructor(perKeyMax: number, keysMax: number) {
    this.#perKeyMax = perKeyMax;
    this.#keysMax = keysMax;
  }

  get size(): number {
    return this.#size;
  }

  /** False: there is no room for it. */
  add(key: string, item: Item): boolean {
    const items = this.#byKey.get(key);
    if (items === undefined) {
      if (this.#byKey.size >= this.#keysMax) return false;
      this.#byKey.set(key, [item]);
      this.#size += 1;
      return true;
    }
    if (items.length >= this.#perKeyMax) return false;
    items.push(item);
    this.#size += 1;
    return true;
  }

  /** The first item of the key whose turn it is; that key's next turn comes after all others'. Keys that may not have one now keep theirs. */
  next(mayHave: (key: string) => boolean = () => true): Item | undefined {
    for (const [key, items] of this.#byKey) {
      if (!mayHave(key)) continue;
      const item = items.shift();
      this.#size -= 1;
      this.#byKey.delete(key);
      if (items.length > 0) this.#byKey.set(key, items);
      return item;
    }
    return undefined;
  }

  /** False: it is not there any more. */
  remove(key: string, item: Item): boolean {
    const items = this.#byKey.get(key);
    const at = items?.indexOf(item) ?? -1;
    if (items === undefined || at === -1) return false;
    items.splice(at, 1);
    this.#size -= 1;
    if (items.length === 0) this.#byKey.delete(key);
    return true;
  }
}
