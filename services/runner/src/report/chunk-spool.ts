/** Log chunks in a file, each behind its length, taken out in the order in which they were put in. */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { writeAll } from './disk.ts';

const HEAD_BYTES = 4;

export class ChunkSpool {
  readonly path: string;
  readonly #fd: number;
  #read = 0;
  #written = 0;

  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, 'wx+', 0o600);
  }

  get isEmpty(): boolean {
    return this.#read === this.#written;
  }

  /** Of what was not taken out yet. */
  get bytes(): number {
    return this.#written - this.#read;
  }

  /** Answers the bytes that it takes on disk. Throws, and holds what it held, where the disk has no room. */
  put(chunk: Uint8Array): number {
    const record = recordOf(chunk);
    writeAll(this.#fd, record, this.#written);
    this.#written += record.length;
    return record.length;
  }

  /** Null where it is empty. With `keep` the file goes on holding what was taken out. Throws where the disk does not give back what it took. */
  take(keep: boolean): { readonly chunk: Uint8Array; readonly bytes: number } | null {
    if (this.isEmpty) return null;
    const length = readAt(this.#fd, this.#read, HEAD_BYTES).readUInt32LE();
    const bytes = HEAD_BYTES + length;
    if (bytes > this.bytes) throw new Error('what stands in the file is no chunk');
    const chunk = readAt(this.#fd, this.#read + HEAD_BYTES, length);
    this.#read += bytes;
    if (this.isEmpty && !keep) {
      ftruncateSync(this.#fd, 0);
      this.#read = this.#written = 0;
    }
    return { chunk, bytes };
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** All chunks that a file holds, one in memory at a time; half a chunk at its end, which a kill has left, is none. */
export function* chunksIn(path: string): Generator<Uint8Array, void> {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    for (let at = 0; at + HEAD_BYTES <= size;) {
      const end = at + HEAD_BYTES + readAt(fd, at, HEAD_BYTES).readUInt32LE();
      if (end > size) return;
      yield readAt(fd, at + HEAD_BYTES, end - at - HEAD_BYTES);
      at = end;
    }
  } finally {
    closeSync(fd);
  }
}

function readAt(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  if (readSync(fd, bytes, 0, length, position) < length) throw new Error('the file ends early');
  return bytes;
}

function recordOf(chunk: Uint8Array): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32LE(chunk.length);
  return Buffer.concat([head, chunk]);
}
