/** Copies a script and writes a reference to a variable in the place of each of its marks, in order. */

/** The quoting at a place: none, double quotes (or a here-document), single quotes. */
export type Place = 'plain' | 'double' | 'single';

export class ReferenceWriter {
  readonly refusals = new Map<number, string>();
  readonly #text: string;
  readonly #names: readonly string[];
  readonly #out: string[] = [];
  #copied = 0;
  #index = 0;

  constructor(text: string, names: readonly string[]) {
    this.#text = text;
    this.#names = names;
  }

  /** The index of the next mark. */
  get index(): number {
    return this.#index;
  }

  /** Writes the next reference in the place of the mark at `at`. */
  write(at: number, place: Place): void {
    const reference = `\${${this.#names[this.#index] ?? ''}}`;
    this.#replace(at, place === 'double' ? reference : place === 'plain' ? `"${reference}"` : `'"${reference}"'`);
  }

  /** Leaves the next mark out. */
  drop(at: number): void {
    this.#replace(at, '');
  }

  /** Notes why an expression cannot stand where it does; the first reason stays. */
  refuse(index: number, reason: string): void {
    if (!this.refusals.has(index)) this.refusals.set(index, reason);
  }

  refuseAll(reason: string): void {
    for (let index = 0; index < this.#names.length; index++) this.refuse(index, reason);
  }

  script(): string {
    return [...this.#out, this.#text.slice(this.#copied)].join('');
  }

  #replace(at: number, reference: string): void {
    this.#index += 1;
    this.#out.push(this.#text.slice(this.#copied, at), reference);
    this.#copied = at + 1;
  }
}
