/** Schedules as their owners keep them (P28): a document each, open for ever, written over a lower (incarnation, sequence) only. */
import type { ScheduleState, Sequence } from '@penstock/run';
import { BATCH_DOCUMENTS_MAX } from './checks.ts';
import { listReadable } from './damaged-lists.ts';
import { isDamage } from './errors.ts';
import type { Collection, CollectionSpec, DocumentOf, DocumentStore, Part } from './port.ts';

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

/** A schedule whose document is damaged. */
export interface UnreadableSchedule {
  readonly id: string;
  /** Why. */
  readonly unreadable: Error;
}

export interface SchedulesLedger {
  /** Writes those that are newer than what is stored. Any number; sent in batches. */
  saveSchedules(documents: readonly ScheduleDocument[]): Promise<void>;
  /** One that is damaged holds up none of the others. */
  schedulesOf(partition: number): AsyncIterable<ScheduleDocument | UnreadableSchedule>;
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

  async *schedulesOf(partition: number): AsyncIterable<ScheduleDocument | UnreadableSchedule> {
    let after: { readonly id: string } | undefined;
    do {
      const selection = { where: { partition }, limit: ITERATION_BATCH, after };
      const { documents, last } = await listReadable(this.#schedules, selection);
      for (const found of documents)
        yield 'unreadable' in found ? { id: found.place.id, unreadable: found.unreadable } : decoded(found);
      after = last;
    } while (after !== undefined);
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

function decoded(row: DocumentOf<typeof schedulesSpec>): ScheduleDocument | UnreadableSchedule {
  const { id, partition, incarnation, sequence } = row;
  try {
    return { partition, incarnation, sequence, state: stateOf(id, row.state) };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { id, unreadable: error };
  }
}

/** Throws a SyntaxError where it is damaged. */
function stateOf(id: string, text: Part): ScheduleState {
  const state = JSON.parse(String(text)) as Partial<ScheduleState> | null;
  if (
    state?.id !== id ||
    typeof state.key !== 'string' ||
    typeof state.text !== 'string' ||
    typeof state.delivery?.sequence !== 'number' ||
    !Array.isArray(state.lines)
  )
    throw new SyntaxError('a schedule has no state');
  return state as ScheduleState;
}
