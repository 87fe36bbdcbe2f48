/**
 * The lock on a data folder (P17): held by at most one process, and let go by the kernel when that process is dead,
 * however it died. Holding it proves that the last start is over. It is a SQLite file in exclusive mode, for Node has no
 * file locks of its own and SQLite's are the same on every system.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { TaggedError } from '@penstock/errors';

export class DataFolderInUse extends TaggedError {
  readonly tag = 'DataFolderInUse';
}

export interface DataLock {
  release(): void;
}

/** `command`: who uses such a folder. Throws DataFolderInUse where another process holds it. */
export function lockDataFolder(dataDir: string, command = 'penstock serve'): DataLock {
  const pidFile = join(dataDir, 'pid');
  const database = new DatabaseSync(join(dataDir, 'lock'));
  try {
    database.exec('PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (cause) {
    database.close();
    throw new DataFolderInUse(
      `another ${command}${holderOf(pidFile)} is using the data folder ${dataDir}: stop it, or name another folder with --data-dir`,
      { cause },
    );
  }
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  return { release: () => database.close() };
}

function holderOf(pidFile: string): string {
  try {
    return ` (process ${readFileSync(pidFile, 'utf8').trim()})`;
  } catch {
    return '';
  }
}
