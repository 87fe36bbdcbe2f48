/**
 * Makes one pack (P34): runs of one tenant, one after the other. It owns the bytes of the object that is being filled.
 *
 *  PACKWRITER-1 An object is read back, whole and by its hash, before the next one is begun; pointers are written when all of them were.
 *  PACKWRITER-2 A pack is pointed at within `USABLE_MS` of its beginning or never: what nothing points at is swept a day after it was
 *     stored (PACKSWEEP-2), so nothing is pointed at that is being swept.
 */
import { createHash, randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { bytesOfChunk, encodeFrame, FRAME_BYTES, type StoredChunk } from '@penstock/bus';
import { type ObjectStore, ObjectsUnavailable } from '@penstock/object-store';
import type { ArchivedFrame, ArchivedLog } from '@penstock/store';
import { packKey } from './packs.ts';

/** A frame more at most: as much is held in memory, twice while it is stored. */
const OBJECT_BYTES = 8 * 1024 * 1024;
/** A pack is read by its pointers when it is swept: so many at a time. */
export const PACK_RUNS_MAX = 500;
const FRAME_CHUNKS_MAX = 1_024;
const USABLE_MS = 60 * 60_000;

type PackedRun = Pick<ArchivedLog, 'runId' | 'frames' | 'last' | 'bytes'>;

class PackTooLate extends Error {
  constructor() {
    super('making a pack of logs took too long; it is made anew');
  }
}

export class PackWriter {
  readonly pack: string = randomUUID();
  readonly #objects: ObjectStore;
  readonly #bootNow: () => number;
  readonly #startedAt: number;
  readonly #packed: PackedRun[] = [];
  #parts: Uint8Array[] = [];
  #size = 0;
  #object = 0;

  constructor(objects: ObjectStore, bootNow: () => number) {
    this.#objects = objects;
    this.#bootNow = bootNow;
    this.#startedAt = bootNow();
  }

  get runs(): number {
    return this.#packed.length;
  }

  get isFull(): boolean {
    return this.#packed.length >= PACK_RUNS_MAX || this.#object > 0 || this.#size >= OBJECT_BYTES;
  }

  /** False: there was nothing. What it has taken of a run whose reading fails is pointed at by nothing, and another can follow. */
  async add(runId: string, chunks: AsyncIterable<StoredChunk>): Promise<boolean> {
    const frames: ArchivedFrame[] = [];
    const last: Record<string, number> = {};
    let pending: StoredChunk[] = [];
    let pendingBytes = 0;
    const flush = async (): Promise<void> => {
      const [first, end] = [pending[0], pending.at(-1)];
      if (first === undefined || end === undefined) return;
      const bytes = await encodeFrame(pending);
      frames.push([...(await this.#place(bytes)), bytes.length, first.sequence, end.sequence]);
      pending = [];
      pendingBytes = 0;
    };
    for await (const chunk of chunks) {
      pending.push(chunk);
      pendingBytes += bytesOfChunk(chunk.chunk);
      last[chunk.runner] = chunk.sequence;
      if (pendingBytes >= FRAME_BYTES || pending.length >= FRAME_CHUNKS_MAX) await flush();
    }
    await flush();
    if (frames.length === 0) return false;
    this.#packed.push({ runId, frames, last, bytes: bytesOf(frames) });
    return true;
  }

  /** Frames of another pack, as they are. */
  async copy(log: ArchivedLog, read: (frame: ArchivedFrame) => Promise<Uint8Array>): Promise<void> {
    const frames: ArchivedFrame[] = [];
    for (const frame of log.frames) {
      const [, , bytes, first, last] = frame;
      frames.push([...(await this.#place(await read(frame))), bytes, first, last]);
    }
    this.#packed.push({ runId: log.runId, frames, last: log.last, bytes: log.bytes });
  }

  /** Where its runs lie, now that all of them are stored and were read back. */
  async finish(): Promise<readonly (PackedRun & Pick<ArchivedLog, 'pack' | 'objects'>)[]> {
    await this.#flushObject();
    return this.#packed.map((run) => ({ ...run, pack: this.pack, objects: this.#object }));
  }

  /** PACKWRITER-2. To be called right before pointers are written. */
  checkUsable(): void {
    if (this.#bootNow() - this.#startedAt > USABLE_MS) throw new PackTooLate();
  }

  async #place(bytes: Uint8Array): Promise<readonly [object: number, from: number]> {
    if (this.#size > 0 && this.#size + bytes.length > OBJECT_BYTES) await this.#flushObject();
    const place = [this.#object, this.#size] as const;
    this.#parts.push(bytes);
    this.#size += bytes.length;
    return place;
  }

  /** PACKWRITER-1 */
  async #flushObject(): Promise<void> {
    if (this.#size === 0) return;
    const hash = createHash('sha256');
    for (const part of this.#parts) hash.update(part);
    const sha256 = hash.digest('hex');
    const key = packKey(this.pack, this.#object);
    const source = Readable.from(this.#parts, { objectMode: true });
    await this.#objects.put(key, source, { sha256, bytesMax: this.#size });
    const stored = await this.#objects.get(key, { sha256 });
    if (stored === null) throw new ObjectsUnavailable(`${key} went as soon as it was stored`);
    for await (const _ of stored.bytes);
    this.#object += 1;
    this.#parts = [];
    this.#size = 0;
  }
}

function bytesOf(frames: readonly ArchivedFrame[]): number {
  return frames.reduce((sum, [, , bytes]) => sum + bytes, 0);
}
