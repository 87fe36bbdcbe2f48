/**
 * The lock on a folder: held by at most one process, and let go by the kernel when that process is dead, however it died. Holding it
 * proves that whoever had it before is over. It is a SQLite file in exclusive mode, for Node has no file locks of its own and SQLite's
 * are the same on every system.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface FolderLock {
  /** Again: nothing. */
  release(): void;
}

const SQLITE_BUSY = 5;
const SQLITE_IOERR_LOCK = 3850;
const LOCK = 'PRAGMA busy_timeout = 0; PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE';

/**
 * Throws what `inUse` makes where another process has it; `holder`: '', or its number as ` (process 12)`. Throws also where the file system
 * has no locks: without one nothing would keep a second process from the folder.
 */
export function lockFolder(folder: string, inUse: (holder: string, cause: unknown) => Error): FolderLock {
  const pidFile = join(folder, 'pid');
  // Loaded by those alone who lock.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const database = new DatabaseSync(join(folder, 'lock'));
  try {
    database.exec(LOCK);
  } catch (cause) {
    database.close();
    const code = codeOf(cause);
    if (code === SQLITE_IOERR_LOCK || (code === SQLITE_BUSY && hasNoLocks(folder)))
      throw new Error(
        `${folder} lies on a file system without file locks, as a network disk may be, where nothing would keep another process from it: ` +
          'name a folder on a disk of this machine (SERVICE_DATA_DIR, --data-dir)',
        { cause },
      );
    if (code === SQLITE_BUSY) throw inUse(holderOf(pidFile), cause);
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

function codeOf(error: unknown): unknown {
  return (error as { readonly errcode?: unknown }).errcode;
}

/** SQLite says the same of a lock that another has as of one that nobody can have: so one that nobody has is asked for. */
function hasNoLocks(folder: string): boolean {
  const path = join(folder, `lock-${randomUUID()}`);
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  try {
    const database = new DatabaseSync(path);
    try {
      database.exec(LOCK);
    } finally {
      database.close();
    }
    return false;
  } catch (error) {
    return codeOf(error) === SQLITE_BUSY;
  } finally {
    rmSync(path, { force: true });
  }
}

function holderOf(pidFile: string): string {
  try {
    return ` (process ${readFileSync(pidFile, 'utf8').trim()})`;
  } catch {
    return '';
  }
}
