/**
 * The frames of one chunk's lines, made of its bytes without a look at each in JavaScript: what their ids differ in is written over, and
 * a line is taken for Latin-1, in which a letter is a byte, so that it is found, escaped and written by V8 at its own speed.
 */
import { RADIX } from '../event-stream/cursor.ts';
import type { LineEmission } from '../event-stream/emission.ts';
import type { Scratch } from './scratch.ts';

/** Of base64: so many bytes are so many letters. */
const GROUP_BYTES = 3;
const GROUP_LETTERS = 4;
const LETTERS = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
const ID = 'id: ';
const CARRIAGE_RETURN = 0x0d;
const DIGITS = Buffer.from('0123456789abcdefghijklmnopqrstuvwxyz');
const NOTHING = Buffer.alloc(0);
/** Of one byte in JSON. */
const ESCAPED_BYTES_MAX = 6;
const QUOTES = 2;

/** Those of its lines from `first` on. `around`: the texts before and behind the number of lines in their cursors; `number`: of the first. */
export function writeLineFrames(
  out: Scratch,
  emission: LineEmission,
  first: number,
  around: readonly [before: string, behind: string],
  number: number,
): void {
  const { bytes, envelope, count, event } = emission;
  const head = new FrameHead(around, `\nevent: ${event}\ndata: ${envelope.head}`, number);
  const tail = Buffer.from(`${envelope.tail}\n\n`);
  const from = emission.offsetOf(first);
  // A letter for each byte: what JSON escapes is below 0x80, the others are written as they were.
  const text = bytes.toString('latin1', from);
  // As many as there can be: the number of lines may take a letter more in the middle of them.
  const frame = head.bytes.length + GROUP_LETTERS + QUOTES + tail.length;
  const target = out.withRoom((count - first) * frame + ESCAPED_BYTES_MAX * text.length);
  let at = out.length;
  let begin = 0;
  for (let line = first; line < count; line += 1) {
    if (line > first) head.advance();
    target.set(head.bytes, at);
    at += head.bytes.length;
    const lineFeed = text.indexOf('\n', begin);
    const end = lineFeed < 0 ? text.length : lineFeed;
    // Of its end, which is not shown.
    const isCrlf = lineFeed > begin && text.charCodeAt(end - 1) === CARRIAGE_RETURN;
    at += target.write(JSON.stringify(text.slice(begin, isCrlf ? end - 1 : end)), at, 'latin1');
    begin = end + 1;
    target.set(tail, at);
    at += tail.length;
  }
  out.length = at;
}

/** What stands before a line. The number of lines in its cursor is counted on in it, in as few letters as differ. */
class FrameHead {
  bytes: Buffer = NOTHING;
  readonly #around: readonly [before: string, behind: string];
  readonly #rest: string;
  #number: number;
  /** The first number that takes a digit more. */
  #longerFrom = 0;
  /** Those groups of the cursor's bytes that have its digits in them, before they are encoded. */
  #groups: Buffer = NOTHING;
  #firstDigit = 0;
  #lastDigit = 0;
  #letters = 0;

  /** `rest`: what follows the id. */
  constructor(around: readonly [before: string, behind: string], rest: string, number: number) {
    this.#around = around;
    this.#rest = rest;
    this.#number = number;
    this.#encode();
  }

  /** To the next line. */
  advance(): void {
    this.#number += 1;
    if (this.#number === this.#longerFrom) this.#encode();
    else this.#writeDigits();
  }

  #encode(): void {
    const [before, behind] = this.#around;
    const digits = this.#number.toString(RADIX);
    const cursor = before + digits + behind;
    this.bytes = Buffer.from(`${ID}${Buffer.from(cursor, 'latin1').toString('base64url')}${this.#rest}`);
    this.#longerFrom = RADIX ** digits.length;
    const from = before.length - (before.length % GROUP_BYTES);
    const length = Math.ceil((before.length - from + digits.length) / GROUP_BYTES) * GROUP_BYTES;
    this.#groups = Buffer.from(cursor.slice(from, from + length), 'latin1');
    this.#firstDigit = before.length - from;
    this.#lastDigit = this.#firstDigit + digits.length - 1;
    this.#letters = ID.length + (from / GROUP_BYTES) * GROUP_LETTERS;
  }

  #writeDigits(): void {
    const groups = this.#groups;
    let rest = this.#number;
    for (let at = this.#lastDigit; at >= this.#firstDigit; at -= 1) {
      groups[at] = DIGITS[rest % RADIX] as number;
      rest = Math.floor(rest / RADIX);
    }
    let to = this.#letters;
    for (let at = 0; at < groups.length; at += GROUP_BYTES) {
      const group = ((groups[at] as number) << 16) | ((groups[at + 1] as number) << 8) | (groups[at + 2] as number);
      this.bytes[to++] = LETTERS[group >> 18] as number;
      this.bytes[to++] = LETTERS[(group >> 12) & 63] as number;
      this.bytes[to++] = LETTERS[(group >> 6) & 63] as number;
      this.bytes[to++] = LETTERS[group & 63] as number;
    }
  }
}
