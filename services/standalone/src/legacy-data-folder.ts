/**
 * The data folder of versions before 0.7 was `.penstock` in the folder where the server was started, often a checkout,
 * where stages found the server's own dependencies above their workspaces.
 */
import { existsSync, mkdirSync, realpathSync, renameSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lockDataFolder } from './data-lock.ts';

export interface ChosenFolder {
  readonly path: string;
  /** A line for the person who starts the server; null where there is nothing to say. */
  readonly note: string | null;
}

const OWN_CHECKOUT = fileURLToPath(new URL('../../..', import.meta.url));

/**
 * The default folder; before its first use an old `.penstock` of `cwd` moves there, or is used where it is if it cannot
 * be moved (another file system). Throws DataFolderInUse where another server is using it.
 *
 * Only one in Penstock's own checkout, where `npm start` left it: elsewhere it may have come with a stranger's files, who would know its
 * keys, and whose schedules would run.
 */
export function adoptLegacyDataFolder(cwd: string, folder: string, ownCheckout = OWN_CHECKOUT): ChosenFolder {
  const old = resolve(cwd, '.penstock');
  if (!existsSync(join(old, 'store.sqlite')) || old === folder) return { path: folder, note: null };
  if (isUsed(folder))
    return {
      path: folder,
      note: `the older data folder ${old} is not used any more; remove it when you no longer need it`,
    };
  if (realpathSync(cwd) !== realpathSync(ownCheckout))
    return {
      path: folder,
      note: `${old} looks like the data folder of an earlier version and is not used, for it may have come with the files around it; if it is this server's, stop the server and start it with SERVICE_DATA_DIR=${old}`,
    };
  lockDataFolder(old).release();
  try {
    mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
    renameSync(old, folder);
    return { path: folder, note: `the data folder has moved from ${old} to ${folder}` };
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    return {
      path: old,
      note: `the data folder ${old} could not be moved (${code}); stop the server and move it: mv ${old} ${folder}`,
    };
  }
}

function isUsed(folder: string): boolean {
  return statSync(join(folder, 'store.sqlite'), { throwIfNoEntry: false }) !== undefined;
}
