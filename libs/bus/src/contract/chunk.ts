/**
 * A log chunk on the wire: one line of JSON (the head), a line feed, the bytes of the output. At most 64 KiB of output
 * and whole lines, so that a reader can show lines without waiting for the next chunk (P21).
 */

/** `service:<name>`: of a service beside the stage. */
export type OutputStream = 'stdout' | 'stderr' | 'system' | `service:${string}`;

interface ChunkHead {
  readonly stage: string;
  readonly attempt: number;
  /** Of the first byte, in the attempt's output as kept (after masking and cutting). */
  readonly offset: number;
  /** When the runner closed the chunk, milliseconds since 1970. */
  readonly at: number;
  /** The output's parts in order: whose they are and their length in bytes. They add up to the length of the output. */
  readonly parts: readonly (readonly [stream: OutputStream, bytes: number])[];
  /**
   * A mark, without output: stored by the run's owner where the attempt has ended without a result. What stands behind its
   * first mark is no part of the event stream (P21).
   */
  readonly mark?: true | undefined;
}

export interface Chunk extends ChunkHead {
  readonly output: Uint8Array;
}

export function encodeChunk(chunk: Chunk): Uint8Array {
  const { output, ...head } = chunk;
  return Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), output]);
}

/** Of its encoded form: what many short parts of an output take is in the head. */
export function bytesOfChunk({ output, ...head }: Chunk): number {
  return Buffer.byteLength(JSON.stringify(head)) + 1 + output.length;
}

/** Throws a SyntaxError on bytes that `encodeChunk` did not make. */
export function decodeChunk(bytes: Uint8Array): Chunk {
  const headEnd = bytes.indexOf(0x0a);
  if (headEnd < 0) throw new SyntaxError('log chunk without a head');
  const head = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, headEnd).toString('utf8')) as ChunkHead;
  return { ...head, output: bytes.subarray(headEnd + 1) };
}
