/** Counting and summing bytes on their way, the same for every adapter. */
import { createHash } from 'node:crypto';
import { HashMismatch, ObjectDamaged, ObjectTooLarge, ObjectUsageError } from './errors.ts';
import type { ExpectedBytes, ReadOptions } from './port.ts';

const KEY_LENGTH_MAX = 200;
/** Names that are the same on every file system, in a subject and in a URL; no part is `.` or `..`. */
const KEY = /^[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*(?:\/[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*)*$/;
const SHA256 = /^[0-9a-f]{64}$/;

export function checkKey(key: string): void {
  if (key.length > KEY_LENGTH_MAX || !KEY.test(key))
    throw new ObjectUsageError(`'${key.slice(0, KEY_LENGTH_MAX)}' is no key of an object`);
}

/** The same bytes; throws instead of ending where they are not those expected. */
export async function* expectedBytes(
  bytes: AsyncIterable<Uint8Array>,
  expected: ExpectedBytes,
): AsyncGenerator<Uint8Array, void> {
  if (!SHA256.test(expected.sha256))
    throw new ObjectUsageError(`'${expected.sha256.slice(0, 80)}' is no SHA-256 in lower-case hex`);
  const hash = createHash('sha256');
  let size = 0;
  for await (const piece of bytes) {
    size += piece.length;
    if (size > expected.bytesMax) throw new ObjectTooLarge(expected.bytesMax);
    hash.update(piece);
    yield piece;
  }
  const actual = hash.digest('hex');
  if (actual !== expected.sha256) throw new HashMismatch(expected.sha256, actual);
}

/** The same bytes, the last piece only once the sum and the size are right. */
export async function* verifiedBytes(
  key: string,
  bytes: AsyncIterable<Uint8Array>,
  size: number,
  sha256: string | undefined,
): AsyncGenerator<Uint8Array, void> {
  const hash = sha256 === undefined ? null : createHash('sha256');
  let read = 0;
  let held: Uint8Array | null = null;
  for await (const piece of bytes) {
    if (held !== null) yield held;
    held = piece;
    read += piece.length;
    hash?.update(piece);
  }
  if (read !== size) throw new ObjectDamaged(key, `${read} bytes where ${size} were put`);
  const actual = hash?.digest('hex');
  if (actual !== sha256) throw new ObjectDamaged(key, `its SHA-256 is ${actual}, not ${sha256}`);
  if (held !== null) yield held;
}

export interface ReadPart {
  readonly from: number;
  /** The first byte not wanted any more. */
  readonly end: number;
  readonly size: number;
  readonly sha256: string | undefined;
}

/** What is read of an object of `size` bytes: where it begins and ends, and the hash where that is all of it. */
export function partOf(size: number, { from = 0, to = size, sha256 }: ReadOptions): ReadPart {
  const end = Math.min(to, size);
  return { from, end, size: Math.max(0, end - from), sha256: from === 0 && end === size ? sha256 : undefined };
}
