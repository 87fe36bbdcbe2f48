/**
 * Where the logs of ended runs are in the object storage: a pointer per run (P34). One is written once what it points at was read back,
 * and only where there is none; from then on the chunks in `LOGS` are not needed.
 *
 *  LOGARCHIVE-1 A pointer changes only over a lower generation, to a pack that has the same frames: of two that rewrite one pack at once,
 *     one stands.
 */
import { BATCH_DOCUMENTS_MAX, IDS_MAX } from './checks.ts';
import { isTombstone } from './deleted-runs.ts';
import { logArchiveSpec } from './log-archive-spec.ts';
import type { Collection, DocumentOf, DocumentStore } from './port.ts';
import { runsSpec } from './run-documents.ts';

/** Some consecutive chunks of the run: bytes of one object of the pack. */
export type ArchivedFrame = readonly [
  object: number,
  from: number,
  bytes: number,
  firstSequence: number,
  lastSequence: number,
];

export interface ArchivedLog {
  readonly runId: string;
  readonly tenant: string;
  readonly pack: string;
  readonly objects: number;
  readonly bytes: number;
  readonly archivedAt: number;
  readonly generation: number;
  readonly frames: readonly ArchivedFrame[];
  /** The sequence of the last chunk of each runner. */
  readonly last: Readonly<Record<string, number>>;
}

/** A pointer without its frames. */
export type ArchivedHead = Omit<ArchivedLog, 'frames' | 'last'>;

/** What the archive has to know of a run with a log. Absent: the store has no such run. */
export interface LogStanding {
  readonly state: 'open' | 'closed' | 'deleted';
  readonly tenant: string;
  readonly key: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

const FORMAT = 1;

export class LogArchive {
  readonly #pointers: Collection<typeof logArchiveSpec>;
  readonly #runs: Collection<typeof runsSpec>;

  /** The store has to be opened with `runCollections` among its collections. */
  constructor(store: Pick<DocumentStore, 'collection'>) {
    this.#pointers = store.collection(logArchiveSpec);
    this.#runs = store.collection(runsSpec);
  }

  /** Null: the run is not archived. */
  async of(runId: string): Promise<ArchivedLog | null> {
    const row = await this.#pointers.get(runId);
    return row === null ? null : archivedOf(row);
  }

  /** At most 1,000 ids. */
  async standings(runIds: readonly string[]): Promise<ReadonlyMap<string, LogStanding>> {
    const rows = await this.#runs.getMany(runIds, { parts: [] });
    return new Map(
      rows.map((row) => {
        const { id, open, tenant, key, createdAt } = row;
        const state = isTombstone(row) ? 'deleted' : open ? 'open' : 'closed';
        return [id, { state, tenant, key, createdAt }];
      }),
    );
  }

  /** Which of these are archived; at most 1,000 ids. */
  async among(runIds: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.#pointers.getMany(runIds, { parts: [] });
    return new Set(rows.map(({ id }) => id));
  }

  /** False: it is archived elsewhere. */
  async add(log: ArchivedLog): Promise<boolean> {
    return (await this.#pointers.insert(rowOf(log))) === 'inserted';
  }

  /** LOGARCHIVE-1. Each with the next generation of what was read. */
  async move(logs: readonly ArchivedLog[]): Promise<void> {
    for (let from = 0; from < logs.length; from += BATCH_DOCUMENTS_MAX)
      await this.#pointers.replaceNewer(logs.slice(from, from + BATCH_DOCUMENTS_MAX).map(rowOf));
  }

  async remove(runId: string): Promise<void> {
    await this.#pointers.delete(runId);
  }

  /** Of one pack, by run; at most 1,000. */
  async ofPack(pack: string, limit: number): Promise<readonly ArchivedHead[]> {
    const rows = await this.#pointers.list({ where: { pack }, limit, parts: [] });
    return rows.map(headOf);
  }

  /** Archived before a time, the oldest first. */
  async before(time: number, limit: number): Promise<readonly ArchivedHead[]> {
    const orderBy = { field: 'archivedAt', direction: 'asc' } as const;
    const rows = await this.#pointers.list({ where: { archivedAt: { lt: time } }, orderBy, limit, parts: [] });
    return rows.map(headOf);
  }

  /** All there are, in pages, by run. */
  async *pages(): AsyncGenerator<readonly ArchivedHead[], void> {
    for (let after: { readonly id: string } | undefined; ;) {
      const rows = await this.#pointers.list({ limit: IDS_MAX, parts: [], ...(after === undefined ? {} : { after }) });
      if (rows.length > 0) yield rows.map(headOf);
      const last = rows.at(-1);
      if (rows.length < IDS_MAX || last === undefined) return;
      after = { id: last.id };
    }
  }
}

function headOf(row: DocumentOf<typeof logArchiveSpec, never>): ArchivedHead {
  const { id, tenant, pack, objects, bytes, archivedAt, generation } = row;
  return { runId: id, tenant, pack, objects, bytes, archivedAt, generation };
}

function archivedOf(row: DocumentOf<typeof logArchiveSpec>): ArchivedLog {
  return { ...headOf(row), ...(JSON.parse(String(row.frames)) as Pick<ArchivedLog, 'frames' | 'last'>) };
}

function rowOf(log: ArchivedLog): DocumentOf<typeof logArchiveSpec> {
  const { runId, tenant, pack, objects, bytes, archivedAt, generation, frames, last } = log;
  const parts = { frames: JSON.stringify({ frames, last }) };
  return { id: runId, tenant, pack, objects, bytes, archivedAt, format: FORMAT, generation, ...parts };
}
