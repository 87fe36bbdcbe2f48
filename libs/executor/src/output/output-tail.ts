/** The last lines of a long output, as many as fit: the oldest make room for new ones. Remarks are never dropped. */
import type { OutputStreamName } from '../contract/port.ts';

export interface OutputPiece {
  readonly stream: OutputStreamName;
  /** Whole lines. */
  readonly lines: Uint8Array;
}

/** A piece and the memory that it lies in. */
interface KeptPiece extends OutputPiece {
  readonly slab: Buffer;
}

const LINE_FEED = 0x0a;
/** Memory is taken in blocks of so much, and used again: a fast output would leave gigabytes for the garbage collector. */
const SLAB_BYTES = 128 * 1024;
const FREE_SLABS_MAX = 4;
/** Short ones of one stream are joined up to this, so that many short lines cost little more than their bytes. */
const JOINED_BYTES_MAX = 4 * 1024;
/** Of lines that change between the streams each is a piece of its own: more than so many are too many, whatever their bytes. */
const PIECES_MAX = 65_536;

export class OutputTail {
  readonly #bytesMax: number;
  #pieces: KeptPiece[] = [];
  #slab: Buffer = Buffer.alloc(0);
  #used = 0;
  readonly #free: Buffer[] = [];
  #first = 0;
  /** Of the stage's own output. */
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Answers the remarks that stand before all that is left now, and whether output was dropped. */
  push(
    stream: OutputStreamName,
    lines: Uint8Array,
  ): { readonly remarks: readonly OutputPiece[]; readonly dropped: boolean } {
    this.#append(stream, lines);
    if (stream !== 'system') this.#bytes += lines.length;
    const remarks: OutputPiece[] = [];
    let dropped = false;
    while (this.#bytes > this.#bytesMax || this.#pieces.length - this.#first > PIECES_MAX) {
      const oldest = this.#pieces[this.#first];
      if (oldest === undefined) break;
      if (oldest.stream === 'system') {
        remarks.push(oldest);
        this.#dropFirst();
      } else {
        this.#shorten(oldest);
        dropped = true;
      }
    }
    this.#compact();
    return { remarks, dropped };
  }

  /** All that is kept, the oldest first; nothing may be pushed before it has been read, for it is empty afterwards. */
  take(): readonly OutputPiece[] {
    const pieces = this.#pieces.slice(this.#first);
    this.#pieces = [];
    this.#first = 0;
    this.#bytes = 0;
    this.#slab = Buffer.alloc(0);
    this.#used = 0;
    return pieces;
  }

  #append(stream: OutputStreamName, lines: Uint8Array): void {
    const last = this.#pieces.at(-1);
    this.#makeRoom(lines.length);
    const slab = this.#slab;
    slab.set(lines, this.#used);
    const joined =
      last?.stream === stream && last.slab === slab && this.#pieces.length > this.#first ? last.lines.length : Infinity;
    // What is in the same memory and of the same stream is right before it.
    const length = joined + lines.length <= JOINED_BYTES_MAX ? joined + lines.length : lines.length;
    if (length > lines.length) this.#pieces.pop();
    this.#used += lines.length;
    this.#pieces.push({ stream, slab, lines: slab.subarray(this.#used - length, this.#used) });
  }

  #makeRoom(bytes: number): void {
    if (this.#slab.length - this.#used >= bytes) return;
    this.#slab =
      bytes > SLAB_BYTES ? Buffer.allocUnsafeSlow(bytes) : (this.#free.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES));
    this.#used = 0;
  }

  #dropFirst(): void {
    const dropped = this.#pieces[this.#first]?.slab;
    this.#first += 1;
    const isFree = dropped !== this.#slab && dropped !== this.#pieces[this.#first]?.slab;
    if (isFree && dropped?.length === SLAB_BYTES && this.#free.length < FREE_SLABS_MAX) this.#free.push(dropped);
  }

  /** Drops as many whole lines of it as there are bytes too many, or all where there are too many pieces. */
  #shorten({ stream, lines, slab }: KeptPiece): void {
    const tooMany = this.#bytes - this.#bytesMax;
    const end = tooMany <= 0 || tooMany >= lines.length ? lines.length : lines.indexOf(LINE_FEED, tooMany - 1) + 1;
    this.#bytes -= end;
    if (end < lines.length) this.#pieces[this.#first] = { stream, slab, lines: lines.subarray(end) };
    else this.#dropFirst();
  }

  #compact(): void {
    if (this.#first < 1_024) return;
    this.#pieces = this.#pieces.slice(this.#first);
    this.#first = 0;
  }
}
