/**
 * Where values go that are printed: through the pipes of a command line, into the commands of a `{ }`, `while` or `( )` that
 * reads from one, and into `>( )`. A command line is one pipeline; those inside of its compounds and substitutions are
 * lines of their own with this one around them.
 *
 * LINE-1. A value flows from where it stands to everything that stands behind it in the same line, or is fed by a line
 * around it.
 * LINE-2. Everything is noted while the script is scanned and looked at when its end is known, for the body of a
 * here-document comes after the commands that read it.
 */

/** One simple command's words, or all commands of a line inside. */
type Reader = readonly string[] | CommandLine;

export class CommandLine {
  readonly #outer: CommandLine | undefined;
  readonly #expressions: { readonly index: number; readonly position: number }[] = [];
  readonly #readers: { readonly reader: Reader; readonly position: number }[] = [];
  readonly #members: (readonly string[])[] = [];
  /** Where each of the members stands. */
  readonly #places: number[] = [];
  /** How many pipes stand before the present command. */
  #position = 0;

  constructor(outer: CommandLine | undefined) {
    this.#outer = outer;
  }

  get position(): number {
    return this.#position;
  }

  /** A `|` has been read. */
  pipe(): void {
    this.#position += 1;
  }

  /** A value stands in the line: at its present command, or (in a here-document) at one before. */
  addExpression(index: number, position = this.#position): void {
    this.#expressions.push({ index, position });
    this.#outer?.addExpression(index);
  }

  addMember(words: readonly string[]): void {
    this.#members.push(words);
    this.#places.push(this.#position);
    this.#outer?.addMember(words);
  }

  /** What reads from the pipe before it. */
  addReader(reader: Reader): void {
    this.#readers.push({ reader, position: this.#position });
  }

  /** What reads what the present command writes, as `>( )` does. */
  addSink(reader: CommandLine): void {
    this.#readers.push({ reader, position: this.#position + 0.5 });
  }

  /** All commands that read from a pipe of this line. */
  *readers(): Generator<readonly string[]> {
    for (const { reader } of this.#readers) yield* wordsOf(reader);
  }

  /** Each command that reads from a pipe, with the values that flow to it: of thousands of pipes each command is judged once. */
  *flows(): Generator<{ readonly words: readonly string[]; readonly indexes: () => number[] }> {
    for (const { reader, position } of this.#readers) {
      const indexes = (): number[] =>
        this.#expressions.filter((expression) => expression.position < position).map(({ index }) => index);
      for (const words of wordsOf(reader)) yield { words, indexes };
    }
  }

  /** The commands that read what commands of a kind print. */
  *readersBehind(isOfKind: (words: readonly string[]) => boolean): Generator<readonly string[]> {
    // What is behind any of them is behind the first.
    const first = this.#firstPlaceOf(isOfKind);
    for (const { reader, position } of this.#readers) if (first < position) yield* wordsOf(reader);
  }

  /** Of a compound all members stand at its place, so places need not be in order. */
  #firstPlaceOf(isOfKind: (words: readonly string[]) => boolean): number {
    let first = Infinity;
    for (const [index, place] of this.#places.entries())
      if (place < first && isOfKind(this.#members[index] ?? [])) first = place;
    return first;
  }

  /** The commands inside. */
  get members(): readonly (readonly string[])[] {
    return this.#members;
  }
}

function wordsOf(reader: Reader): readonly (readonly string[])[] {
  return reader instanceof CommandLine ? reader.members : [reader];
}
