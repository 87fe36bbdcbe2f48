/**
 * Chunks of a run as the archive of logs has them: some consecutive ones, compressed together, with their sequences in `LOGS` and
 * the runners that wrote them, so that a reader gets from a frame what it would have got from the stream. One line of JSON, a line
 * feed, the chunks; the compressed form has a checksum of its own.
 */
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import { type Chunk, decodeChunk, encodeChunk } from './chunk.ts';

export interface StoredChunk {
  readonly sequence: number;
  readonly runner: string;
  readonly chunk: Chunk;
}

type Entry = readonly [sequence: number, runner: string, bytes: number];

/** Of a frame's chunks; a cursor in the middle of a log costs the reading of so much at most. */
export const FRAME_BYTES = 1024 * 1024;
/** What a frame may be once it is read: its chunks, the last of which may be of the largest size, and its head. */
const PLAIN_BYTES_MAX = 4 * FRAME_BYTES;
const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Throws a SyntaxError on what `decodeFrame` would refuse: `FRAME_BYTES` of chunks (`bytesOfChunk`), or one more, are never too much. */
export async function encodeFrame(chunks: readonly StoredChunk[]): Promise<Uint8Array> {
  const bytes = chunks.map(({ chunk }) => encodeChunk(chunk));
  const head = chunks.map(({ sequence, runner }, index): Entry => [sequence, runner, bytes[index]?.length ?? 0]);
  const plain = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), ...bytes]);
  if (plain.length > PLAIN_BYTES_MAX) throw new SyntaxError('a frame of an archived log is too large to be read again');
  return await compress(plain, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
}

/** Throws on bytes that `encodeFrame` did not make. */
export async function decodeFrame(frame: Uint8Array): Promise<StoredChunk[]> {
  const plain = await decompress(frame, { maxOutputLength: PLAIN_BYTES_MAX });
  const headEnd = plain.indexOf(0x0a);
  if (headEnd < 0) throw new SyntaxError('frame of an archived log without a head');
  const head = JSON.parse(plain.toString('utf8', 0, headEnd)) as readonly Entry[];
  let at = headEnd + 1;
  return head.map(([sequence, runner, bytes]) => {
    const chunk = decodeChunk(plain.subarray(at, at + bytes));
    at += bytes;
    return { sequence, runner, chunk };
  });
}
