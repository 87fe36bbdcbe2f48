/**
 * Output bytes to whole lines, in bounded memory. Bytes stay bytes: invalid UTF-8, NUL and lone carriage returns are kept
 * as they are. Only a line feed ends a line.
 */
import { withRoom } from './room.ts';

/** With its line feed a line fits the largest chunk (64 KiB), and so does a piece of a longer one with its mark. */
const LINE_MARK = Buffer.from(' …[line goes on]\n');
export const LINE_BYTES_MAX = 64 * 1024 - LINE_MARK.length;

const LINE_FEED = 0x0a;

/**
 * `take` gets one or more whole lines, each with its line feed and at most LINE_BYTES_MAX long without it; a longer line
 * comes in pieces, each but the last ending in a mark. What it gets is valid during the call only.
 */
export class LineSplitter {
  readonly #take: (lines: Uint8Array) => void;
  /** The line that has not ended yet; allocated for the first one. */
  #partial: Buffer | null = null;
  #length = 0;

  constructor(take: (lines: Uint8Array) => void) {
    this.#take = take;
  }

  push(bytes: Uint8Array): void {
    let rest = bytes;
    while (rest.length > 0) rest = this.#length === 0 ? this.#takeWhole(rest) : this.#complete(rest);
  }

  /** The last line, if it has no line feed, gets one. */
  end(): void {
    if (this.#length > 0) this.#complete(Uint8Array.of(LINE_FEED));
  }

  /** As many whole lines as stand at the beginning; answers what is left. */
  #takeWhole(bytes: Uint8Array): Uint8Array {
    const end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) return this.#complete(bytes);
    if (end - 1 <= LINE_BYTES_MAX) {
      // No line in here can be too long.
      this.#take(bytes.subarray(0, end));
      return end === bytes.length ? bytes.subarray(end) : this.#complete(bytes.subarray(end));
    }
    const firstEnd = bytes.indexOf(LINE_FEED);
    if (firstEnd > LINE_BYTES_MAX) return this.#complete(bytes);
    this.#take(bytes.subarray(0, firstEnd + 1));
    return bytes.subarray(firstEnd + 1);
  }

  /** Adds to the line that has not ended; answers what does not belong to it. */
  #complete(bytes: Uint8Array): Uint8Array {
    const found = bytes.indexOf(LINE_FEED);
    const content = found < 0 ? bytes.length : found;
    this.#partial = withRoom(
      this.#partial,
      this.#length,
      this.#length + content + 1,
      LINE_BYTES_MAX + LINE_MARK.length,
    );
    if (this.#length + content > LINE_BYTES_MAX) {
      const fits = LINE_BYTES_MAX - this.#length;
      this.#partial.set(bytes.subarray(0, fits), this.#length);
      this.#cut(this.#partial);
      return bytes.subarray(fits);
    }
    const used = found < 0 ? content : content + 1;
    this.#partial.set(bytes.subarray(0, used), this.#length);
    this.#length += used;
    if (found >= 0) {
      const length = this.#length;
      this.#length = 0;
      this.#take(this.#partial.subarray(0, length));
    }
    return bytes.subarray(used);
  }

  /** The buffer is full: a piece goes, without the beginning of a character that is not complete yet. */
  #cut(partial: Buffer): void {
    const end = wholeCharacters(partial, LINE_BYTES_MAX);
    const begun = Buffer.from(partial.subarray(end, LINE_BYTES_MAX));
    LINE_MARK.copy(partial, end);
    this.#take(partial.subarray(0, end + LINE_MARK.length));
    begun.copy(partial, 0);
    this.#length = begun.length;
  }
}

/** The largest end up to `length` that splits no UTF-8 sequence; `length` itself where the bytes are no UTF-8. */
function wholeCharacters(bytes: Uint8Array, length: number): number {
  for (let back = 1; back <= 3; back += 1) {
    const byte = bytes[length - back] ?? 0;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > back ? length - back : length;
  }
  return length;
}
