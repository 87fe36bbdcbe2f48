/**
 * The lines of one stage: all of them, by number, in little memory. Pure.
 *
 *  LINES-1 A full block of lines is one text, cut again when a line of it is asked for: a million lines are a thousand texts.
 *  LINES-2 Numbers count from 1 and stay: where the oldest lines are let go, the others keep theirs.
 */

export interface Line {
  readonly number: number;
  readonly text: string;
  readonly stream: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

interface Block {
  readonly first: number;
  readonly text: string;
  /** Where each line begins in the text, and behind the last one where it ends. */
  readonly starts: Uint32Array;
  readonly at: Float64Array;
  readonly streams: Uint8Array;
}

const BLOCK_LINES = 1_000;
/** A block of long lines is closed before it has as many. */
const BLOCK_CHARS = 1024 * 1024;

export class LineStore {
  readonly #blocks: Block[] = [];
  #tail: Line[] = [];
  #tailChars = 0;
  readonly #streamNames: string[] = [];
  #count = 0;
  #chars = 0;

  /** The number of the last line; 0 while there is none. */
  get count(): number {
    return this.#count;
  }

  /** The number of the first line that is still there. */
  get first(): number {
    return this.#blocks[0]?.first ?? this.#tail[0]?.number ?? this.#count + 1;
  }

  get chars(): number {
    return this.#chars;
  }

  add(text: string, stream: string, at: number): void {
    this.#count += 1;
    this.#tail.push({ number: this.#count, text, stream, at });
    this.#tailChars += text.length;
    this.#chars += text.length;
    if (this.#tail.length >= BLOCK_LINES || this.#tailChars >= BLOCK_CHARS) this.#closeBlock();
  }

  line(number: number): Line | null {
    if (number < this.first || number > this.#count) return null;
    const inTail = this.#tail[0];
    if (inTail !== undefined && number >= inTail.number) return this.#tail[number - inTail.number] ?? null;
    const block = this.#blockOf(number);
    return block === undefined ? null : this.#lineOf(block, number - block.first);
  }

  /** Lets the oldest block go, that which is not full yet where there is no other; how many characters that were. */
  dropOldest(): number {
    if (this.#blocks.length === 0 && this.#tail.length > 0) this.#closeBlock();
    const block = this.#blocks.shift();
    this.#chars -= block?.text.length ?? 0;
    return block?.text.length ?? 0;
  }

  /** The numbers of the lines that have `needle`, in lower case, in them; a page of them at a time, so that others have their turn. */
  *find(needle: string): Generator<number[]> {
    for (const block of this.#blocks) yield this.#inBlock(block, needle);
    yield this.#tail.filter(({ text }) => text.toLowerCase().includes(needle)).map(({ number }) => number);
  }

  #inBlock(block: Block, needle: string): number[] {
    const text = block.text.toLowerCase();
    // A few letters change their length in lower case: then the places are not those of the text.
    if (text.length !== block.text.length)
      return Array.from({ length: block.starts.length - 1 }, (_, index) => this.#lineOf(block, index))
        .filter((line) => line.text.toLowerCase().includes(needle))
        .map(({ number }) => number);
    const found: number[] = [];
    let index = 0;
    for (let at = text.indexOf(needle); at >= 0;) {
      while ((block.starts[index + 1] ?? Infinity) <= at) index += 1;
      const end = block.starts[index + 1] ?? text.length;
      if (at + needle.length <= end) {
        found.push(block.first + index);
        at = text.indexOf(needle, end);
      } else at = text.indexOf(needle, at + 1);
    }
    return found;
  }

  #closeBlock(): void {
    const lines = this.#tail;
    const starts = new Uint32Array(lines.length + 1);
    const [at, streams] = [new Float64Array(lines.length), new Uint8Array(lines.length)];
    lines.forEach((line, index) => {
      starts[index + 1] = (starts[index] ?? 0) + line.text.length;
      at[index] = line.at;
      streams[index] = this.#streamNumber(line.stream);
    });
    this.#blocks.push({
      first: lines[0]?.number ?? 1,
      text: lines.map(({ text }) => text).join(''),
      starts,
      at,
      streams,
    });
    this.#tail = [];
    this.#tailChars = 0;
  }

  #blockOf(number: number): Block | undefined {
    let [low, high] = [0, this.#blocks.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#blocks[middle]?.first ?? 0) <= number) low = middle;
      else high = middle - 1;
    }
    return this.#blocks[low];
  }

  #lineOf(block: Block, index: number): Line {
    return {
      number: block.first + index,
      text: block.text.slice(block.starts[index], block.starts[index + 1]),
      stream: this.#streamNames[block.streams[index] ?? 0] ?? '',
      at: block.at[index] ?? 0,
    };
  }

  #streamNumber(name: string): number {
    const known = this.#streamNames.indexOf(name);
    if (known >= 0) return known;
    // More than a stage can have services beside it; what is beyond shares the last name.
    if (this.#streamNames.length < 255) this.#streamNames.push(name);
    return this.#streamNames.length - 1;
  }
}
