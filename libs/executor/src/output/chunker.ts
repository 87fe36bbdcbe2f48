/**
 * A stage's output as chunks of whole lines (P21), within the bytes that are kept of an attempt.
 *
 * It owns the lines that have not ended and the chunk that is being filled, at most three times 64 KiB, and the end of an output
 * that is long. Who takes the chunks makes the pace: while it has not taken one, `write` answers a promise and the stage's pipe fills.
 *
 * CHUNKER-1. A chunk holds whole lines, at most 64 KiB; offsets follow each other without gap.
 * CHUNKER-2. No chunk waits longer than FLUSH_MS for more output, but for those of CHUNKER-3.
 * CHUNKER-3. Of an output that is longer than its budget both ends are kept, half of the budget each (of the end at most
 *     END_BYTES_MAX), with one marker line between them, whose bytes are not counted. What comes after the first half waits for
 *     the end of the stage. The executor's own remarks are kept.
 * CHUNKER-4. An output of a few lines takes room for a few lines: most stages say no more, and what they held waits for the collector.
 */
import { machineTime } from '@penstock/async';
import type { OutputSink, OutputStreamName } from '../contract/port.ts';
import { LineSplitter } from './lines.ts';
import { OutputTail } from './output-tail.ts';
import { withRoom } from './room.ts';

export interface LogChunk {
  /** Of the first byte, in the attempt's log as kept. */
  readonly offset: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly parts: readonly (readonly [stream: OutputStreamName, bytes: number])[];
  readonly output: Uint8Array;
}

export interface ChunkerOptions {
  /** Of the attempt's output; of a longer one both ends are kept. */
  readonly bytesMax: number;
  /** Called in order. The chunk's output is valid during the call only. While the promise is pending no more output is read. */
  readonly emit: (chunk: LogChunk) => void | Promise<void>;
  readonly now?: (() => number) | undefined;
  /** Calls back once; what it answers calls that off. Default: the machine's timers. */
  readonly after?: ((milliseconds: number, task: () => void) => () => void) | undefined;
}

const CHUNK_BYTES_MAX = 64 * 1024;
/** Changes between outputs in one chunk: each takes some tens of bytes of its head. */
const PARTS_MAX = 1_024;
/** Long enough to gather a burst of lines, short enough to look live. */
const FLUSH_MS = 20;
const LINE_FEED = 0x0a;
/** The end of an output is held in memory, for each stage that is as loud. */
const END_BYTES_MAX = 8 * 1024 * 1024;

export class Chunker implements OutputSink {
  readonly #options: ChunkerOptions;
  readonly #lines = new Map<OutputStreamName, LineSplitter>();
  #buffer: Buffer | null = null;
  #used = 0;
  #parts: [OutputStreamName, number][] = [];
  #offset = 0;
  /** Of the beginning that is left. */
  #budget: number;
  /** Undefined: the output has not been longer than its beginning yet. */
  #tail: OutputTail | undefined;
  readonly #tailBytesMax: number;
  #truncated = false;
  #callOffFlush: (() => void) | undefined;
  #pending: Promise<void> | null = null;

  constructor(options: ChunkerOptions) {
    this.#options = options;
    this.#tailBytesMax = Math.min(END_BYTES_MAX, Math.floor(options.bytesMax / 2));
    this.#budget = options.bytesMax - this.#tailBytesMax;
  }

  /** True once output was dropped. */
  get truncated(): boolean {
    return this.#truncated;
  }

  write(stream: OutputStreamName, bytes: Uint8Array): void | Promise<void> {
    this.#splitterOf(stream).push(bytes);
    return this.#pending ?? undefined;
  }

  /** A line of our own, `text` without its line feed. */
  remark(text: string): void | Promise<void> {
    return this.write('system', Buffer.from(`${text}\n`));
  }

  /** Hands over what is left, and waits until it is taken; answers the final offset. Nothing may be written afterwards. */
  async end(): Promise<number> {
    const offset = this.finish();
    if (this.#pending !== null) await this.#pending;
    return offset;
  }

  /** As `end`, for whoever cannot wait: all chunks were handed over when it returns, and may not be taken yet. */
  finish(): number {
    for (const lines of this.#lines.values()) lines.end();
    for (const { stream, lines } of this.#tail?.take() ?? []) this.#add(stream, lines);
    this.#flush();
    this.#buffer = null;
    return this.#offset;
  }

  #splitterOf(stream: OutputStreamName): LineSplitter {
    let splitter = this.#lines.get(stream);
    if (splitter === undefined) {
      splitter = new LineSplitter((lines) => this.#keep(stream, lines));
      this.#lines.set(stream, splitter);
    }
    return splitter;
  }

  /** Within the budget, whole lines only. */
  #keep(stream: OutputStreamName, lines: Uint8Array): void {
    if (this.#tail !== undefined) {
      this.#keepEnd(this.#tail, stream, lines);
    } else if (stream === 'system') {
      this.#add(stream, lines);
    } else if (lines.length <= this.#budget) {
      this.#budget -= lines.length;
      this.#add(stream, lines);
    } else {
      const fits = this.#budget === 0 ? 0 : lines.lastIndexOf(LINE_FEED, this.#budget - 1) + 1;
      if (fits > 0) this.#add(stream, lines.subarray(0, fits));
      this.#tail = new OutputTail(this.#tailBytesMax);
      this.#keepEnd(this.#tail, stream, lines.subarray(fits));
    }
  }

  #keepEnd(tail: OutputTail, stream: OutputStreamName, lines: Uint8Array): void {
    const { remarks, dropped } = tail.push(stream, lines);
    if (dropped && !this.#truncated) {
      this.#truncated = true;
      const marker = `… log truncated at ${this.#options.bytesMax} bytes: its middle is not kept, its end follows when the stage has ended\n`;
      this.#add('system', Buffer.from(marker));
    }
    for (const remark of remarks) this.#add('system', remark.lines);
  }

  #add(stream: OutputStreamName, lines: Uint8Array): void {
    let rest = lines;
    while (rest.length > 0) {
      const room = CHUNK_BYTES_MAX - this.#used;
      const fits = rest.length <= room ? rest.length : room === 0 ? 0 : rest.lastIndexOf(LINE_FEED, room - 1) + 1;
      if (fits > 0) this.#put(stream, rest.subarray(0, fits));
      rest = rest.subarray(fits);
      if (rest.length > 0) this.#flush();
    }
  }

  #put(stream: OutputStreamName, bytes: Uint8Array): void {
    this.#buffer = withRoom(this.#buffer, this.#used, this.#used + bytes.length, CHUNK_BYTES_MAX);
    this.#buffer.set(bytes, this.#used);
    this.#used += bytes.length;
    const last = this.#parts.at(-1);
    if (last !== undefined && last[0] === stream) last[1] += bytes.length;
    else this.#parts.push([stream, bytes.length]);
    if (this.#used === CHUNK_BYTES_MAX || this.#parts.length === PARTS_MAX) this.#flush();
    else this.#callOffFlush ??= (this.#options.after ?? machineTime.after)(FLUSH_MS, () => this.#flush());
  }

  #flush(): void {
    this.#callOffFlush?.();
    this.#callOffFlush = undefined;
    if (this.#used === 0 || this.#buffer === null) return;
    const at = (this.#options.now ?? Date.now)();
    const chunk: LogChunk = {
      offset: this.#offset,
      at,
      parts: this.#parts,
      output: this.#buffer.subarray(0, this.#used),
    };
    this.#offset += this.#used;
    this.#used = 0;
    this.#parts = [];
    const taken = this.#options.emit(chunk);
    if (!(taken instanceof Promise)) return;
    const before = this.#pending;
    const pending: Promise<void> = Promise.all([before, taken]).then(
      () => this.#unblock(pending),
      () => this.#unblock(pending),
    );
    this.#pending = pending;
  }

  #unblock(pending: Promise<void>): void {
    if (this.#pending === pending) this.#pending = null;
  }
}
