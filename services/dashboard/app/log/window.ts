/** Which rows of very many are in view (PANE-1, PANE-2). Pure. */

/** Below what any browser of today can make an element high. */
const HEIGHT_MAX = 8_000_000;

export class Window {
  readonly #count: number;
  readonly #row: number;
  readonly #seen: number;

  constructor(count: number, rowHeight: number, seenHeight: number) {
    this.#count = count;
    this.#row = rowHeight;
    this.#seen = seenHeight;
  }

  /** Of the element that is scrolled. */
  get height(): number {
    return Math.min(HEIGHT_MAX, this.#full);
  }

  /** From 1; `offset` is where the first of them stands in the element. */
  range(
    scrollTop: number,
    overscan: number,
  ): { readonly first: number; readonly last: number; readonly offset: number } {
    const top = this.#toFull(Math.max(0, Math.min(scrollTop, this.height - this.#seen)));
    const first = Math.max(1, Math.floor(top / this.#row) + 1 - overscan);
    const last = Math.min(this.#count, Math.ceil((top + this.#seen) / this.#row) + overscan);
    return { first, last, offset: scrollTop + (first - 1) * this.#row - top };
  }

  /** Where to scroll so that the line stands in the middle. */
  scrollOf(number: number): number {
    const top = (number - 0.5) * this.#row - this.#seen / 2;
    return this.#fromFull(Math.max(0, Math.min(top, this.#full - this.#seen)));
  }

  get #full(): number {
    return this.#count * this.#row;
  }

  #toFull(scrollTop: number): number {
    return this.#full <= HEIGHT_MAX ? scrollTop : scrollTop * ((this.#full - this.#seen) / (HEIGHT_MAX - this.#seen));
  }

  #fromFull(top: number): number {
    return this.#full <= HEIGHT_MAX ? top : top / ((this.#full - this.#seen) / (HEIGHT_MAX - this.#seen));
  }
}
