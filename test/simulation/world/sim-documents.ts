/**
 * The port to the document store, as one process of a world has it: the collections of the registry and of caches, each operation
 * done whole at one moment or not at all. Of the runs it shows as much as says who repeats a deleted one.
 */
import {
  StoreUnavailable,
  type Collection,
  type CollectionSpec,
  type DocumentOf,
  type DocumentStore,
  type Values,
} from '@penstock/store';
import type { Network } from './network.ts';
import type { SimNode } from './sim-node.ts';
import type { SimStore, StoredDocument } from './store.ts';

/** What a collection is asked for, whichever it is. */
interface Selected {
  readonly where?: Readonly<Record<string, unknown>> | undefined;
  readonly orderBy?: { readonly field: PropertyKey; readonly direction: 'asc' | 'desc' } | undefined;
  readonly after?: { readonly id: string; readonly value?: unknown } | undefined;
  readonly limit: number;
}

const NOT_HERE = 'nothing in a world asks for this of a collection';
const RUNS = 'runs';
/** Of `CacheEntries`. */
export const CACHES = 'cache_entries';

export class SimDocuments implements DocumentStore {
  readonly #network: Network;
  readonly #node: SimNode;

  constructor(network: Network, node: SimNode) {
    this.#network = network;
    this.#node = node;
  }

  collection<S extends CollectionSpec>(spec: S): Collection<S> {
    return new SimCollection<S>(this.#network, this.#node, spec);
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}
}

class SimCollection<S extends CollectionSpec> implements Collection<S> {
  readonly #network: Network;
  readonly #node: SimNode;
  readonly #spec: S;

  constructor(network: Network, node: SimNode, spec: S) {
    this.#network = network;
    this.#node = node;
    this.#spec = spec;
  }

  get(id: string): Promise<never> {
    return this.#ask((store) => this.#rows(store).get(id) ?? null) as Promise<never>;
  }

  list(selection: Selected): Promise<never[]> {
    return this.#ask((store) => selected([...this.#rows(store).values()], selection)) as Promise<never[]>;
  }

  insert(document: DocumentOf<S>): Promise<'inserted' | 'duplicate'> {
    const { world } = this.#network;
    const isLast = world.mutation === 'newest-caches-win' && this.#spec.name === CACHES;
    return this.#ask((store) => {
      const rows = this.#rows(store);
      if (rows.has(document.id) && !isLast) return 'duplicate';
      this.#change(rows, document.id, document);
      return 'inserted';
    });
  }

  replaceNewer(documents: readonly DocumentOf<S>[]): Promise<{ readonly stale: readonly string[] }> {
    return this.#ask((store) => {
      const rows = this.#rows(store);
      const stale: string[] = [];
      for (const document of documents) {
        const known = rows.get(document.id);
        if (known === undefined || this.#isOlder(known, document)) this.#change(rows, document.id, document);
        else stale.push(document.id);
      }
      return { stale };
    });
  }

  replaceStanding(document: DocumentOf<S>): Promise<boolean> {
    return this.#ask((store) => {
      const rows = this.#rows(store);
      const known = rows.get(document.id);
      if (known === undefined || !this.#isOlder(known, document)) return false;
      this.#change(rows, document.id, document);
      return true;
    });
  }

  delete(id: string, only: Values<S> = {}): Promise<boolean> {
    return this.#ask((store) => {
      const rows = this.#rows(store);
      const row = rows.get(id);
      if (row === undefined || Object.entries(only).some(([field, value]) => row[field] !== value)) return false;
      this.#change(rows, id, undefined);
      return true;
    });
  }

  deleteWhere(selection: Selected): Promise<number> {
    return this.#ask((store) => {
      const rows = this.#rows(store);
      const found = selected([...rows.values()], selection);
      for (const { id } of found) this.#change(rows, id, undefined);
      return found.length;
    });
  }

  getMany(): Promise<never> {
    return Promise.reject(new Error(NOT_HERE));
  }

  listFresh(): Promise<never> {
    return Promise.reject(new Error(NOT_HERE));
  }

  #change(rows: Map<string, StoredDocument>, id: string, document: StoredDocument | undefined): void {
    this.#network.world.witness.changed(this.#spec.name, rows.get(id), document);
    if (document === undefined) rows.delete(id);
    else rows.set(id, { ...document });
  }

  #isOlder(known: StoredDocument, document: StoredDocument): boolean {
    const [major = '', minor = ''] = this.#spec.version ?? [];
    const [a, b] = [Number(known[major]), Number(document[major])];
    return a < b || (a === b && Number(known[minor]) < Number(document[minor]));
  }

  #rows(store: SimStore): Map<string, StoredDocument> {
    if (this.#spec.name === RUNS) return runRows(store);
    const known = store.collections.get(this.#spec.name) ?? new Map<string, StoredDocument>();
    store.collections.set(this.#spec.name, known);
    return known;
  }

  #ask<T>(work: (store: SimStore) => T): Promise<T> {
    return this.#network.world.promise((resolve, reject) =>
      this.#network.askStore(this.#node, work, resolve, ({ message }) =>
        reject(new StoreUnavailable('of the world', message)),
      ),
    );
  }
}

/** As `DeletedRuns` reads them: a tombstone is of a partition below 0, and has its tenant where a run has its key. */
function runRows({ documents, tombstones }: SimStore): Map<string, StoredDocument> {
  const rows = new Map<string, StoredDocument>();
  for (const { id, partition, tenant, key, parent, view } of documents.values())
    rows.set(id, { id, partition, tenant, key, parent, view });
  for (const { id, partition, tenant, parent } of tombstones.values())
    rows.set(id, { id, partition: -1 - partition, tenant: '', key: tenant, parent, view: '' });
  return rows;
}

function selected(
  rows: readonly StoredDocument[],
  { where = {}, orderBy = { field: 'id', direction: 'asc' }, after, limit }: Selected,
): StoredDocument[] {
  const field = String(orderBy.field);
  const sign = orderBy.direction === 'asc' ? 1 : -1;
  const order = (a: StoredDocument, b: StoredDocument): number =>
    sign * (compared(a[field], b[field]) || compared(a.id, b.id));
  const begin = after === undefined ? undefined : { id: after.id, [field]: field === 'id' ? after.id : after.value };
  return rows
    .filter((row) => Object.entries(where).every(([name, condition]) => meets(row[name], condition)))
    .filter((row) => begin === undefined || order(row, begin) > 0)
    .toSorted(order)
    .slice(0, limit);
}

function compared(a: unknown, b: unknown): number {
  if (a === b) return 0;
  return (a as string | number) < (b as string | number) ? -1 : 1;
}

function meets(value: unknown, condition: unknown): boolean {
  if (typeof condition !== 'object' || condition === null) return value === condition;
  if ('in' in condition) return (condition.in as readonly unknown[]).includes(value);
  const { gt, gte, lt, lte } = condition as Record<string, string | number | undefined>;
  return (
    (gt === undefined || compared(value, gt) > 0) &&
    (gte === undefined || compared(value, gte) >= 0) &&
    (lt === undefined || compared(value, lt) < 0) &&
    (lte === undefined || compared(value, lte) <= 0)
  );
}
