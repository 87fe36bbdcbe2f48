/** Virtual time: what is to happen, in order of its time and then of its planning. Milliseconds since the world began. */

interface Planned {
  readonly at: number;
  readonly order: number;
  readonly task: () => void;
}

export class Timeline {
  now = 0;
  #order = 0;
  readonly #heap: Planned[] = [];

  after(delayMs: number, task: () => void): void {
    const planned = { at: this.now + delayMs, order: this.#order++, task };
    const heap = this.#heap;
    let index = heap.length;
    heap.push(planned);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(planned, heap[parent] as Planned)) break;
      heap[index] = heap[parent] as Planned;
      index = parent;
    }
    heap[index] = planned;
  }

  /** Takes the next task out and moves the time on to it; undefined: nothing is planned. */
  next(): (() => void) | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return undefined;
    if (heap.length > 0) {
      let index = 0;
      for (;;) {
        let child = 2 * index + 1;
        if (child >= heap.length) break;
        if (child + 1 < heap.length && isBefore(heap[child + 1] as Planned, heap[child] as Planned)) child += 1;
        if (!isBefore(heap[child] as Planned, last)) break;
        heap[index] = heap[child] as Planned;
        index = child;
      }
      heap[index] = last;
    }
    this.now = first.at;
    return first.task;
  }
}

function isBefore(a: Planned, b: Planned): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at;
}
