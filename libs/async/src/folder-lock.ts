/**
 * The lock on a folder: held by at most one process, and let go by the kernel when that process is dead, however it died. Holding it
 * proves that whoever had it before is over. It is a SQLite file in exclusive mode, for Node has no file locks of its own and SQLite's
 * are the same on every system.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface FolderLock {
  /** Again: nothing. */
  release(): void;
}

const SQLITE_BUSY = 5;

/** Throws what `inUse` makes where another process has it; `holder`: '', or its number as ` (process 12)`. */
export function lockFolder(folder: string, inUse: (holder: string, cause: unknown) => Error): FolderLock {
  const pidFile = join(folder, 'pid');
  // Loaded by those alone who lock.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const database = new DatabaseSync(join(folder, 'lock'));
  try {
    database.exec(
      'PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE',
    );
  } catch (cause) {
    database.close();
    if ((cause as { readonly errcode?: unknown }).errcode === SQLITE_BUSY) throw inUse(holderOf(pidFile), cause);
    throw new Error(`${folder} cannot be locked: ${(cause as Error).message}`, { cause });
  }
  try {
    writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // The disk is full: who finds the lock held is told less.
  }
  return {
    release() {
      if (database.isOpen) database.close();
    },
  };
}

function holderOf(pidFile: string): string {
  try {
    return ` (process ${readFileSync(pidFile, 'utf8').trim()})`;
  } catch {
    return '';
  }
}
