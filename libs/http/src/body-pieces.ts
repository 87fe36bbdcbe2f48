/**
 * A body as it comes in.
 *
 *  PIECES-1 What a body holds is what has come of it, and no more than as much again, up to 64 KiB, however it was cut. A piece is an object that takes
 *     some 400 bytes beside its own, so short ones are copied together.
 */
import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';

/** Longer ones are kept as they come. */
const COPIED_BYTES_MAX = 4 * 1024;
/** What they are copied into: as long as the body is by then, within these. */
const SLAB_BYTES = { min: COPIED_BYTES_MAX, max: 64 * 1024 };
const NO_ROOM = Buffer.alloc(0);

/** What a body may still take, asked with how long it is so far. Throws where that is too much. */
export type Grow = (bytes: number) => void;

/** A body that is refused, with the status that it is answered with. */
class BodyRefused extends Error {
  readonly statusCode: number;

  constructor(statusCode: 400 | 413, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/**
 * Rejects with an error that has a `statusCode`: 413 where there is too much, 400 where the sender breaks off; and with what `grow` throws. What
 * still comes is dropped.
 */
export function piecesOf(stream: Readable, bytesMax: number, grow: Grow = () => {}): Promise<Buffer[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer[]>();
  const pieces = new BodyPieces();
  const onData = (piece: Buffer): void => {
    const bytes = pieces.bytes + piece.length;
    if (bytes > bytesMax) return end(() => reject(new BodyRefused(413, `more than ${bytesMax} bytes`)));
    try {
      grow(bytes);
    } catch (error) {
      return end(() => reject(error as Error));
    }
    pieces.add(piece);
  };
  const onEnd = (): void => end(() => resolve(pieces.all()));
  const onClose = (): void => end(() => reject(new BodyRefused(400, 'the sender broke off')));
  const end = (settle: () => void): void => {
    stream.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    // Without a listener an error would end the process.
    stream.on('error', () => {});
    settle();
  };
  stream.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  return promise;
}

/** The body of a request in UTF-8, within the limit of its route. Rejects as `piecesOf` does. */
export async function textOf({ headers, routeOptions }: FastifyRequest, stream: Readable): Promise<string> {
  const { bodyLimit } = routeOptions;
  // Before a byte of it has come.
  if (Number(headers['content-length']) > bodyLimit) throw new BodyRefused(413, `more than ${bodyLimit} bytes`);
  const pieces = await piecesOf(stream, bodyLimit);
  const [only] = pieces;
  // In one go: a character may begin in one piece and end in the next.
  return (only !== undefined && pieces.length === 1 ? only : Buffer.concat(pieces)).toString();
}

/** The pieces of one body. */
export class BodyPieces {
  readonly #kept: Buffer[] = [];
  #slab = NO_ROOM;
  /** Of the slab: what is not among the kept yet. */
  #from = 0;
  #to = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    // Most bodies are one piece.
    if (piece.length > COPIED_BYTES_MAX || this.#kept.length === 0) {
      this.#keepCopied();
      this.#kept.push(piece);
    } else {
      this.#copy(piece);
    }
  }

  all(): Buffer[] {
    this.#keepCopied();
    return this.#kept;
  }

  #copy(piece: Buffer): void {
    const fitting = piece.copy(this.#slab, this.#to);
    this.#to += fitting;
    if (fitting === piece.length) return;
    this.#keepCopied();
    const length = Math.min(Math.max(this.#bytes, SLAB_BYTES.min), SLAB_BYTES.max);
    this.#slab = Buffer.allocUnsafeSlow(length);
    this.#from = 0;
    this.#to = piece.copy(this.#slab, 0, fitting);
  }

  #keepCopied(): void {
    if (this.#to > this.#from) this.#kept.push(this.#slab.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}
