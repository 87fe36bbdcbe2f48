/**
 * The store on one machine: one SQLite file, in WAL mode, behind a worker thread (docs/adr/0005-sqlite.md says why).
 * Several processes may open one file; each has its own thread and waits for the others' writes.
 */
import {
  checkBatch,
  checkedValues,
  checkSpec,
  columnsOf,
  documentOf,
  joinFresh,
  possibleIds,
  rowOf,
  versionOf,
  type Row,
} from '../checks.ts';
import { StoreUsageError } from '../errors.ts';
import type {
  Collection,
  CollectionSpec,
  DocumentOf,
  DocumentStore,
  FreshList,
  KnownVersion,
  PartName,
  Reading,
  Selection,
  Values,
} from '../port.ts';
import { planQuery } from '../query-plan.ts';
import { WorkerLink } from './worker-link.ts';

export interface SqliteStoreOptions {
  /** The file; made if it is not there, its folder is not. */
  readonly path: string;
  readonly collections: readonly CollectionSpec[];
  /**
   * Default `full`: a settled write survives a power cut. A purge of the journal relies on it, and so do sessions and
   * tokens, which are in no journal. In batches it costs next to nothing; `normal` is for tests.
   */
  readonly synchronous?: 'full' | 'normal' | undefined;
  /** Of each call, opening apart; default 10 s, more than two checkpoints on a slow disk. */
  readonly deadlineMs?: number | undefined;
}

const DEADLINE_MS = 10_000;

/** Rejects with StoreUnavailable, StoreCorrupt or StoreIncompatible, each naming the file. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<DocumentStore> {
  const { path, collections } = options;
  const deadlineMs = options.deadlineMs ?? DEADLINE_MS;
  for (const spec of collections) checkSpec(path, spec);
  const names = collections.map(({ name }) => name);
  if (new Set(names).size !== names.length)
    throw new StoreUsageError(path, `a collection is declared twice: ${names.join(', ')}`);
  // Another process's lock is waited for half of a call's time, so that the answer says "locked" and not "no answer".
  const link = await WorkerLink.open(
    { path, synchronous: options.synchronous ?? 'full', lockWaitMs: Math.ceil(deadlineMs / 2), deadlineMs },
    collections,
  );
  return new SqliteStore(path, link, new Map(collections.map((spec) => [spec.name, spec])));
}

class SqliteStore implements DocumentStore {
  readonly #path: string;
  readonly #link: WorkerLink;
  readonly #declared: ReadonlyMap<string, CollectionSpec>;

  constructor(path: string, link: WorkerLink, declared: ReadonlyMap<string, CollectionSpec>) {
    this.#path = path;
    this.#link = link;
    this.#declared = declared;
  }

  collection<S extends CollectionSpec>(spec: S): Collection<S> {
    if (this.#declared.get(spec.name) !== spec)
      throw new StoreUsageError(this.#path, `the collection '${spec.name}' was not declared when the store was opened`);
    return new SqliteCollection(this.#path, this.#link, spec);
  }

  async ping(): Promise<void> {
    await this.#link.call({ kind: 'ping' });
  }

  close(): Promise<void> {
    return this.#link.close();
  }
}

class SqliteCollection<S extends CollectionSpec> implements Collection<S> {
  readonly #path: string;
  readonly #link: WorkerLink;
  readonly #spec: S;

  constructor(path: string, link: WorkerLink, spec: S) {
    this.#path = path;
    this.#link = link;
    this.#spec = spec;
  }

  async get<P extends PartName<S> = PartName<S>>(id: string, options?: Reading<P>): Promise<DocumentOf<S, P> | null> {
    const [document] = await this.getMany([id], options);
    return document ?? null;
  }

  async getMany<P extends PartName<S> = PartName<S>>(
    asked: readonly string[],
    options?: Reading<P>,
  ): Promise<DocumentOf<S, P>[]> {
    const ids = possibleIds(this.#path, this.#spec, asked);
    if (ids.length === 0) return [];
    const wanted = { parts: this.#parts(options?.parts), isLenient: options?.isLenient === true };
    const rows = await this.#link.call({ kind: 'get', collection: this.#spec.name, ids, ...wanted });
    return this.#documents(rows, wanted.parts);
  }

  async list<P extends PartName<S> = PartName<S>>(selection: Selection<S, P>): Promise<DocumentOf<S, P>[]> {
    const plan = planQuery(this.#path, this.#spec, selection);
    const wanted = { parts: this.#parts(selection.parts), isLenient: selection.isLenient === true };
    const rows = await this.#link.call({ kind: 'list', collection: this.#spec.name, plan, ...wanted });
    return this.#documents(rows, wanted.parts);
  }

  async listFresh<P extends PartName<S> = PartName<S>>(
    selection: Selection<S, P>,
    { known, freshMax }: { readonly known: readonly KnownVersion[]; readonly freshMax: number },
  ): Promise<FreshList<S, P>> {
    const plan = planQuery(this.#path, this.#spec, selection);
    const [version, parts] = [versionOf(this.#path, this.#spec), this.#parts(selection.parts)];
    const collection = this.#spec.name;
    const { versions, fresh, rows, isLast } = await this.#link.call({
      kind: 'listFresh',
      ...{ collection, plan, parts, version, known, freshMax },
    });
    return { documents: joinFresh(versions, fresh, this.#documents<P>(rows, parts)), isLast };
  }

  async insert(document: DocumentOf<S>): Promise<'inserted' | 'duplicate'> {
    const { row, bytes } = rowOf(this.#path, this.#spec, document);
    return (await this.#link.call({ kind: 'insert', collection: this.#spec.name, row }, bytes))
      ? 'inserted'
      : 'duplicate';
  }

  async replaceNewer(documents: readonly DocumentOf<S>[]): Promise<{ readonly stale: readonly string[] }> {
    const rows = documents.map((document) => rowOf(this.#path, this.#spec, document));
    checkBatch(this.#path, this.#spec, rows);
    if (rows.length === 0) return { stale: [] };
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
    return {
      stale: await this.#link.call(
        { kind: 'replaceNewer', collection: this.#spec.name, rows: rows.map(({ row }) => row) },
        bytes,
      ),
    };
  }

  async replaceStanding(document: DocumentOf<S>): Promise<boolean> {
    const checked = rowOf(this.#path, this.#spec, document);
    checkBatch(this.#path, this.#spec, [checked]);
    const { row, bytes } = checked;
    return this.#link.call({ kind: 'replaceStanding', collection: this.#spec.name, row }, bytes);
  }

  async delete(id: string, only: Values<S> = {}): Promise<boolean> {
    const values = checkedValues(this.#path, this.#spec, only);
    if (possibleIds(this.#path, this.#spec, [id]).length === 0) return false;
    return this.#link.call({ kind: 'delete', collection: this.#spec.name, id, only: values });
  }

  async deleteWhere(selection: Pick<Selection<S>, 'where' | 'orderBy' | 'limit'>): Promise<number> {
    const plan = planQuery(this.#path, this.#spec, selection);
    return this.#link.call({ kind: 'deleteWhere', collection: this.#spec.name, plan });
  }

  #parts(wanted: readonly string[] | undefined): string[] {
    const parts = [...(wanted ?? this.#spec.parts)];
    for (const part of parts)
      if (!this.#spec.parts.includes(part))
        throw new StoreUsageError(this.#path, `collection '${this.#spec.name}': '${part}' is no part`);
    return parts;
  }

  #documents<P extends PartName<S>>(rows: readonly Row[], parts: readonly string[]): DocumentOf<S, P>[] {
    const columns = [...columnsOf(this.#spec).slice(0, -this.#spec.parts.length || undefined), ...parts];
    const types = columns.map((column) => this.#spec.fields[column]);
    return rows.map((row) => documentOf(columns, types, row) as DocumentOf<S, P>);
  }
}
