/** A binary heap: the least value, by `before`, comes out first. For timers and for fair queues. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;
  readonly #placed: (item: T, at: number) => void;

  /** `placed`: told where each item stands whenever that changes, for who takes some out of the middle. */
  constructor(before: (a: T, b: T) => boolean, placed: (item: T, at: number) => void = () => undefined) {
    this.#before = before;
    this.#placed = placed;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  pop(): T | undefined {
    const first = this.#items[0];
    this.delete(0);
    return first;
  }

  /** The item that stands there. */
  delete(at: number): void {
    const items = this.#items;
    const last = items.pop();
    if (last === undefined || at >= items.length) return;
    if (at > 0 && this.#before(last, items[(at - 1) >> 1] as T)) this.#rise(last, at);
    else this.#sink(last, at);
  }

  #rise(item: T, at: number): void {
    const items = this.#items;
    let index = at;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#before(item, items[parent] as T)) break;
      this.#put(items[parent] as T, index);
      index = parent;
    }
    this.#put(item, index);
  }

  #sink(item: T, at: number): void {
    const items = this.#items;
    let index = at;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= items.length) break;
      if (child + 1 < items.length && this.#before(items[child + 1] as T, items[child] as T)) child += 1;
      if (!this.#before(items[child] as T, item)) break;
      this.#put(items[child] as T, index);
      index = child;
    }
    this.#put(item, index);
  }

  #put(item: T, at: number): void {
    this.#items[at] = item;
    this.#placed(item, at);
  }
}
