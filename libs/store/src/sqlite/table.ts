/**
 * One collection as a table: `id`, the fields, then the parts last, since SQLite walks through a row's large values to
 * reach what stands behind them. Rows carry their values in the order of `columnsOf`.
 */
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { columnsOf, cutFresh, type Row } from '../checks.ts';
import type { CollectionSpec, KnownVersion, Part, Scalar } from '../port.ts';
import { decodePart, encodePart } from '../part-codec.ts';
import type { QueryPlan } from '../query-plan.ts';
import { DecodeProblem } from './failures.ts';

/** Statements differ by the parts wanted and the number of values; callers use a handful of forms. */
const STATEMENTS_MAX = 100;
/** A transaction holds the write lock against other processes, and its checkpoint grows with it: 50 documents, 4 MiB. */
const TRANSACTION_DOCUMENTS_MAX = 50;
const TRANSACTION_BYTES_MAX = 4 * 1024 * 1024;

export interface RowsWanted {
  readonly parts: readonly string[];
  /** See `Reading`. */
  readonly isLenient: boolean;
}

export interface FreshWanted {
  readonly plan: QueryPlan;
  readonly parts: readonly string[];
  readonly version: readonly [major: string, minor: string];
  readonly known: readonly KnownVersion[];
  readonly freshMax: number;
}

export interface FreshRows {
  readonly versions: readonly KnownVersion[];
  /** Those of them that are not known. */
  readonly fresh: readonly string[];
  readonly rows: Row[];
  readonly isLast: boolean;
}

export class Table {
  readonly #database: DatabaseSync;
  readonly #spec: CollectionSpec;
  readonly #name: string;
  readonly #columns: readonly string[];
  readonly #partsFrom: number;
  readonly #statements = new Map<string, StatementSync>();

  constructor(database: DatabaseSync, spec: CollectionSpec) {
    this.#database = database;
    this.#spec = spec;
    this.#name = tableName(spec);
    this.#columns = columnsOf(spec);
    this.#partsFrom = this.#columns.length - spec.parts.length;
  }

  get(ids: readonly string[], { parts, isLenient }: RowsWanted): Row[] {
    if (ids.length === 0) return [];
    // Filled up to a power of two by repeating one, so that a few statements serve lists of every length.
    const marks = 2 ** Math.ceil(Math.log2(ids.length));
    const filled = Array.from({ length: marks }, (_, index) => ids[index] ?? ids[0] ?? '');
    const sql = `SELECT ${this.#wanted(parts)} FROM ${this.#name} WHERE id IN (${filled.map(() => '?').join(', ')})`;
    return this.#decode(this.#rows(sql, filled, isLenient));
  }

  list(plan: QueryPlan, { parts, isLenient }: RowsWanted): Row[] {
    const { sql, values } = this.#listing(plan, this.#wanted(parts));
    return this.#decode(this.#rows(sql, values, isLenient));
  }

  listFresh(wanted: FreshWanted): FreshRows {
    const { plan, parts, version } = wanted;
    const { sql, values } = this.#listing(plan, ['id', ...version].map(quoted).join(', '));
    const listed = this.#rows(sql, values, false) as readonly unknown[] as KnownVersion[];
    const { versions, fresh } = cutFresh(listed, wanted);
    return {
      versions,
      fresh,
      rows: fresh.length === 0 ? [] : this.get(fresh, { parts, isLenient: false }),
      isLast: versions.length === listed.length && listed.length < plan.limit,
    };
  }

  insert(row: Row): boolean {
    const sql = `INSERT INTO ${this.#name} (${this.#columns.map(quoted).join(', ')}) VALUES (${this.#columns.map(() => '?').join(', ')}) ON CONFLICT (id) DO NOTHING`;
    return this.#statement(sql).run(...this.#encode(row)).changes === 1;
  }

  replaceNewer(rows: readonly Row[]): string[] {
    const [major, minor] = (this.#spec.version ?? ['', '']).map(quoted);
    const updates = this.#columns.slice(1).map((column) => `${quoted(column)} = excluded.${quoted(column)}`);
    const statement = this.#statement(
      `INSERT INTO ${this.#name} AS stored (${this.#columns.map(quoted).join(', ')}) VALUES (${this.#columns.map(() => '?').join(', ')})
       ON CONFLICT (id) DO UPDATE SET ${updates.join(', ')}
       WHERE (excluded.${major}, excluded.${minor}) > (stored.${major}, stored.${minor})`,
    );
    const stale: string[] = [];
    for (let from = 0; from < rows.length;) {
      // Deflating comes before the transaction, so that the lock is held for the writing alone.
      const encoded: SQLInputValue[][] = [];
      for (
        let bytes = 0;
        from < rows.length && encoded.length < TRANSACTION_DOCUMENTS_MAX && bytes < TRANSACTION_BYTES_MAX;
        from++
      ) {
        const values = this.#encode(rows[from] ?? []);
        encoded.push(values);
        bytes += values.reduce<number>(
          (sum, value) =>
            sum + (typeof value === 'string' ? value.length : value instanceof Uint8Array ? value.byteLength : 8),
          0,
        );
      }
      this.#transaction(() => {
        for (const values of encoded) {
          if (statement.run(...values).changes === 0) stale.push(String(values[0]));
        }
      });
    }
    return stale;
  }

  replaceStanding(row: Row): boolean {
    const [major = '', minor = ''] = this.#spec.version ?? [];
    const columns = this.#columns.slice(1);
    const sql = `UPDATE ${this.#name} SET ${columns.map((column) => `${quoted(column)} = ?`).join(', ')}
       WHERE id = ? AND (${quoted(major)}, ${quoted(minor)}) < (?, ?)`;
    const [id = null, ...values] = this.#encode(row);
    const version = [major, minor].map((field) => values[columns.indexOf(field)] ?? 0);
    return this.#statement(sql).run(...values, id, ...version).changes === 1;
  }

  delete(id: string, only: readonly (readonly [field: string, value: Scalar])[]): boolean {
    const conditions = only.map(([field]) => ` AND ${quoted(field)} = ?`).join('');
    const values = only.map(([, value]) => bindable(value));
    return this.#statement(`DELETE FROM ${this.#name} WHERE id = ?${conditions}`).run(id, ...values).changes === 1;
  }

  deleteWhere(plan: QueryPlan): number {
    const { sql, values } = this.#choose(plan, 'rowid');
    return Number(this.#statement(`DELETE FROM ${this.#name} WHERE rowid IN (${sql})`).run(...values).changes);
  }

  #listing(plan: QueryPlan, wanted: string): { readonly sql: string; readonly values: SQLInputValue[] } {
    const { sql, values, merged } = this.#choose(plan, wanted);
    return merged
      ? { sql: `SELECT ${wanted} FROM ${this.#name} WHERE rowid IN (${sql}) ORDER BY ${orderSql(plan)}`, values }
      : { sql, values };
  }

  /**
   * The rows of a plan. With one value for each field that is a walk along the index, which ends at the limit. With
   * several, each combination is such a walk, and the row ids found are merged: an `IN` with an `ORDER BY` would read and
   * sort everything that the values have.
   */
  #choose(
    plan: QueryPlan,
    wanted: string,
  ): { readonly sql: string; readonly values: SQLInputValue[]; readonly merged: boolean } {
    const field = quoted(plan.order.field);
    const conditions = [
      ...plan.equal.map((equal) => `${quoted(equal.field)} = ?`),
      ...plan.bounds.map((bound) => `${field} ${bound.operator} ?`),
    ];
    const tail: SQLInputValue[] = plan.bounds.map((bound) => bindable(bound.value));
    if (plan.after !== null) {
      const operator = plan.order.descending ? '<' : '>';
      conditions.push(plan.order.field === 'id' ? `id ${operator} ?` : `(${field}, id) ${operator} (?, ?)`);
      tail.push(...(plan.order.field === 'id' ? [plan.after.id] : [bindable(plan.after.value), plan.after.id]));
    }
    const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`;
    const order = orderSql(plan);
    const combinations = plan.equal.reduce<SQLInputValue[][]>(
      (all, { values }) => all.flatMap((begun) => values.map((value) => [...begun, bindable(value)])),
      [[]],
    );
    if (combinations.length === 1) {
      return {
        merged: false,
        sql: `SELECT ${wanted} FROM ${this.#name} ${where} ORDER BY ${order} LIMIT ?`,
        values: [...(combinations[0] ?? []), ...tail, plan.limit],
      };
    }
    const walk = `SELECT * FROM (SELECT rowid AS r, ${field === '"id"' ? 'id' : `${field}, id`} FROM ${this.#name} ${where} ORDER BY ${order} LIMIT ?)`;
    return {
      merged: true,
      sql: `SELECT r FROM (${combinations.map(() => walk).join(' UNION ALL ')} ORDER BY ${order} LIMIT ?)`,
      values: [...combinations.flatMap((combination) => [...combination, ...tail, plan.limit]), plan.limit],
    };
  }

  #wanted(parts: readonly string[]): string {
    return [...this.#columns.slice(0, this.#partsFrom), ...parts].map(quoted).join(', ');
  }

  #encode(row: Row): SQLInputValue[] {
    return row.map((value, index) => (index < this.#partsFrom ? bindable(value as Scalar) : encodePart(value as Part)));
  }

  #rows(sql: string, values: readonly SQLInputValue[], isLenient: boolean): unknown[][] {
    const statement = this.#statement(sql);
    try {
      return statement.all(...values) as unknown as unknown[][];
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== 'ERR_OUT_OF_RANGE') throw error;
    }
    // Of some row a number is none that the port takes. Alone it is all that a STRICT table keeps otherwise than it is declared.
    statement.setReadBigInts(true);
    try {
      const rows = statement.all(...values) as unknown as unknown[][];
      return rows.map((row) =>
        row.map((value) => (typeof value === 'bigint' ? this.#number(row[0], value, isLenient) : value)),
      );
    } finally {
      statement.setReadBigInts(false);
    }
  }

  #number(id: unknown, value: bigint, isLenient: boolean): number {
    const number = Number(value);
    if (Number.isSafeInteger(number)) return number;
    if (isLenient) return 0;
    throw new DecodeProblem(`document '${String(id)}' of the collection '${this.#spec.name}' has the number ${value}`);
  }

  #decode(rows: readonly unknown[]): Row[] {
    for (const row of rows as unknown[][]) {
      for (let index = this.#partsFrom; index < row.length; index++) {
        try {
          row[index] = decodePart(row[index]);
        } catch (error) {
          throw new DecodeProblem(
            `document '${String(row[0])}' of the collection '${this.#spec.name}' cannot be decoded`,
            { cause: error },
          );
        }
      }
    }
    return rows as Row[];
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      if (this.#statements.size >= STATEMENTS_MAX) this.#statements.clear();
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #transaction(work: () => void): void {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK');
      throw error;
    }
  }
}

export function tableName(spec: { readonly name: string }): string {
  return `"c_${spec.name}"`;
}

export function quoted(name: string): string {
  return `"${name}"`;
}

function orderSql(plan: QueryPlan): string {
  const direction = plan.order.descending ? 'DESC' : 'ASC';
  return plan.order.field === 'id' ? `id ${direction}` : `${quoted(plan.order.field)} ${direction}, id ${direction}`;
}

function bindable(value: Scalar): SQLInputValue {
  return typeof value === 'boolean' ? Number(value) : value;
}
