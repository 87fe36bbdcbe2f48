/**
 * Short forms of stages' names for a column of a terminal. A name that fits stands as it is; of a longer one as much as
 * fits, from both ends, for the expansions of a matrix differ at theirs.
 *
 *  STAGELABELS-1 Two stages never have the same label.
 */
import { cellsOf, cutMiddle, printableText } from './printable-text.ts';

export class StageLabels {
  readonly #cellsMax: number;
  readonly #labels = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** By what names are cut to, the next number that tells one of them apart. */
  readonly #marked = new Map<string, number>();

  /** Of the names known beforehand those that fit have their labels before a shortened one could take them. */
  constructor(names: readonly string[], cellsMax: number) {
    this.#cellsMax = cellsMax;
    for (const name of names) {
      const text = printableText(name);
      if (cellsOf(text) <= cellsMax && !this.#taken.has(text)) this.#take(name, text);
    }
    for (const name of names) this.labelOf(name);
  }

  labelOf(name: string): string {
    return this.#labels.get(name) ?? this.#take(name, this.#free(printableText(name)));
  }

  /** Of the widest label so far. */
  get cells(): number {
    return Math.max(0, ...[...this.#labels.values()].map(cellsOf));
  }

  #take(name: string, label: string): string {
    this.#labels.set(name, label);
    this.#taken.add(label);
    return label;
  }

  #free(text: string): string {
    const values = valuesOnly(text);
    for (const candidate of [text, values]) {
      if (cellsOf(candidate) <= this.#cellsMax && !this.#taken.has(candidate)) return candidate;
    }
    const cut = cutMiddle(values, this.#cellsMax);
    let label = cut;
    // Thousands may be cut to the same: each goes on where the one before it has found a place.
    for (let number = this.#marked.get(cut) ?? 2; this.#taken.has(label); number += 1) {
      const mark = `~${number}`;
      label = `${cutMiddle(values, this.#cellsMax - mark.length)}${mark}`;
      this.#marked.set(cut, number + 1);
    }
    return label;
  }
}

/** `test (node=24, os=linux)` without its axes' names: `test (24, linux)`. */
function valuesOnly(text: string): string {
  return text.replace(/[(,] ?[^\s=(),]+=/gu, (start) => start.replace(/[^\s=(),]+=$/u, ''));
}
