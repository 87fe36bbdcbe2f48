/** A SQLite file and its tables, synchronous: what the worker thread runs. An operation names all it needs. */
import type { DatabaseSync } from 'node:sqlite';
import type { Row } from '../checks.ts';
import type { CollectionSpec, Scalar } from '../port.ts';
import type { QueryPlan } from '../query-plan.ts';
import { openDatabase, type DatabaseOptions } from './database.ts';
import { Table, type FreshRows, type FreshWanted, type RowsWanted } from './table.ts';

export type Operation =
  | ({ readonly kind: 'get'; readonly collection: string; readonly ids: readonly string[] } & RowsWanted)
  | ({ readonly kind: 'list'; readonly collection: string; readonly plan: QueryPlan } & RowsWanted)
  | ({ readonly kind: 'listFresh'; readonly collection: string } & FreshWanted)
  | { readonly kind: 'insert'; readonly collection: string; readonly row: Row }
  | { readonly kind: 'replaceNewer'; readonly collection: string; readonly rows: readonly Row[] }
  | { readonly kind: 'replaceStanding'; readonly collection: string; readonly row: Row }
  | {
      readonly kind: 'delete';
      readonly collection: string;
      readonly id: string;
      readonly only: readonly (readonly [field: string, value: Scalar])[];
    }
  | { readonly kind: 'deleteWhere'; readonly collection: string; readonly plan: QueryPlan }
  | { readonly kind: 'ping' };

export interface Results {
  readonly get: Row[];
  readonly list: Row[];
  readonly listFresh: FreshRows;
  readonly insert: boolean;
  readonly replaceNewer: string[];
  readonly replaceStanding: boolean;
  readonly delete: boolean;
  readonly deleteWhere: number;
  readonly ping: null;
}

export class SqliteEngine {
  readonly #database: DatabaseSync;
  readonly #tables: ReadonlyMap<string, Table>;

  /** Throws what `failureOf` tells apart. */
  constructor(options: DatabaseOptions, specs: readonly CollectionSpec[]) {
    this.#database = openDatabase(options, specs);
    this.#tables = new Map(specs.map((spec) => [spec.name, new Table(this.#database, spec)]));
  }

  execute(operation: Operation): Results[Operation['kind']] {
    switch (operation.kind) {
      case 'get':
        return this.#table(operation.collection).get(operation.ids, operation);
      case 'list':
        return this.#table(operation.collection).list(operation.plan, operation);
      case 'listFresh':
        return this.#table(operation.collection).listFresh(operation);
      case 'insert':
        return this.#table(operation.collection).insert(operation.row);
      case 'replaceNewer':
        return this.#table(operation.collection).replaceNewer(operation.rows);
      case 'replaceStanding':
        return this.#table(operation.collection).replaceStanding(operation.row);
      case 'delete':
        return this.#table(operation.collection).delete(operation.id, operation.only);
      case 'deleteWhere':
        return this.#table(operation.collection).deleteWhere(operation.plan);
      case 'ping':
        this.#database.exec('SELECT 1 FROM sqlite_schema LIMIT 1');
        return null;
    }
  }

  /** Checkpoints and removes the WAL, where no other process has the file open. */
  close(): void {
    this.#database.close();
  }

  #table(name: string): Table {
    const table = this.#tables.get(name);
    if (table === undefined) throw new Error(`no collection '${name}' was declared`);
    return table;
  }
}
