/** A set of a stream's sequences, a bit each: those of hours, of which most of a stretch are in it, take little. */
const BLOCK = 65_536;
/** 8 MiB, 67 million sequences that lie side by side. Beyond, the stretch that came first is forgotten. */
const BLOCKS_MAX = 1_024;

interface Block {
  readonly bits: Uint8Array;
  size: number;
}

export class SequenceSet {
  readonly #blocks = new Map<number, Block>();

  has(sequence: number): boolean {
    const block = this.#blocks.get(Math.floor(sequence / BLOCK));
    return block !== undefined && isSet(block, sequence % BLOCK);
  }

  add(sequence: number): void {
    const number = Math.floor(sequence / BLOCK);
    const block = this.#blocks.get(number) ?? this.#newBlock(number);
    const at = sequence % BLOCK;
    if (isSet(block, at)) return;
    block.bits[at >> 3] = byteAt(block, at) | (1 << (at & 7));
    block.size += 1;
  }

  delete(sequence: number): void {
    const number = Math.floor(sequence / BLOCK);
    const block = this.#blocks.get(number);
    const at = sequence % BLOCK;
    if (block === undefined || !isSet(block, at)) return;
    block.bits[at >> 3] = byteAt(block, at) & ~(1 << (at & 7));
    block.size -= 1;
    if (block.size === 0) this.#blocks.delete(number);
  }

  /** The first from there on that is in it; null: there is none. */
  next(from: number): number | null {
    const own = Math.floor(from / BLOCK);
    const near = this.#nextIn(own, from % BLOCK);
    if (near !== null) return near;
    const later = Math.min(...[...this.#blocks.keys()].filter((number) => number > own));
    return later === Infinity ? null : this.#nextIn(later, 0);
  }

  /** Whatever is not asked for any more is given back by whole blocks. */
  forgetBefore(sequence: number): void {
    const least = Math.floor(sequence / BLOCK);
    for (const number of this.#blocks.keys()) if (number < least) this.#blocks.delete(number);
  }

  clear(): void {
    this.#blocks.clear();
  }

  #nextIn(number: number, from: number): number | null {
    const block = this.#blocks.get(number);
    for (let at = from; block !== undefined && at < BLOCK; at += 1) {
      if (at % 8 === 0 && byteAt(block, at) === 0) at += 7;
      else if (isSet(block, at)) return number * BLOCK + at;
    }
    return null;
  }

  #newBlock(number: number): Block {
    const [first] = this.#blocks.keys();
    if (first !== undefined && this.#blocks.size >= BLOCKS_MAX) this.#blocks.delete(first);
    const block = { bits: new Uint8Array(BLOCK / 8), size: 0 };
    this.#blocks.set(number, block);
    return block;
  }
}

function isSet(block: Block, at: number): boolean {
  return (byteAt(block, at) & (1 << (at & 7))) !== 0;
}

function byteAt({ bits }: Block, at: number): number {
  return bits[at >> 3] ?? 0;
}
