/**
 * A run takes over what its helper shows of an earlier run of the same key, where it has got that one's very folders: they get
 * their new name in the helper's view, and nothing is mounted.
 *
 * The name is that of the folder on which they are mounted. Only who shares the helper's mounts may not rename it; its owner does
 * not, and reaches it through /proc.
 *
 * TAKEOVER-1. Nothing that an earlier stage has left is shown: where the view's own file systems are not as they were made, it is
 *     mounted anew.
 * TAKEOVER-2. No process of a stage lives in the helper meanwhile (HELPER-1): what was looked at stays so.
 */
import { lstatSync, readdirSync, renameSync, type Stats } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { StageRun } from '../contract/port.ts';
import { identityOf, type Bases } from './view.ts';

/** `pid`: a process that sees the bases. False: the view is as it was. */
export function takeOver(pid: number, { keep, work, tmp, shm, isInTmp }: Bases, from: StageRun, to: StageRun): boolean {
  if (dirname(from.folder) !== dirname(to.folder)) return false;
  const seen = (path: string): string => `/proc/${pid}/root${path}`;
  try {
    if (!isEmptyMemory(seen(shm)) || (isInTmp && !isOpenToAll(lstatSync(seen(tmp))))) return false;
    let at = isInTmp ? tmp : work;
    for (const name of relative(at, join(work, relative(keep, from.folder))).split('/')) {
      if (!holdsOnly(seen(at), name)) return false;
      at = join(at, name);
    }
    if (identityOf(seen(at)) !== identityOf(to.folder)) return false;
    renameSync(seen(at), seen(join(dirname(at), basename(to.folder))));
    return true;
  } catch {
    // It is ending, or this process may not look into it.
    return false;
  }
}

function isEmptyMemory(path: string): boolean {
  return isOpenToAll(lstatSync(path)) && readdirSync(path).length === 0;
}

function isOpenToAll(folder: Stats): boolean {
  return folder.isDirectory() && (folder.mode & 0o7777) === 0o1777 && folder.uid === process.getuid?.();
}

/** No link: that would be followed in this process's own view. */
function holdsOnly(path: string, name: string): boolean {
  if (!lstatSync(path).isDirectory()) return false;
  const [only, ...others] = readdirSync(path);
  return only === name && others.length === 0;
}
