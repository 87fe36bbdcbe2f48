/**
 * Digests of bodies, in pieces with other work between them. Handing a body to another thread costs as much: it is copied
 * first, all at once.
 */
import type { Hash, Hmac } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A quarter to half a millisecond. */
const PIECE_BYTES = 256 * 1024;

/** In hexadecimal: bytes would be a piece of memory of their own for each. */
export function digestOf(hash: Hash | Hmac, body: Buffer): string | Promise<string> {
  return body.length <= PIECE_BYTES ? hash.update(body).digest('hex') : inPieces(hash, body);
}

async function inPieces(hash: Hash | Hmac, body: Buffer): Promise<string> {
  for (let from = 0; from < body.length; from += PIECE_BYTES) {
    if (from > 0) await nextTurn();
    hash.update(body.subarray(from, from + PIECE_BYTES));
  }
  return hash.digest('hex');
}
