/**
 * A run takes over what its helper shows of an earlier run of the same key, where it has got that one's very folders: nothing is
 * mounted, and where they have another name by now they get it in the helper's view, too.
 *
 * The name is that of the folder on which they are mounted. Only who shares the helper's mounts may not rename it; its owner does
 * not, and reaches it through /proc.
 *
 * TAKEOVER-1. No file that an earlier stage has left is shown: where the view's own file systems are not empty, or of another mode than they
 *     were made with, it is mounted anew. Attributes of their roots, as a default ACL, are not looked at: they are of a run of the same key.
 * TAKEOVER-2. No process of a stage lives in the helper meanwhile (HELPER-1): what was looked at stays so.
 */
import { lstatSync, readdirSync, renameSync, type Stats } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import type { StageRun } from '../contract/port.ts';
import { isFolderOf } from '../system/folder-identity.ts';
import type { Bases } from './view.ts';

/** `pid`: a process that sees the bases. `identity`: of the folders of `to`. False: the view is as it was. */
export function takeOver(
  pid: number,
  { keep, work, tmp, shm, isInTmp }: Bases,
  from: StageRun,
  { run: to, identity }: { readonly run: StageRun; readonly identity: string },
): boolean {
  if (dirname(from.folder) !== dirname(to.folder)) return false;
  const seen = (path: string): string => `/proc/${pid}/root${path}`;
  try {
    const memory = lstatSync(seen(shm));
    if (!isOpenToAll(memory) || (isInTmp && !isOpenToAll(lstatSync(seen(tmp))))) return false;
    let at = isInTmp ? tmp : work;
    const [first = '', ...names] = relative(at, join(work, relative(keep, from.folder))).split('/');
    const outer = lstatSync(seen(at));
    // Of what holds the next one more than of what may hold nothing.
    const sizesTell = memory.size === nameBytes(0) && outer.size > memory.size;
    if (!sizesTell && readdirSync(seen(shm)).length > 0) return false;
    if (!holdsOnly(seen(at), first, outer, sizesTell)) return false;
    at = join(at, first);
    for (const name of names) {
      if (!holdsOnly(seen(at), name, lstatSync(seen(at)), sizesTell)) return false;
      at = join(at, name);
    }
    if (!isFolderOf(seen(at), identity)) return false;
    if (from.folder !== to.folder) renameSync(seen(at), seen(join(dirname(at), basename(to.folder))));
    return true;
  } catch {
    // It is ending, or this process may not look into it.
    return false;
  }
}

/** What a folder in memory says of its size is how many names it holds, `.` and `..` among them: to look is a fifth of listing it. */
function nameBytes(names: number): number {
  return (2 + names) * 20;
}

function isOpenToAll(folder: Stats): boolean {
  return folder.isDirectory() && (folder.mode & 0o7777) === 0o1777 && folder.uid === process.getuid?.();
}

/** No link: that would be followed in this process's own view. That the name is there is seen by looking at what it names. */
function holdsOnly(path: string, name: string, found: Stats, sizesTell: boolean): boolean {
  if (!found.isDirectory()) return false;
  if (sizesTell && found.size === nameBytes(1)) return true;
  const [only, ...others] = readdirSync(path);
  return only === name && others.length === 0;
}
