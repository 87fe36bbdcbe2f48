/** The last lines of a long output, as many as fit: the oldest make room for new ones. Remarks are never dropped. */
import type { OutputStreamName } from '../contract/port.ts';

export interface OutputPiece {
  readonly stream: OutputStreamName;
  /** Whole lines. */
  readonly lines: Uint8Array;
}

const LINE_FEED = 0x0a;
/** Short ones of one stream are joined up to this, so that many short lines cost little more than their bytes. */
const JOINED_BYTES_MAX = 4 * 1024;
/** Of lines that change between the streams each is a piece of its own: more than so many are too many, whatever their bytes. */
const PIECES_MAX = 65_536;

export class OutputTail {
  readonly #bytesMax: number;
  #pieces: OutputPiece[] = [];
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
        this.#first += 1;
      } else {
        this.#shorten(oldest);
        dropped = true;
      }
    }
    this.#compact();
    return { remarks, dropped };
  }

  /** All that is kept, the oldest first; it is empty afterwards. */
  take(): readonly OutputPiece[] {
    const pieces = this.#pieces.slice(this.#first);
    this.#pieces = [];
    this.#first = 0;
    this.#bytes = 0;
    return pieces;
  }

  #append(stream: OutputStreamName, lines: Uint8Array): void {
    const last = this.#pieces.at(-1);
    const isShort =
      last?.stream === stream &&
      this.#pieces.length > this.#first &&
      last.lines.length + lines.length <= JOINED_BYTES_MAX;
    if (isShort) this.#pieces[this.#pieces.length - 1] = { stream, lines: Buffer.concat([last.lines, lines]) };
    else this.#pieces.push({ stream, lines: Uint8Array.from(lines) });
  }

  /** Drops as many whole lines of it as there are bytes too many, or all where there are too many pieces. */
  #shorten({ stream, lines }: OutputPiece): void {
    const tooMany = this.#bytes - this.#bytesMax;
    const end = tooMany <= 0 || tooMany >= lines.length ? lines.length : lines.indexOf(LINE_FEED, tooMany - 1) + 1;
    this.#bytes -= end;
    if (end < lines.length) this.#pieces[this.#first] = { stream, lines: lines.subarray(end) };
    else this.#first += 1;
  }

  #compact(): void {
    if (this.#first < 1_024) return;
    this.#pieces = this.#pieces.slice(this.#first);
    this.#first = 0;
  }
}
