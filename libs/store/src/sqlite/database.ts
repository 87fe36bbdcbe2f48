/**
 * A SQLite file opened for us: its settings, its format, its tables. Several processes may have one file open (WAL);
 * they wait for each other's writes. It has to lie on a local file system: WAL needs shared memory.
 */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { CollectionSpec } from '../port.ts';
import { isBusy, SchemaProblem } from './failures.ts';
import { quoted, tableName } from './table.ts';

export interface DatabaseOptions {
  readonly path: string;
  /**
   * `full`: a settled write survives a power cut. `normal`: it survives any killed process, and a power cut once SQLite
   * has checkpointed, which on a quiet service takes hours; the file stays sound.
   */
  readonly synchronous: 'full' | 'normal';
  /** How long one call waits for another process's lock. */
  readonly lockWaitMs: number;
}

/** "PENS": tells our files from those of other programs. */
const APPLICATION_ID = 0x50454e53;
/** Of the file as a whole: how parts are kept, how tables are named. Collections change without it (`ensureTable`). */
const FORMAT = 1;
/** What is left of the WAL file after a burst. */
const WAL_BYTES_KEPT = 16 * 1024 * 1024;
/** Of each connection. With 16 MiB neither saving nor reading of 60,000 runs took less processor time; the kernel keeps the file's pages as well. */
const PAGE_CACHE_KIB = 4 * 1024;

export function openDatabase(options: DatabaseOptions, specs: readonly CollectionSpec[]): DatabaseSync {
  if (options.path !== ':memory:') makePrivate(options.path);
  const database = new DatabaseSync(options.path, { timeout: options.lockWaitMs, returnArrays: true });
  try {
    database.exec(
      `PRAGMA cache_size = -${PAGE_CACHE_KIB}; PRAGMA journal_size_limit = ${WAL_BYTES_KEPT}; PRAGMA synchronous = ${options.synchronous}`,
    );
    retryBusy(options.lockWaitMs, () => database.exec('PRAGMA journal_mode = WAL'));
    retryBusy(options.lockWaitMs, () => ensureSchema(database, specs));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Outputs of runs are nobody else's business. SQLite gives its companion files the mode of this one, and a file that is there keeps its own. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'a', 0o600));
  } catch {
    // SQLite says what is wrong with the path, in a code that we tell apart.
  }
}

function ensureSchema(database: DatabaseSync, specs: readonly CollectionSpec[]): void {
  database.exec('BEGIN IMMEDIATE');
  try {
    ensureFormat(database);
    for (const spec of specs) ensureTable(database, spec);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

function ensureFormat(database: DatabaseSync): void {
  const application = numberOf(database, 'PRAGMA application_id');
  const format = numberOf(database, 'PRAGMA user_version');
  if (application === APPLICATION_ID) {
    if (format > FORMAT)
      throw new SchemaProblem(
        `a newer release wrote it (format ${format}; this one knows ${FORMAT}); start that release, or name another file`,
      );
    return;
  }
  if (application !== 0 || format !== 0 || numberOf(database, 'SELECT count(*) FROM sqlite_schema') > 0) {
    throw new SchemaProblem('it is the database of another program; name another file');
  }
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT}`);
}

/**
 * Makes the table, or adds what this release has declared since. Columns and indexes that this release does not know
 * are left alone: a newer one may have the same file open, or come back.
 */
function ensureTable(database: DatabaseSync, spec: CollectionSpec): void {
  const table = tableName(spec);
  const fields = Object.entries(spec.fields).map(([name, type]) => ({ name, type: COLUMN_TYPES[type] }));
  const columns = [...fields, ...spec.parts.map((name) => ({ name, type: 'ANY' }))];
  const stored = new Map(
    (database.prepare(`PRAGMA table_info(${table})`).all() as unknown as [number, string, string][]).map(
      ([, name, type]) => [name, type],
    ),
  );
  if (stored.size === 0) {
    database.exec(`CREATE TABLE ${table} (id TEXT NOT NULL PRIMARY KEY, ${columns.map(columnSql).join(', ')}) STRICT`);
  }
  for (const column of stored.size === 0 ? [] : columns) {
    const type = stored.get(column.name);
    if (type === undefined) database.exec(`ALTER TABLE ${table} ADD COLUMN ${columnSql(column)}`);
    else if (type !== column.type)
      throw new SchemaProblem(
        `'${column.name}' of the collection '${spec.name}' is kept as ${type}, and this release wants ${column.type}`,
      );
  }
  for (const index of spec.indexes) {
    database.exec(
      `CREATE INDEX IF NOT EXISTS ${quoted(`c_${spec.name}__${index.join('_')}`)} ON ${table} (${[...index, 'id'].map(quoted).join(', ')})`,
    );
  }
}

/** INT and INTEGER are one to SQLite; the two names keep booleans and numbers apart for the check above. */
const COLUMN_TYPES = { string: 'TEXT', integer: 'INTEGER', boolean: 'INT' } as const;

function columnSql(column: { readonly name: string; readonly type: string }): string {
  return `${quoted(column.name)} ${column.type} NOT NULL DEFAULT ${column.type === 'TEXT' || column.type === 'ANY' ? "''" : 0}`;
}

function numberOf(database: DatabaseSync, sql: string): number {
  return Number((database.prepare(sql).get() as unknown as readonly [number])[0]);
}

/** Switching a new file to WAL, and a snapshot gone old, answer "locked" at once, without SQLite's own waiting. */
function retryBusy(waitMs: number, work: () => void): void {
  const deadline = performance.now() + waitMs;
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Atomics.wait(sleeper, 0, 0, 5 + Math.random() * 20);
    }
  }
}
