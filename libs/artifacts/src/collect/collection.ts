/**
 * The files that a stage has left: listed, and then read one after the other. It owns the process that reads them
 * (`collector.ts`), which `close` ends.
 */
import { fileURLToPath } from 'node:url';
import { KEPT_FILES_MAX, type KeptFile } from '../manifest.ts';
import type { CollectRequest, Listing, ReadRequest } from '../reading/frames.ts';
import { ReadingProcess } from '../reading/reading-process.ts';

export interface CollectOptions {
  /** An absolute path; it may be a stranger's folder. */
  readonly folder: string;
  readonly patterns: readonly string[];
  /** Whose rights it is read with; absent: those of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Of all files together. */
  readonly bytesMax: number;
  readonly filesMax?: number | undefined;
  /** Ends the reading. */
  readonly signal?: AbortSignal | undefined;
}

const COLLECTOR = fileURLToPath(new URL('collector.ts', import.meta.url));

/** @throws ArtifactsFailed; the signal's reason */
export async function collectFiles(options: CollectOptions): Promise<Collection> {
  const collection = new Collection(options);
  try {
    await collection.list(options);
    return collection;
  } catch (error) {
    await collection.close();
    options.signal?.throwIfAborted();
    throw error;
  }
}

export class Collection {
  readonly #reading: ReadingProcess;
  #listing: Listing = { files: [], leftOut: [], leftOutCount: 0, folders: [] };

  constructor({ signal }: Pick<CollectOptions, 'signal'>) {
    this.#reading = new ReadingProcess(COLLECTOR, signal);
  }

  get listing(): Listing {
    return this.#listing;
  }

  async list({ folder, user, patterns, bytesMax, filesMax = KEPT_FILES_MAX }: CollectOptions): Promise<void> {
    this.#reading.ask({ path: folder, user, patterns, filesMax, bytesMax } satisfies CollectRequest);
    const parts: Buffer[] = [];
    for await (const part of this.#reading.answer('list')) parts.push(Buffer.from(part));
    this.#listing = JSON.parse(Buffer.concat(parts).toString('utf8')) as Listing;
  }

  /** The content of a listed file, to be read to its end before the next. @throws ArtifactsFailed where it went meanwhile */
  async *read(file: KeptFile): AsyncGenerator<Uint8Array, void> {
    this.#ask(file);
    yield* this.#reading.answer('data');
  }

  /** As `read`, for who is done with each piece before asking for the next one: it is taken back then. */
  async *lend(file: KeptFile): AsyncGenerator<Uint8Array, void> {
    this.#ask(file);
    yield* this.#reading.lend('data');
  }

  #ask(file: KeptFile): void {
    const index = this.#listing.files.indexOf(file);
    this.#reading.ask({ index, sizeBytes: file.sizeBytes } satisfies ReadRequest);
  }

  async close(): Promise<void> {
    await this.#reading.close();
  }
}
