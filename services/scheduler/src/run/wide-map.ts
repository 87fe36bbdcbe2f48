/**
 * A map for very many entries that grows a part at a time: one `Map` of a hundred thousand enters all of them anew in a table twice
 * as large in the one turn in which it is full, which takes tens of milliseconds where its keys are no longer in any cache.
 *
 *  WIDEMAP-1 An entry stands in the part that its key's name says, and nowhere else. The order of all is nobody's business.
 */

/** A part of a map of 100,000 has 1,600 entries: its growth takes less than a millisecond. */
const PARTS = 64;
/** The ends of ids of runs are random. */
const NAME_LENGTH = 4;

export class WideMap<K, V> implements ReadonlyMap<K, V> {
  readonly #parts: readonly Map<K, V>[] = Array.from({ length: PARTS }, () => new Map<K, V>());
  readonly #nameOf: (key: K) => string;
  #size = 0;

  /** `nameOf`: the same at all times. */
  constructor(nameOf: (key: K) => string) {
    this.#nameOf = nameOf;
  }

  get size(): number {
    return this.#size;
  }

  /** Entries of its largest part, for those who check that they are spread. */
  get largestPart(): number {
    return Math.max(...this.#parts.map((part) => part.size));
  }

  get(key: K): V | undefined {
    return this.#partOf(key).get(key);
  }

  has(key: K): boolean {
    return this.#partOf(key).has(key);
  }

  set(key: K, value: V): this {
    const part = this.#partOf(key);
    this.#size -= part.size;
    part.set(key, value);
    this.#size += part.size;
    return this;
  }

  delete(key: K): boolean {
    const wasThere = this.#partOf(key).delete(key);
    if (wasThere) this.#size -= 1;
    return wasThere;
  }

  clear(): void {
    for (const part of this.#parts) part.clear();
    this.#size = 0;
  }

  *entries(): MapIterator<[K, V]> {
    for (const part of this.#parts) if (part.size > 0) yield* part;
  }

  *keys(): MapIterator<K> {
    for (const part of this.#parts) if (part.size > 0) yield* part.keys();
  }

  *values(): MapIterator<V> {
    for (const part of this.#parts) if (part.size > 0) yield* part.values();
  }

  [Symbol.iterator](): MapIterator<[K, V]> {
    return this.entries();
  }

  forEach(each: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this) each(value, key, this);
  }

  #partOf(key: K): Map<K, V> {
    const name = this.#nameOf(key);
    let hash = 0;
    for (let index = Math.max(0, name.length - NAME_LENGTH); index < name.length; index++)
      hash = (31 * hash + name.charCodeAt(index)) % PARTS;
    return this.#parts[hash] as Map<K, V>;
  }
}
