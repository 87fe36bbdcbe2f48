/**
 * Digests of bodies. A small one is made in one call: the objects that keep what is digested so far cost more than all its bytes, and are
 * what the collector is slow with. A large one is made in pieces with other work between them; handing it to another thread costs as
 * much: it is copied first, all at once. All are in hexadecimal: bytes would be a piece of memory of their own for each.
 */
import { createHash, createHmac, hash, type Hash, type Hmac } from 'node:crypto';
import { LARGE_BYTES, nextPiece } from './large-work.ts';

/** A quarter to half a millisecond. */
const PIECE_BYTES = 256 * 1024;
/** Copied, which for more costs as much as is saved. */
const SMALL_BYTES = 16 * 1024;
/** Of SHA-256. */
const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const KEYS_MAX = 1_000;

/** What of an HMAC follows from its key alone (RFC 2104). */
interface Pads {
  readonly inner: Buffer;
  readonly outer: Buffer;
}

const padsOfKeys = new Map<string | Buffer, Pads>();
const innerText = Buffer.allocUnsafeSlow(BLOCK_BYTES + SMALL_BYTES);
const outerText = Buffer.allocUnsafeSlow(BLOCK_BYTES + DIGEST_BYTES);

export function sha256Of(body: Buffer): string | Promise<string> {
  return body.length <= LARGE_BYTES ? hash('sha256', body, 'hex') : inPieces(createHash('sha256'), body);
}

export function hmacOf(key: string | Buffer, body: Buffer): string | Promise<string> {
  if (body.length <= SMALL_BYTES) return smallHmacOf(key, body);
  const hmac = createHmac('sha256', key);
  return body.length <= LARGE_BYTES ? hmac.update(body).digest('hex') : inPieces(hmac, body);
}

/** Of at most 16 KiB. */
export function smallHmacOf(key: string | Buffer, body: Buffer): string {
  const { inner, outer } = padsOf(key);
  innerText.set(inner);
  innerText.set(body, BLOCK_BYTES);
  const digest = hash('sha256', innerText.subarray(0, BLOCK_BYTES + body.length), 'latin1');
  outerText.set(outer);
  outerText.write(digest, BLOCK_BYTES, 'latin1');
  return hash('sha256', outerText, 'hex');
}

function padsOf(key: string | Buffer): Pads {
  const known = padsOfKeys.get(key);
  if (known !== undefined) return known;
  const whole = Buffer.from(key);
  const short = whole.length <= BLOCK_BYTES ? whole : hash('sha256', whole, 'buffer');
  const pads = { inner: Buffer.alloc(BLOCK_BYTES, INNER), outer: Buffer.alloc(BLOCK_BYTES, OUTER) };
  for (const [at, byte] of short.entries()) {
    pads.inner[at] = INNER ^ byte;
    pads.outer[at] = OUTER ^ byte;
  }
  if (padsOfKeys.size >= KEYS_MAX) padsOfKeys.clear();
  padsOfKeys.set(key, pads);
  return pads;
}

const [INNER, OUTER] = [0x36, 0x5c] as const;

async function inPieces(digest: Hash | Hmac, body: Buffer): Promise<string> {
  for (let from = 0; from < body.length; from += PIECE_BYTES) {
    await nextPiece();
    digest.update(body.subarray(from, from + PIECE_BYTES));
  }
  return digest.digest('hex');
}
