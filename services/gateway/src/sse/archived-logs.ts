/**
 * Reads logs of runs that are archived (P34): the pointer from the store, the bytes from the registry, which alone has the object
 * storage.
 */
import { decodeFrame, type Bus, type StoredChunk } from '@penstock/bus';
import { NotFound, Unavailable } from '@penstock/errors';
import { callService } from '@penstock/service';
import { LogArchive, StoreUnavailable, type ArchivedLog, type DocumentStore } from '@penstock/store';

export interface ArchivedLogs {
  /** Null: the run is not archived. Throws Unavailable. */
  of(runId: string): Promise<ArchivedLog | null>;
  /** Its chunks from this sequence on. Throws Unavailable; NotFound: the pack is gone or damaged, ask for the pointer again. */
  chunks(log: ArchivedLog, fromSequence: number, signal: AbortSignal): AsyncIterable<StoredChunk>;
}

interface PartRequest {
  readonly pack: string;
  readonly object: number;
  readonly from: number;
  readonly bytes: number;
}

const PART_MS_MAX = 20_000;

export class StoredArchivedLogs implements ArchivedLogs {
  readonly #bus: Bus;
  readonly #archive: LogArchive;

  constructor(bus: Bus, store: Pick<DocumentStore, 'collection'>) {
    this.#bus = bus;
    this.#archive = new LogArchive(store);
  }

  async of(runId: string): Promise<ArchivedLog | null> {
    try {
      return await this.#archive.of(runId);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      throw new Unavailable('The server cannot reach its database at the moment; try again.', { cause: error });
    }
  }

  async *chunks(log: ArchivedLog, fromSequence: number, signal: AbortSignal): AsyncGenerator<StoredChunk, void> {
    for (const [object, from, bytes, , lastSequence] of log.frames) {
      if (lastSequence < fromSequence) continue;
      signal.throwIfAborted();
      const frame = await this.#part({ pack: log.pack, object, from, bytes });
      for (const chunk of await decoded(frame)) if (chunk.sequence >= fromSequence) yield chunk;
    }
  }

  async #part(part: PartRequest): Promise<Uint8Array> {
    const answer = await callService<PartRequest, { readonly data: Uint8Array }>(
      this.#bus,
      'registry',
      'log.part',
      part,
      PART_MS_MAX,
      PART_MS_MAX,
    );
    return answer.data;
  }
}

async function decoded(frame: Uint8Array): Promise<readonly StoredChunk[]> {
  try {
    return await decodeFrame(frame);
  } catch (error) {
    throw new NotFound('The archived log is damaged.', {}, { cause: error });
  }
}
