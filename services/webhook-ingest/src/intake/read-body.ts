/**
 * The bytes of a request's body, put together in pieces: in one go 25 MiB take the event loop for 15 ms and more, and those of
 * several senders in one turn add up.
 */
import type { Readable } from 'node:stream';
import { nextPiece } from '../providers/large-work.ts';

/** A millisecond or two. */
const PIECE_BYTES = 1024 * 1024;

/** What a body may still take, asked with how long it is so far. Throws where that is too much. */
type Grow = (bytes: number) => void;

/** A body that is refused, with the status that it is answered with. */
class BodyRefused extends Error {
  readonly statusCode: number;

  constructor(statusCode: 400 | 413, message: string) {
    super(message);
    this.statusCode = statusCode;
  }
}

/**
 * Throws an error with a `statusCode`: 413 where there is too much, 400 where the sender breaks off; and what `grow` throws. What still
 * comes is dropped.
 */
export async function readBody(stream: Readable, bytesMax: number, grow: Grow = () => {}): Promise<Buffer> {
  const chunks = await chunksOf(stream, bytesMax, grow);
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

function chunksOf(stream: Readable, bytesMax: number, grow: Grow): Promise<Buffer[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer[]>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > bytesMax) return end(() => reject(new BodyRefused(413, `more than ${bytesMax} bytes`)));
    try {
      grow(bytes);
    } catch (error) {
      return end(() => reject(error as Error));
    }
    chunks.push(chunk);
  };
  const onEnd = (): void => end(() => resolve(chunks));
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
