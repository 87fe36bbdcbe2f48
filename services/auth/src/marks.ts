/** Decisions that can be taken once, whoever asks and in however many processes: each is the insert of a document. */
import type { Collection, DocumentStore } from '@penstock/store';
import { marksSpec, type MarkRow } from './collections.ts';

export interface Mark {
  readonly value?: string | undefined;
  readonly userId?: string | undefined;
  readonly at: number;
  readonly expiresAt: number;
}

export class Marks {
  readonly #rows: Collection<typeof marksSpec>;

  constructor(store: DocumentStore) {
    this.#rows = store.collection(marksSpec);
  }

  /** True for the one caller that set it. */
  async set(id: string, mark: Mark): Promise<boolean> {
    return (
      (await this.#rows.insert({
        id,
        value: mark.value ?? '',
        userId: mark.userId ?? '',
        at: mark.at,
        expiresAt: mark.expiresAt,
      })) === 'inserted'
    );
  }

  async get(id: string): Promise<MarkRow | null> {
    return await this.#rows.get(id);
  }
}
