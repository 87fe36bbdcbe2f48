/**
 * How often packages were downloaded. Counts are added up here and written every few seconds by compare-and-set, so that
 * several registries count together; what a killed one had not written is lost, and nothing depends on it.
 */
import type { Collection, DocumentStore } from '@penstock/store';
import { downloadsSpec } from './collections.ts';
import type { Log } from '@penstock/telemetry/log';

export interface DownloadsOptions {
  readonly log: Pick<Log, 'warn'>;
  /** Called with what was written: new totals by extension. */
  changed(counts: readonly (readonly [key: string, count: number])[]): void;
}

const FLUSH_MS = 5_000;
const LIST_BATCH = 1_000;
/** Lost races with other registries; the next flush tries again. */
const TRIES_MAX = 10;

export class Downloads {
  readonly #documents: Collection<typeof downloadsSpec>;
  readonly #options: DownloadsOptions;
  readonly #counts = new Map<string, number>();
  readonly #unwritten = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor(store: DocumentStore, options: DownloadsOptions) {
    this.#documents = store.collection(downloadsSpec);
    this.#options = options;
  }

  async load(): Promise<void> {
    for (let after: { readonly id: string } | undefined; ;) {
      const documents = await this.#documents.list({ limit: LIST_BATCH, after });
      for (const { id, count } of documents) this.#counts.set(id, count);
      if (documents.length < LIST_BATCH) return;
      after = documents.at(-1);
    }
  }

  count(key: string): number {
    return (this.#counts.get(key) ?? 0) + (this.#unwritten.get(key) ?? 0);
  }

  note(key: string): void {
    this.#unwritten.set(key, (this.#unwritten.get(key) ?? 0) + 1);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** The extension is there no more. */
  async forget(key: string): Promise<void> {
    this.#unwritten.delete(key);
    this.#counts.delete(key);
    await this.#documents.delete(key);
  }

  /** Another registry has written these. */
  learn(counts: readonly (readonly [key: string, count: number])[]): void {
    for (const [key, count] of counts) this.#counts.set(key, Math.max(count, this.#counts.get(key) ?? 0));
  }

  /** Writes what is not written yet; what fails stays for the next time. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#flushing = this.#flushing.then(() => this.#write());
    return this.#flushing;
  }

  async #write(): Promise<void> {
    const written: (readonly [string, number])[] = [];
    try {
      for (const [key, more] of [...this.#unwritten]) {
        const total = await this.#add(key, more);
        if (total === null) continue;
        this.#counts.set(key, total);
        const left = (this.#unwritten.get(key) ?? more) - more;
        if (left === 0) this.#unwritten.delete(key);
        else this.#unwritten.set(key, left);
        written.push([key, total]);
      }
    } catch (error) {
      this.#options.log.warn({ err: error }, 'downloads could not be counted; trying again with the next one');
    }
    if (written.length > 0) this.#tell(written);
  }

  /** Others learn of them with the next count. */
  #tell(written: readonly (readonly [string, number])[]): void {
    try {
      this.#options.changed(written);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'other registries could not be told of counted downloads');
    }
  }

  async #add(key: string, more: number): Promise<number | null> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const before = await this.#documents.get(key);
      const count = (before?.count ?? 0) + more;
      const { stale } = await this.#documents.replaceNewer([
        { id: key, count, generation: (before?.generation ?? 0) + 1, revision: 0 },
      ]);
      if (stale.length === 0) return count;
    }
    return null;
  }
}
