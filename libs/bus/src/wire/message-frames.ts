/**
 * What the broker sends, cut where its messages end, in as little memory as they are. The client would read each 64 KiB into memory of
 * their own, which any small message of them keeps, and copy a message that does not end in them twice more.
 *
 *  FRAMES-1 What is given is complete messages, in their order, in memory that nobody else writes to.
 *  FRAMES-2 A message of 16 KiB and more has its memory for itself.
 */

/** From here on a message is given alone. */
export const LARGE_BYTES = 16 * 1024;
/** Far above what a broker says in one: a list of all servers of a cluster. */
const LINE_BYTES_MAX = 1024 * 1024;
const LINE_FEED = 0x0a;
const ZERO = 0x30;
/** `MSG` and `HMSG`: what has bytes behind its line. The rest is lines alone. */
const WITH_BYTES = new Set(Buffer.from('MmHh'));
const LINE_END_BYTES = 2;
const NOTHING = Buffer.alloc(0);

export class MessageFrames {
  readonly #give: (frame: Uint8Array) => void;
  /** The beginning of a line. */
  #line: Buffer = NOTHING;
  /** A message that is not complete: as long as it will be. */
  #message: Buffer | undefined;
  #have = 0;

  constructor(give: (frame: Uint8Array) => void) {
    this.#give = give;
  }

  /** The bytes are valid during the call only. Throws a RangeError where a line has no end. */
  push(bytes: Buffer): void {
    let at = this.#message === undefined ? 0 : this.#fill(bytes, 0);
    if (this.#line.length > 0) at = this.#endLine(bytes);
    // Small ones that follow each other are given together.
    let given = at;
    while (at < bytes.length) {
      const end = bytes.indexOf(LINE_FEED, at) + 1;
      if (end === 0) break;
      const length = end - at + bytesBehind(bytes, at, end);
      if (length < LARGE_BYTES && at + length <= bytes.length) {
        at += length;
        continue;
      }
      this.#giveCopy(bytes.subarray(given, at));
      given = at = this.#begin(bytes, at, length);
    }
    this.#giveCopy(bytes.subarray(given, at));
    this.#keepLine(bytes.subarray(at));
  }

  #giveCopy(bytes: Buffer): void {
    if (bytes.length > 0) this.#give(Buffer.from(bytes));
  }

  #begin(bytes: Buffer, at: number, length: number): number {
    this.#message = Buffer.allocUnsafeSlow(length);
    this.#have = 0;
    return this.#fill(bytes, at);
  }

  /** Answers where what belongs to the message ends. */
  #fill(bytes: Buffer, at: number): number {
    const message = this.#message;
    if (message === undefined) return at;
    const end = Math.min(bytes.length, at + message.length - this.#have);
    message.set(bytes.subarray(at, end), this.#have);
    this.#have += end - at;
    if (this.#have === message.length) {
      this.#message = undefined;
      this.#give(message);
    }
    return end;
  }

  #endLine(bytes: Buffer): number {
    const end = bytes.indexOf(LINE_FEED) + 1;
    if (end === 0) return 0;
    const line = Buffer.concat([this.#line, bytes.subarray(0, end)]);
    this.#line = NOTHING;
    this.#begin(line, 0, line.length + bytesBehind(line, 0, line.length));
    return this.#fill(bytes, end);
  }

  #keepLine(rest: Buffer): void {
    if (rest.length === 0) return;
    if (this.#line.length + rest.length > LINE_BYTES_MAX)
      throw new RangeError('the broker sends a line without an end');
    this.#line = Buffer.concat([this.#line, rest]);
  }
}

/** The line is from `from` to `end`; its last word says how many bytes follow. */
function bytesBehind(bytes: Buffer, from: number, end: number): number {
  if (!WITH_BYTES.has(bytes[from] ?? 0)) return 0;
  let count = 0;
  let at = end - LINE_END_BYTES;
  while (at > from && !isDigit(bytes[at])) at -= 1;
  for (let unit = 1; at > from && isDigit(bytes[at]); unit *= 10, at -= 1) count += unit * ((bytes[at] ?? 0) - ZERO);
  return count + LINE_END_BYTES;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= ZERO + 9;
}
