/** Schedules as their owners keep them (P28): a document each, open for ever, written over a lower (incarnation, sequence) only. */
import type { ScheduleState, Sequence } from '@penstock/run';
import { BATCH_DOCUMENTS_MAX } from './checks.ts';
import type { Collection, CollectionSpec, DocumentOf, DocumentStore } from './port.ts';

export const schedulesSpec = {
  name: 'schedules',
  fields: { partition: 'integer', tenant: 'string', incarnation: 'integer', sequence: 'integer' },
  parts: ['state'],
  indexes: [['partition'], ['tenant'], ['partition', 'incarnation', 'sequence'], ['partition', 'incarnation']],
  version: ['incarnation', 'sequence'],
} as const satisfies CollectionSpec;

export interface ScheduleDocument {
  readonly partition: number;
  /** The commit that this document stands for. */
  readonly incarnation: number;
  readonly sequence: Sequence;
  readonly state: ScheduleState;
}

export interface SchedulesLedger {
  /** Writes those that are newer than what is stored. Any number; sent in batches. */
  saveSchedules(documents: readonly ScheduleDocument[]): Promise<void>;
  schedulesOf(partition: number): AsyncIterable<ScheduleDocument>;
  /** Which commit of the partition the newest of its documents stands for; null: it has none. */
  newestSchedule(partition: number): Promise<Pick<ScheduleDocument, 'incarnation' | 'sequence'> | null>;
}

/** Some KiB each as a rule, and half a MiB at most. */
const ITERATION_BATCH = 100;
const BATCH_CHARACTERS_MAX = 4 * 1024 * 1024;

export class ScheduleDocuments implements SchedulesLedger {
  readonly #schedules: Collection<typeof schedulesSpec>;

  /** The store has to be opened with `runCollections` among its collections. */
  constructor(store: DocumentStore) {
    this.#schedules = store.collection(schedulesSpec);
  }

  async saveSchedules(documents: readonly ScheduleDocument[]): Promise<void> {
    for (let from = 0; from < documents.length;) {
      const batch: DocumentOf<typeof schedulesSpec>[] = [];
      for (
        let characters = 0;
        from < documents.length && batch.length < BATCH_DOCUMENTS_MAX && characters < BATCH_CHARACTERS_MAX;
        from++
      ) {
        const { partition, incarnation, sequence, state } = documents[from] as ScheduleDocument;
        const text = JSON.stringify(state);
        batch.push({
          id: state.id,
          partition,
          tenant: state.tenant.toWellFormed(),
          incarnation,
          sequence,
          state: text,
        });
        characters += text.length;
      }
      await this.#schedules.replaceNewer(batch);
    }
  }

  async *schedulesOf(partition: number): AsyncIterable<ScheduleDocument> {
    let after: { readonly id: string } | undefined;
    for (;;) {
      const rows = await this.#schedules.list({ where: { partition }, limit: ITERATION_BATCH, after });
      for (const { incarnation, sequence, state } of rows)
        yield { partition, incarnation, sequence, state: JSON.parse(String(state)) as ScheduleState };
      if (rows.length < ITERATION_BATCH) return;
      after = rows.at(-1);
    }
  }

  async newestSchedule(partition: number): Promise<Pick<ScheduleDocument, 'incarnation' | 'sequence'> | null> {
    const newest = { limit: 1, parts: [] };
    const [last] = await this.#schedules.list({
      ...newest,
      where: { partition },
      orderBy: { field: 'incarnation', direction: 'desc' },
    });
    if (last === undefined) return null;
    const [found = last] = await this.#schedules.list({
      ...newest,
      where: { partition, incarnation: last.incarnation },
      orderBy: { field: 'sequence', direction: 'desc' },
    });
    return { incarnation: found.incarnation, sequence: found.sequence };
  }
}
