/**
 * What is old in the store: closed runs, tombstones, entries of the audit log. Read by index in bounded pages, by id, so by age.
 */
import { runIdsBefore, type RunView } from '@penstock/run';
import { auditSpec } from './audit-log.ts';
import { DeletedRuns, type StoredStanding } from './deleted-runs.ts';
import { PLACES, type Collection, type DocumentStore } from './port.ts';
import { runsSpec } from './run-documents.ts';

/** A closed run, as far as it has to be known to be deleted for its age. */
export interface OldRun extends StoredStanding {
  readonly id: string;
  readonly pipelineName: string;
  /** By its tier; 0: as the server's setting says. */
  readonly keepDays: number;
  readonly keepRuns: number;
}

export interface PageBehind {
  /** The last id of the page before. */
  readonly after: string | undefined;
  readonly limit: number;
}

/** For the sweep of a partition's owner. */
export interface RetentionLedger {
  /** Closed runs that were created before a time; `last`: where the next page goes on, undefined behind the last one. */
  closedBefore(
    partition: number,
    before: number,
    page: PageBehind,
  ): Promise<{ readonly runs: readonly OldRun[]; readonly last: string | undefined }>;
  /** The oldest of the so many newest runs of a pipeline; undefined: it has not so many. */
  oldestOfNewest(run: Pick<OldRun, 'tenant' | 'pipelineName'>, count: number): Promise<string | undefined>;
  /** Milliseconds since 1970; undefined: the run is gone, or has not ended. */
  finishedAt(id: string): Promise<number | undefined>;
  tombstonesBefore: DeletedRuns['tombstonesBefore'];
  forget: DeletedRuns['forget'];
  /** Deletes at most `limit` entries of the audit log from before a time; how many. */
  forgetAudit(before: number, limit: number): Promise<number>;
}

export class StoredRetention implements RetentionLedger {
  readonly #runs: Collection<typeof runsSpec>;
  readonly #audit: Collection<typeof auditSpec>;
  readonly #deleted: DeletedRuns;

  /** The store has to be opened with `runCollections` and `auditCollections` among its collections. */
  constructor(store: DocumentStore) {
    this.#runs = store.collection(runsSpec);
    this.#audit = store.collection(auditSpec);
    this.#deleted = new DeletedRuns(store);
  }

  async closedBefore(
    partition: number,
    before: number,
    { after, limit }: PageBehind,
  ): ReturnType<RetentionLedger['closedBefore']> {
    const rows = await this.#runs.list({
      where: { partition, open: false, id: { lt: runIdsBefore(before) } },
      limit,
      ...PLACES,
      ...(after === undefined ? {} : { after: { id: after } }),
    });
    const runs = rows.map(({ id, tenant, parent, open, pipelineName, keepDays, keepRuns }) => ({
      id,
      tenant,
      parent,
      open,
      pipelineName,
      keepDays,
      keepRuns,
    }));
    return { runs, last: rows.length < limit ? undefined : rows.at(-1)?.id };
  }

  async oldestOfNewest(
    { tenant, pipelineName }: Pick<OldRun, 'tenant' | 'pipelineName'>,
    count: number,
  ): Promise<string | undefined> {
    const rows = await this.#runs.list({
      where: { tenant, pipelineName },
      orderBy: { field: 'id', direction: 'desc' },
      limit: count,
      ...PLACES,
    });
    return rows.length < count ? undefined : rows.at(-1)?.id;
  }

  async finishedAt(id: string): Promise<number | undefined> {
    const row = await this.#runs.get(id, { parts: ['view'] });
    if (row === null || row.view === '') return undefined;
    const { finishedAt } = JSON.parse(String(row.view)) as RunView;
    return finishedAt === null ? undefined : Date.parse(finishedAt);
  }

  tombstonesBefore(...asked: Parameters<DeletedRuns['tombstonesBefore']>): ReturnType<DeletedRuns['tombstonesBefore']> {
    return this.#deleted.tombstonesBefore(...asked);
  }

  async forget(ids: readonly string[]): Promise<void> {
    await this.#deleted.forget(ids);
  }

  async forgetAudit(before: number, limit: number): Promise<number> {
    const id = { lt: Math.floor(before).toString(16).padStart(12, '0') };
    return await this.#audit.deleteWhere({ where: { id }, orderBy: { field: 'id', direction: 'asc' }, limit });
  }
}
