/**
 * The bytes of a request's body, put together in pieces: in one go 25 MiB take the event loop for 15 ms and more, and those of
 * several senders in one turn add up.
 */
import type { Readable } from 'node:stream';
import { piecesOf, type Grow } from '@penstock/http';
import { nextPiece } from '../providers/large-work.ts';

/** A millisecond or two. */
const PIECE_BYTES = 1024 * 1024;

/** Rejects as `piecesOf` does. */
export async function readBody(stream: Readable, bytesMax: number, grow?: Grow): Promise<Buffer> {
  const chunks = await piecesOf(stream, bytesMax, grow);
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  const body = Buffer.allocUnsafeSlow(chunks.reduce((sum, { length }) => sum + length, 0));
  let [at, pieceEnd] = [0, PIECE_BYTES];
  for (const [index, chunk] of chunks.entries()) {
    body.set(chunk, at);
    at += chunk.length;
    // Each is of no more use, and all of them would be as many bytes again.
    chunks[index] = EMPTY;
    if (at < pieceEnd) continue;
    await nextPiece();
    pieceEnd = at + PIECE_BYTES;
  }
  return body;
}

const EMPTY = Buffer.alloc(0);
