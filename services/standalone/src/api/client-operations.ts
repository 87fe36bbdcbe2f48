/**
 * Counts what a client asks of the broker, as its bytes pass by: WebSocket frames, and in them the lines of NATS' protocol. Owns where in
 * both it stands; changes no byte.
 *
 *  OPERATIONS-1 What it cannot read it does not guess at: the connection is to be cut. So nothing that the broker takes for several
 *     operations counts as fewer.
 */

/** A line of the protocol; the broker takes no longer one. */
const LINE_BYTES_MAX = 4_096;
/**
 * As clients write them, without the line feed. The broker reads more: behind a command and a space it takes a line feed for a part of the
 * arguments, and of a line with a carriage return within it forgets the last byte.
 */
const PLAIN_LINE = /^(?:P[IO]NG|(?:CONNECT|SUB|UNSUB|H?PUB)[ \t]+[^ \t\r][^\r]*)\r$/iu;
const LINE_FEED = 0x0a;
const MASKED = 0x80;
const RESERVED = 0x70;
const CONTROL = 0x08;

export class UnreadableOperation extends Error {}

export class ClientOperations {
  /** Of a frame's head, until it is whole. */
  #head: number[] = [];
  #mask: readonly number[] = [];
  /** Of the frame's payload, bytes that are still to come, and those that have come. */
  #left = 0;
  #at = 0;
  #isControl = false;
  #line = '';
  /** Of the payload of a publish, with the line end behind it. */
  #skip = 0;

  /** Throws `UnreadableOperation`. */
  count(bytes: Uint8Array): number {
    let operations = 0;
    for (let at = 0; at < bytes.length;) {
      if (this.#left === 0) {
        operations += this.#readHead(bytes[at] as number);
        at += 1;
        continue;
      }
      const taken = Math.min(this.#left, bytes.length - at);
      if (!this.#isControl) operations += this.#readPayload(bytes.subarray(at, at + taken));
      this.#at += taken;
      this.#left -= taken;
      at += taken;
    }
    return operations;
  }

  /** A frame is one, too: it may be empty. */
  #readHead(byte: number): number {
    const head = this.#head;
    head.push(byte);
    const [first = 0, second = 0] = head;
    if (head.length < 2) return 0;
    if ((first & RESERVED) !== 0 || (second & MASKED) === 0) throw new UnreadableOperation('a frame of no plain kind');
    const short = second & 0x7f;
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0;
    if (head.length < 2 + lengthBytes + 4) return 0;
    const length =
      lengthBytes === 0 ? short : head.slice(2, 2 + lengthBytes).reduce((sum, each) => sum * 256 + each, 0);
    if (!Number.isSafeInteger(length)) throw new UnreadableOperation('a frame without end');
    this.#mask = head.slice(2 + lengthBytes);
    this.#head = [];
    this.#left = length;
    this.#at = 0;
    this.#isControl = (first & CONTROL) !== 0;
    return 1;
  }

  #readPayload(bytes: Uint8Array): number {
    let operations = 0;
    for (let at = 0; at < bytes.length;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length - at);
        this.#skip -= skipped;
        at += skipped;
        continue;
      }
      const byte = (bytes[at] as number) ^ (this.#mask[(this.#at + at) % 4] as number);
      at += 1;
      if (byte !== LINE_FEED) {
        if (this.#line.length >= LINE_BYTES_MAX) throw new UnreadableOperation('a line without end');
        this.#line += String.fromCharCode(byte);
        continue;
      }
      operations += 1;
      this.#skip = payloadBytesOf(this.#line);
      this.#line = '';
    }
    return operations;
  }
}

/** Behind this line, with its line end. */
function payloadBytesOf(line: string): number {
  if (!PLAIN_LINE.test(line)) throw new UnreadableOperation('a line of no plain kind');
  if (!/^h?pub/iu.test(line)) return 0;
  const size =
    line
      .slice(0, -1)
      .split(/[ \t]+/u)
      .at(-1) ?? '';
  if (!/^\d{1,9}$/u.test(size)) throw new UnreadableOperation('a publish without a size');
  return Number(size) + 2;
}
