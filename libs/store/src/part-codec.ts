/**
 * Parts as an adapter keeps them. A short string stays a string, so that a person can read it with the database's own
 * tools; a longer one is deflated, bytes are kept as they are. The first byte of what is kept as bytes says which it is.
 */
import { promisify } from 'node:util';
import { deflateRaw, deflateRawSync, inflateRawSync, type ZlibOptions } from 'node:zlib';
import { DOCUMENT_BYTES_MAX } from './checks.ts';
import type { Part } from './port.ts';

/** Below it deflating saves less than a page, and costs as much as the insert. */
const DEFLATE_CHARACTERS_MIN = 1024;
/** On a run document of 2.6 KB level 1 leaves 25 % in 12 us and level 6 24 % in 14 us; on large ones level 1 is far quicker. */
const DEFLATE_LEVEL = 1;
/** As far back as zlib looks, and what it makes at a time, unless it is told otherwise. */
const WINDOW_BITS_MAX = 15;
const OUTPUT_BYTES_MAX = 16 * 1024;
const OUTPUT_BYTES_MIN = 1024;

/** Deflating these takes a millisecond, twenty times as long as handing them over. */
const ASIDE_CHARACTERS_MIN = 128 * 1024;
const deflateAside = promisify(deflateRaw) as (text: string, options: ZlibOptions) => Promise<Buffer>;

const TAG_BYTES = 0;
const TAG_DEFLATED_TEXT = 1;

export function encodePart(part: Part): string | Uint8Array {
  if (typeof part !== 'string') return tagged(TAG_BYTES, part);
  if (part.length < DEFLATE_CHARACTERS_MIN) return part;
  return tagged(TAG_DEFLATED_TEXT, deflateRawSync(part, deflatingOf(part)));
}

/** As `encodePart`; what takes long is deflated on another thread, for the caller's has more to do. */
export async function encodePartAside(part: Part): Promise<string | Uint8Array> {
  if (typeof part !== 'string' || part.length < ASIDE_CHARACTERS_MIN) return encodePart(part);
  return tagged(TAG_DEFLATED_TEXT, await deflateAside(part, deflatingOf(part)));
}

/** Throws an Error on what `encodePart` did not make. */
export function decodePart(stored: unknown): Part {
  if (typeof stored === 'string') return stored;
  if (!(stored instanceof Uint8Array)) throw new Error(`a part is kept as ${typeof stored}`);
  const bytes = stored.subarray(1);
  if (stored[0] === TAG_BYTES) return bytes;
  if (stored[0] !== TAG_DEFLATED_TEXT) throw new Error(`a part begins with the byte ${stored[0]}`);
  return inflateRawSync(bytes, {
    maxOutputLength: DOCUMENT_BYTES_MAX,
    chunkSize: outputBytes(bytes.byteLength * 4),
  }).toString('utf8');
}

/** Memory by the size of the text: that of the largest, 0.3 MB for each text, stands until the collector has looked twice. */
function deflatingOf({ length }: string): ZlibOptions {
  const windowBits = Math.min(WINDOW_BITS_MAX, Math.ceil(Math.log2(length)));
  return { level: DEFLATE_LEVEL, windowBits, memLevel: windowBits - 7, chunkSize: outputBytes(length / 2) };
}

function outputBytes(wanted: number): number {
  return Math.ceil(Math.min(OUTPUT_BYTES_MAX, Math.max(OUTPUT_BYTES_MIN, wanted)));
}

function tagged(tag: number, bytes: Uint8Array): Uint8Array {
  const stored = new Uint8Array(bytes.byteLength + 1);
  stored[0] = tag;
  stored.set(bytes, 1);
  return stored;
}
