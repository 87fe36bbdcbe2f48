/** A place where bytes are put behind each other. It grows with what is put there, and is used again. */

/** What it keeps when it is cleared: enough for a write of frames and a chunk of lines behind it, whatever is to be escaped in them. */
const KEPT_BYTES = 512 * 1024;
/** Of UTF-8, for each unit of a string. */
const UNIT_BYTES_MAX = 3;

export class Scratch {
  #buffer = Buffer.allocUnsafeSlow(KEPT_BYTES);
  length = 0;

  /** Valid until it is written to again. */
  get written(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }

  clear(): void {
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = Buffer.allocUnsafeSlow(KEPT_BYTES);
    this.length = 0;
  }

  /** The whole of it, with room for so many bytes behind those that are there. Whoever writes them moves `length`. */
  withRoom(bytes: number): Buffer {
    const wanted = this.length + bytes;
    if (wanted > this.#buffer.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(wanted, 2 * this.#buffer.length));
      this.#buffer.copy(grown, 0, 0, this.length);
      this.#buffer = grown;
    }
    return this.#buffer;
  }

  putText(text: string): void {
    this.length += this.withRoom(UNIT_BYTES_MAX * text.length).write(text, this.length);
  }
}
