/**
 * What comes out of a line's standard output (`pod/line.sh`), as it arrives in pieces: blocks of the stage's output, the file of its
 * outputs, and its ending. The other end is in reach of the stage: nothing that it says may cost more than a frame.
 */
import { BadLine } from '../errors.ts';

export type PodStream = 'out' | 'err';

export type LineFrame =
  | {
      readonly kind: 'blocks';
      readonly stream: PodStream;
      readonly first: number;
      readonly count: number;
      readonly bytes: Buffer;
    }
  | { readonly kind: 'outputs'; readonly bytes: Buffer }
  | { readonly kind: 'masks'; readonly bytes: Buffer }
  /** `outside`: it was told to end by somebody else than its runner. */
  | { readonly kind: 'done'; readonly code: number; readonly cause: 'exit' | 'outside' };

const HEADER_CHARACTERS_MAX = 200;
const BLOCKS_MAX = 16;
const BLOCK_BYTES_MAX = 64 * 1024;
/** Those of outputs and of added stages, each with one more than may be read of it, so that too many are seen; and what is between them. */
const OUTPUTS_BYTES_MAX = 2 * (256 * 1024 + 1) + 1;
const MASKS_BYTES_MAX = 64 * 1024 + 1;
const LINE_FEED = 0x0a;

interface Awaited {
  readonly bytes: number;
  readonly make: (bytes: Buffer) => LineFrame;
}

interface Announced {
  readonly stream: PodStream;
  readonly first: number;
  readonly count: number;
  readonly sizes: number[];
}

export class FrameReader {
  readonly #pieces: Buffer[] = [];
  #held = 0;
  /** While the lines with the sizes of announced blocks come. */
  #announced: Announced | null = null;
  #awaited: Awaited | null = null;

  /** Frames that are whole by now. @throws BadLine */
  push(piece: Buffer): LineFrame[] {
    this.#pieces.push(piece);
    this.#held += piece.length;
    const frames: LineFrame[] = [];
    for (;;) {
      if (this.#awaited !== null) {
        if (this.#held < this.#awaited.bytes) return frames;
        frames.push(this.#awaited.make(this.#take(this.#awaited.bytes)));
        this.#awaited = null;
        continue;
      }
      const header = this.#takeHeader();
      if (header === null) return frames;
      const frame = this.#onHeader(header);
      if (frame !== null) frames.push(frame);
    }
  }

  #onHeader(header: string): LineFrame | null {
    if (this.#announced !== null) {
      this.#onSize(header, this.#announced);
      return null;
    }
    const [word, ...rest] = header.split(' ');
    if (word === 'blocks') {
      const [stream, first, count] = rest;
      if ((stream !== 'out' && stream !== 'err') || numberIn(count, BLOCKS_MAX) === 0) throw new BadLine(header);
      this.#announced = {
        stream,
        first: numberIn(first, Number.MAX_SAFE_INTEGER),
        count: numberIn(count, BLOCKS_MAX),
        sizes: [],
      };
      return null;
    }
    if (word === 'outputs') {
      this.#awaited = { bytes: numberIn(rest[0], OUTPUTS_BYTES_MAX), make: (bytes) => ({ kind: 'outputs', bytes }) };
      return null;
    }
    if (word === 'masks') {
      this.#awaited = { bytes: numberIn(rest[0], MASKS_BYTES_MAX), make: (bytes) => ({ kind: 'masks', bytes }) };
      return null;
    }
    const [code, cause] = rest;
    if (word !== 'done' || (cause !== 'exit' && cause !== 'outside')) throw new BadLine(header);
    return { kind: 'done', code: numberIn(code, 255), cause };
  }

  /** Lines of `wc -c`: a size and a name each, and the sum of all where there are several. */
  #onSize(line: string, { stream, first, count, sizes }: Announced): void {
    if (line !== 'data') {
      sizes.push(numberIn(line.trim().split(/\s+/)[0], BLOCKS_MAX * BLOCK_BYTES_MAX));
      if (sizes.length > count + 1) throw new BadLine(line);
      return;
    }
    const own = sizes.slice(0, count);
    if (own.length < count || own.some((size) => size > BLOCK_BYTES_MAX)) throw new BadLine(line);
    this.#announced = null;
    this.#awaited = {
      bytes: own.reduce((sum, size) => sum + size, 0),
      make: (bytes) => ({ kind: 'blocks', stream, first, count, bytes }),
    };
  }

  #takeHeader(): string | null {
    let before = 0;
    for (const piece of this.#pieces) {
      const end = piece.indexOf(LINE_FEED);
      if (before + (end < 0 ? piece.length : end) > HEADER_CHARACTERS_MAX)
        throw new BadLine('a header that is too long');
      if (end >= 0) return this.#take(before + end + 1).toString('latin1', 0, before + end);
      before += piece.length;
    }
    return null;
  }

  #take(bytes: number): Buffer {
    const taken: Buffer[] = [];
    for (let left = bytes; left > 0;) {
      const piece = this.#pieces.shift();
      if (piece === undefined) break;
      taken.push(piece.subarray(0, left));
      if (piece.length > left) this.#pieces.unshift(piece.subarray(left));
      left -= Math.min(left, piece.length);
    }
    this.#held -= bytes;
    return taken.length === 1 && taken[0] !== undefined ? taken[0] : Buffer.concat(taken);
  }
}

function numberIn(text: string | undefined, max: number): number {
  if (text === undefined || !/^\d{1,16}$/.test(text) || Number(text) > max)
    throw new BadLine(`not a number up to ${max}: ${JSON.stringify(text)}`);
  return Number(text);
}
