/**
 * The memory of frames that are written: many of some 100 KiB each for a loud log. It is used again once nobody writes from it any
 * more, and is not left to the collector, which lets them come to more than a hundred megabytes before it looks.
 *
 *  FRAMEMEMORY-1 What is used again is read by nobody: who holds some lets go of it exactly once, and only when the kernel has it.
 *  FRAMEMEMORY-2 Whoever never lets go costs memory until the collector looks, and nothing else.
 */

/** One write of frames and the emission behind it. */
const BLOCK_BYTES = 128 * 1024;
/** Below this a block would be mostly empty. */
const SMALL_BYTES = 32 * 1024;
/** Of blocks that nobody uses: what two loud logs have under way. */
const FREE_MAX = 64;

const free: Buffer[] = [];

export class Frames {
  readonly bytes: Buffer;
  readonly #block: Buffer | undefined;
  #holders = 1;

  /** A copy, held once. */
  static of(bytes: Buffer): Frames {
    const isOfBlock = bytes.length >= SMALL_BYTES && bytes.length <= BLOCK_BYTES;
    const memory =
      (isOfBlock ? free.pop() : undefined) ?? Buffer.allocUnsafeSlow(isOfBlock ? BLOCK_BYTES : bytes.length);
    bytes.copy(memory);
    return new Frames(memory.subarray(0, bytes.length), isOfBlock ? memory : undefined);
  }

  private constructor(bytes: Buffer, block: Buffer | undefined) {
    this.bytes = bytes;
    this.#block = block;
  }

  hold(): void {
    this.#holders += 1;
  }

  readonly letGo = (): void => {
    this.#holders -= 1;
    if (this.#holders === 0 && this.#block !== undefined && free.length < FREE_MAX) free.push(this.#block);
  };
}
