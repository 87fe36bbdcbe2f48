/** The lock on a data folder (P17): holding it proves that the last start is over. */
import { lockFolder, type FolderLock } from '@penstock/async';
import { TaggedError } from '@penstock/errors';

export class DataFolderInUse extends TaggedError {
  readonly tag = 'DataFolderInUse';
}

/** `command`: who uses such a folder. Throws DataFolderInUse where another process holds it. */
export function lockDataFolder(dataDir: string, command = 'penstock serve'): FolderLock {
  return lockFolder(
    dataDir,
    (holder, cause) =>
      new DataFolderInUse(
        `another ${command}${holder} is using the data folder ${dataDir}: stop it, or name another folder with --data-dir`,
        { cause },
      ),
  );
}
