/**
 * Runs that are deleted (P34). A tombstone takes the place of a run's document, under its id and over its version: whoever asks
 * whether the id was used learns that it was, and nobody reads anything of the run. It keeps who the run belonged to, since what the
 * run has kept may live on in those that repeat it.
 *
 *  TOMBSTONE-1 No list of runs, of whatever tenant or partition, has a tombstone: it is of no tenant, and of a partition below 0.
 */
import type { RunView, Sequence } from '@penstock/run';
import { BATCH_DOCUMENTS_MAX, IDS_MAX } from './checks.ts';
import { PLACES, type Collection, type DocumentOf, type DocumentStore } from './port.ts';
import { isDamage } from './errors.ts';
import { decodeView, runsSpec } from './run-documents.ts';

export interface Tombstone {
  readonly id: string;
  readonly partition: number;
  readonly tenant: string;
  /** The run that it has repeated; '' for none. */
  readonly parent: string;
  /** Milliseconds since 1970. */
  readonly deletedAt: number;
  /** The commit that has deleted it. */
  readonly incarnation: number;
  readonly sequence: Sequence;
}

/** What its owner has to know of a run that is to be deleted. */
export interface StoredStanding {
  readonly tenant: string;
  readonly parent: string;
  readonly open: boolean;
}

/** For the owner of a partition. */
export interface DeletionsLedger {
  /** Null: there is no such run, or it is deleted. */
  standingOf(id: string): Promise<StoredStanding | null>;
  /** Writes those that are newer than what is stored. Any number; sent in batches. */
  saveTombstones(tombstones: readonly Tombstone[]): Promise<void>;
  /** Which of these runs have been deleted. */
  deletedAmong(ids: readonly string[]): Promise<Set<string>>;
}

const DELETED = 'DELETED';
/** Runs that repeat a deleted one, or repeat one that does, that are looked at: more of them, and all that it has kept stays. */
const HEIRS_MAX = 200;

export function isTombstone({ partition }: { readonly partition: number }): boolean {
  return partition < 0;
}

/** Where the tombstones of a partition stand. */
function placeOf(partition: number): number {
  return -1 - partition;
}

export class DeletedRuns implements DeletionsLedger {
  readonly #runs: Collection<typeof runsSpec>;

  /** The store has to be opened with `runCollections` among its collections. */
  constructor(store: DocumentStore) {
    this.#runs = store.collection(runsSpec);
  }

  async standingOf(id: string): Promise<StoredStanding | null> {
    const row = await this.#runs.get(id, { parts: [] });
    return row === null || isTombstone(row) ? null : { tenant: row.tenant, parent: row.parent, open: row.open };
  }

  async saveTombstones(tombstones: readonly Tombstone[]): Promise<void> {
    for (let from = 0; from < tombstones.length; from += BATCH_DOCUMENTS_MAX)
      await this.#runs.replaceNewer(tombstones.slice(from, from + BATCH_DOCUMENTS_MAX).map(rowOf));
  }

  async deletedAmong(ids: readonly string[]): Promise<Set<string>> {
    const found = new Set<string>();
    for (let from = 0; from < ids.length; from += IDS_MAX)
      for (const row of await this.#runs.getMany(ids.slice(from, from + IDS_MAX), PLACES))
        if (isTombstone(row)) found.add(row.id);
    return found;
  }

  /** Some of a partition's, by id behind `after`: which of them nobody needs any more, and the last one looked at. */
  async tombstonesBefore(
    partition: number,
    before: number,
    { after, limit }: { readonly after: string | undefined; readonly limit: number },
  ): Promise<{ readonly over: readonly string[]; readonly last: string | undefined }> {
    const rows = await this.#runs.list({
      where: { partition: placeOf(partition), open: false },
      limit,
      parts: [],
      ...(after === undefined ? {} : { after: { id: after } }),
    });
    const over: string[] = [];
    for (const row of rows)
      // One that others repeat says whose they are: it goes after them.
      if (row.createdAt < before && (await this.#repeatedBy(row, 1)).length === 0) over.push(row.id);
    return { over, last: rows.length < limit ? undefined : rows.at(-1)?.id };
  }

  async forget(ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.#runs.delete(id);
  }

  /**
   * What those look like that repeat a deleted run, or one that does: they may have taken over what it has kept. Undefined: they are
   * too many to be read, or one of them is damaged. Of a run that was never there, or whose tombstone is gone, there are none.
   */
  async heirsOf(id: string): Promise<readonly RunView[] | undefined> {
    const deleted = await this.#runs.get(id, { parts: [] });
    if (deleted === null || !isTombstone(deleted)) return [];
    const heirs: RunView[] = [];
    const toAsk: Pick<Row, 'id' | 'key'>[] = [deleted];
    for (let asked = 0; asked < toAsk.length; asked++) {
      for (const row of await this.#repeatedBy(toAsk[asked] as Row, HEIRS_MAX)) {
        if (toAsk.length > HEIRS_MAX) return undefined;
        toAsk.push({ id: row.id, key: deleted.key });
        if (isTombstone(row)) continue;
        const found = await this.#viewOf(row.id);
        if (found === 'damaged') return undefined;
        if (found !== null) heirs.push(found);
      }
    }
    return heirs;
  }

  /** Null: it is deleted by now. */
  async #viewOf(id: string): Promise<RunView | null | 'damaged'> {
    try {
      const row = await this.#runs.get(id, { parts: ['view'] });
      return row === null || isTombstone(row) ? null : decodeView(id, row.view);
    } catch (error) {
      if (!isDamage(error)) throw error;
      return 'damaged';
    }
  }

  /** Deleted ones too. A tombstone has its tenant where runs have their key. */
  async #repeatedBy({ id, key: tenant }: Pick<Row, 'id' | 'key'>, limit: number): Promise<Row[]> {
    return await this.#runs.list({ where: { tenant: { in: [tenant, ''] }, parent: id }, limit, parts: [] });
  }
}

type Row = DocumentOf<typeof runsSpec, never>;

function rowOf({
  id,
  partition,
  tenant,
  parent,
  deletedAt,
  incarnation,
  sequence,
}: Tombstone): DocumentOf<typeof runsSpec> {
  return {
    id,
    partition: placeOf(partition),
    tenant: '',
    key: tenant.toWellFormed(),
    pipelineName: '',
    createdAt: deletedAt,
    status: DELETED,
    repository: '',
    ref: '',
    sameAs: '',
    parent,
    keepDays: 0,
    keepRuns: 0,
    open: false,
    incarnation,
    sequence,
    view: '',
    story: '',
  };
}
