import { PIPELINE_LIMITS } from '../model/limits.ts';

/** A range of the file's text in UTF-16 units, `end` exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Turns offsets into lines and columns. Only made for a file that has problems, so a good file never pays for it. */
export class LineIndex {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) this.#starts.push(at + 1);
  }

  /** The line and column of an offset, both counted from 1. */
  position(offset: number): { line: number; column: number } {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 };
  }

  /** Where the line of an offset ends, its line break not included. */
  lineEnd(offset: number, text: string): number {
    const next = text.indexOf('\n', offset);
    return next === -1 ? text.length : next;
  }
}

/** The UTF-8 length of a text, counted no further than just beyond `max`. */
export function utf8Length(text: string, max: number = PIPELINE_LIMITS.textBytesMax): number {
  if (text.length > max || text.length * 3 <= max) return text.length;
  let bytes = 0;
  for (let at = 0; at < text.length && bytes <= max; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    // Each half of a surrogate pair counts 2 of the pair's 4 bytes.
    else if (unit >= 0xd800 && unit <= 0xdfff) bytes += 2;
    else bytes += 3;
  }
  return bytes;
}
