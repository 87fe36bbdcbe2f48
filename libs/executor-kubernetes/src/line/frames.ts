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

/** A frame whose bytes come: they are put together here, for nobody else says in what pieces they arrive. */
interface Awaited {
  readonly bytes: Buffer;
  have: number;
  readonly make: (bytes: Buffer) => LineFrame;
}

interface Announced {
  readonly stream: PodStream;
  readonly first: number;
  readonly count: number;
  readonly sizes: number[];
}

/** What may come behind a frame of a kind; of the others anything may. So nothing is said again and again by one line. */
const BEHIND: Readonly<Record<string, readonly string[] | undefined>> = {
  masks: ['blocks', 'outputs'],
  outputs: ['done'],
  done: [],
};

export class FrameReader {
  /** As far as it has come. */
  #header = '';
  #last = '';
  /** While the lines with the sizes of announced blocks come. */
  #announced: Announced | null = null;
  #awaited: Awaited | null = null;

  /** Frames that are whole by now. @throws BadLine */
  push(piece: Buffer): LineFrame[] {
    const frames: LineFrame[] = [];
    for (let at = 0; ;) {
      const awaited = this.#awaited;
      if (awaited !== null) {
        const copied = piece.copy(awaited.bytes, awaited.have, at);
        at += copied;
        awaited.have += copied;
        if (awaited.have < awaited.bytes.length) return frames;
        this.#awaited = null;
        frames.push(awaited.make(awaited.bytes));
        continue;
      }
      const found = piece.indexOf(LINE_FEED, at);
      const end = found < 0 ? piece.length : found;
      if (this.#header.length + end - at > HEADER_CHARACTERS_MAX) throw new BadLine('a header that is too long');
      this.#header += piece.toString('latin1', at, end);
      if (found < 0) return frames;
      const header = this.#header;
      this.#header = '';
      at = end + 1;
      const frame = this.#onHeader(header);
      if (frame !== null) frames.push(frame);
    }
  }

  #onHeader(header: string): LineFrame | null {
    if (this.#announced !== null) {
      this.#onSize(header, this.#announced);
      return null;
    }
    const [word = '', ...rest] = header.split(' ');
    if (BEHIND[this.#last]?.includes(word) === false) throw new BadLine(header);
    this.#last = word;
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
      this.#await(numberIn(rest[0], OUTPUTS_BYTES_MAX), (bytes) => ({ kind: 'outputs', bytes }));
      return null;
    }
    if (word === 'masks') {
      this.#await(numberIn(rest[0], MASKS_BYTES_MAX), (bytes) => ({ kind: 'masks', bytes }));
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
    const total = own.reduce((sum, size) => sum + size, 0);
    this.#await(total, (bytes) => ({ kind: 'blocks', stream, first, count, bytes }));
  }

  #await(bytes: number, make: Awaited['make']): void {
    this.#awaited = { bytes: Buffer.allocUnsafeSlow(bytes), have: 0, make };
  }
}

function numberIn(text: string | undefined, max: number): number {
  if (text === undefined || !/^\d{1,16}$/.test(text) || Number(text) > max)
    throw new BadLine(`not a number up to ${max}: ${JSON.stringify(text)}`);
  return Number(text);
}
