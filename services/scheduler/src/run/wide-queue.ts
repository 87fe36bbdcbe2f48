/**
 * Very many things in the order in which they came, each once, any of which may leave: as a `Set`, but one that never enters all
 * of them anew in one turn because it is full (see `WideMap`). Each has a place, which knows its neighbours.
 */
import { WideMap } from './wide-map.ts';

interface Place<T> {
  readonly item: T;
  before: Place<T> | undefined;
  after: Place<T> | undefined;
}

export class WideQueue<T> implements Iterable<T> {
  readonly #places: WideMap<T, Place<T>>;
  #first: Place<T> | undefined;
  #last: Place<T> | undefined;

  /** `nameOf`: the same at all times. */
  constructor(nameOf: (item: T) => string) {
    this.#places = new WideMap(nameOf);
  }

  get size(): number {
    return this.#places.size;
  }

  has(item: T): boolean {
    return this.#places.has(item);
  }

  /** At the end; what is there stays where it is. */
  add(item: T): void {
    if (this.#places.has(item)) return;
    const place: Place<T> = { item, before: this.#last, after: undefined };
    this.#places.set(item, place);
    if (this.#last === undefined) this.#first = place;
    else this.#last.after = place;
    this.#last = place;
  }

  delete(item: T): void {
    const place = this.#places.get(item);
    if (place === undefined) return;
    this.#places.delete(item);
    const { before, after } = place;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
  }

  clear(): void {
    this.#places.clear();
    this.#first = undefined;
    this.#last = undefined;
  }

  /** The one that is at hand may leave meanwhile. */
  *[Symbol.iterator](): Generator<T, void> {
    for (let place = this.#first; place !== undefined; place = place.after) yield place.item;
  }
}
