/**
 * The log of one attempt, put in the order of its bytes. It owns the chunks that came before their predecessors, and the
 * end of the text.
 *
 *  ATTEMPTLOG-1 A byte is emitted once: the bytes before `next` have been emitted, and bytes that come again are dropped.
 *  ATTEMPTLOG-2 Chunks that wait for a predecessor are bounded: beyond what a runner has in flight, it cannot come any more.
 */
import type { Chunk, OutputStream } from '@penstock/bus';
import { STAGE_TEXT_BYTES_MAX, type StageText } from '@penstock/run';

/** Some consecutive output of one stream. A gap is a piece of the stream `system`. */
export interface Piece {
  readonly stream: OutputStream;
  readonly output: Buffer;
  /** When its chunk was closed, milliseconds since 1970; undefined: it is a gap. */
  readonly at: number | undefined;
}

/** Twice the bytes that a runner may have unacknowledged. */
const WAITING_BYTES_MAX = 8 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

export class OrderedAttemptLog {
  readonly stage: string;
  readonly attempt: number;
  readonly runner: string;
  /** The version of its `stage_started`. */
  readonly version: number;
  /** Known once the attempt's result is known: what lies beyond is no part of the event stream. */
  end: number | undefined;
  /** Of an attempt that has ended without a result: the sequence of the mark that closes its log. */
  endSequence: number | undefined;
  /** Of the first mark that was seen in its log (P21). */
  markedAt: number | undefined;
  /** The event that ends it was emitted. */
  closed = false;
  #next = 0;
  #waiting: Chunk[] = [];
  #waitingBytes = 0;
  readonly #tail = new TailText();

  constructor(stage: string, attempt: number, runner: string, version: number) {
    this.stage = stage;
    this.attempt = attempt;
    this.runner = runner;
    this.version = version;
  }

  /** Whether how the attempt ended is known. */
  get hasEnd(): boolean {
    return this.end !== undefined || this.endSequence !== undefined;
  }

  /** Whether all bytes before the end were emitted; `handled` is the sequence of the last chunk of its runner that was. */
  isComplete(handled: number): boolean {
    return this.endSequence === undefined
      ? this.end === undefined || this.#next >= this.end
      : handled >= this.endSequence;
  }

  /** What can be emitted now that this chunk is there: nothing, itself, or also chunks that waited for it. */
  accept(chunk: Chunk): Piece[] {
    const pieces: Piece[] = [];
    if (chunk.offset <= this.#next) {
      this.#take(chunk, pieces);
      this.#takeWaiting(pieces);
    } else {
      this.#wait(chunk);
      while (this.#waitingBytes > WAITING_BYTES_MAX) this.#skipGap(pieces);
    }
    return pieces;
  }

  /** No more chunks will come: gives those that wait, with a piece of the stream `system` for each gap. */
  flush(): Piece[] {
    const pieces: Piece[] = [];
    while (this.#waiting.length > 0) this.#skipGap(pieces);
    if (this.end !== undefined && this.#next < this.end) this.#miss(this.end - this.#next, pieces);
    return pieces;
  }

  text(): StageText {
    return this.#tail.text();
  }

  /** Frees what only an open attempt needs. */
  close(): void {
    this.closed = true;
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#tail.clear();
  }

  #wait(chunk: Chunk): void {
    const index = this.#waiting.findIndex((other) => other.offset >= chunk.offset);
    const same = this.#waiting[index]?.offset === chunk.offset ? this.#waiting[index] : undefined;
    // What a runner says again after its restart may be cut into other chunks (P36).
    if (same !== undefined && same.output.length >= chunk.output.length) return;
    this.#waiting.splice(index < 0 ? this.#waiting.length : index, same === undefined ? 0 : 1, chunk);
    this.#waitingBytes += chunk.output.length - (same?.output.length ?? 0);
  }

  #takeWaiting(pieces: Piece[]): void {
    for (let first = this.#waiting[0]; first !== undefined && first.offset <= this.#next; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#waitingBytes -= first.output.length;
      this.#take(first, pieces);
    }
  }

  #skipGap(pieces: Piece[]): void {
    const first = this.#waiting[0];
    if (first === undefined) return;
    const reach = Math.min(first.offset, this.end ?? first.offset);
    if (reach > this.#next) this.#miss(reach - this.#next, pieces);
    if (first.offset > this.#next) {
      // It lies beyond the end, and so do all after it.
      this.#waiting = [];
      this.#waitingBytes = 0;
    } else {
      this.#takeWaiting(pieces);
    }
  }

  #miss(bytes: number, pieces: Piece[]): void {
    pieces.push(gapOf(bytes));
    this.#next += bytes;
    this.#tail.lack();
  }

  #take(chunk: Chunk, pieces: Piece[]): void {
    const end = Math.min(chunk.offset + chunk.output.length, this.end ?? Infinity);
    let partStart = chunk.offset;
    for (const [stream, bytes] of chunk.parts) {
      const from = Math.max(partStart, this.#next);
      const to = Math.min(partStart + bytes, end);
      if (from < to) {
        const output = Buffer.from(chunk.output.buffer, chunk.output.byteOffset + from - chunk.offset, to - from);
        this.#tail.push(output);
        pieces.push({ stream, output, at: chunk.at });
        this.#next = to;
      }
      partStart += bytes;
    }
  }
}

function gapOf(bytes: number): Piece {
  const output = Buffer.from(`[${bytes} bytes of this log are no longer available]\n`);
  return { stream: 'system', output, at: undefined };
}

/** The last 64 KiB of some text, as bytes. */
class TailText {
  /** Of up to twice as many bytes: what is kept moves to its beginning once for as many that have come. */
  #buffer: Buffer = NOTHING;
  #length = 0;
  #cut = false;

  /** The part is copied: it lies in memory of the connection, which is not to live for as long. */
  push(part: Buffer): void {
    if (part.length >= STAGE_TEXT_BYTES_MAX) this.#keep(0);
    else if (this.#length + part.length > 2 * STAGE_TEXT_BYTES_MAX) this.#keep(STAGE_TEXT_BYTES_MAX);
    const kept = part.subarray(Math.max(0, part.length - STAGE_TEXT_BYTES_MAX));
    this.#cut ||= kept.length < part.length;
    const length = this.#length + kept.length;
    if (length > this.#buffer.length) {
      const grown = Buffer.allocUnsafeSlow(Math.min(2 * length, 2 * STAGE_TEXT_BYTES_MAX));
      grown.set(this.#buffer.subarray(0, this.#length));
      this.#buffer = grown;
    }
    this.#buffer.set(kept, this.#length);
    this.#length = length;
  }

  /** Of what there is only the end. */
  #keep(bytes: number): void {
    if (this.#length <= bytes) return;
    this.#buffer.copyWithin(0, this.#length - bytes, this.#length);
    this.#length = bytes;
    this.#cut = true;
  }

  /** A part of it is not to be had. */
  lack(): void {
    this.#cut = true;
  }

  text(): StageText {
    const all = this.#buffer.subarray(0, this.#length);
    const truncated = this.#cut || all.length > STAGE_TEXT_BYTES_MAX;
    let from = Math.max(0, all.length - STAGE_TEXT_BYTES_MAX);
    // The text must not begin in the middle of a character, whose later bytes are 10xxxxxx, three at most.
    if (truncated) for (let skipped = 0; skipped < 3 && ((all[from] ?? 0) & 0xc0) === 0x80; skipped++) from += 1;
    return { text: all.toString('utf8', from), truncated };
  }

  clear(): void {
    this.#buffer = NOTHING;
    this.#length = 0;
  }
}
