/** The last bytes of a stage's output, in bounded memory: a ring that is made when the first byte comes. */

const NEWLINE = 0x0a;
/** Most stages say little: the ring grows up to its bound instead of starting there. */
const FIRST_BYTES = 1024;

export class TailBuffer {
  readonly #bytesMax: number;
  #bytes: Buffer = Buffer.alloc(0);
  /** Of all bytes that came. */
  #total = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  push(bytes: Buffer): void {
    const kept = bytes.length > this.#bytesMax ? bytes.subarray(bytes.length - this.#bytesMax) : bytes;
    this.#total += bytes.length - kept.length;
    this.#grow(Math.min(this.#bytesMax, this.#total + kept.length));
    const at = this.#total % this.#bytesMax;
    const first = Math.min(kept.length, this.#bytesMax - at);
    kept.copy(this.#bytes, at, 0, first);
    kept.copy(this.#bytes, 0, first);
    this.#total += kept.length;
  }

  /** What is kept. Where the beginning is gone it starts at the first whole line, if there is one. */
  wholeLines(): { readonly bytes: Buffer; readonly truncated: boolean } {
    const { bytes, truncated } = this.#kept();
    if (!truncated) return { bytes, truncated };
    const lineEnd = bytes.indexOf(NEWLINE);
    return {
      bytes: lineEnd === -1 || lineEnd === bytes.length - 1 ? bytes : bytes.subarray(lineEnd + 1),
      truncated: true,
    };
  }

  /** As text; where the beginning is gone it starts with a whole character. */
  text(): { readonly text: string; readonly truncated: boolean } {
    const { bytes, truncated } = this.#kept();
    let from = 0;
    // The later bytes of a character are 10xxxxxx, three at most.
    if (truncated) while (from < 3 && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
    return { text: bytes.toString('utf8', from), truncated };
  }

  #kept(): { readonly bytes: Buffer; readonly truncated: boolean } {
    if (this.#total <= this.#bytesMax)
      return { bytes: Buffer.from(this.#bytes.subarray(0, this.#total)), truncated: false };
    const at = this.#total % this.#bytesMax;
    return { bytes: Buffer.concat([this.#bytes.subarray(at), this.#bytes.subarray(0, at)]), truncated: true };
  }

  #grow(needed: number): void {
    if (needed <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(
      Math.min(this.#bytesMax, Math.max(FIRST_BYTES, needed, this.#bytes.length * 2)),
    );
    this.#bytes.copy(larger);
    this.#bytes = larger;
  }
}
