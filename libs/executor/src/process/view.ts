/**
 * What the stages of a helper see of the owner's folders: their run's and no other's, with a /tmp and a /dev/shm of its own.
 * It is mounted, as a table in the form of fstab, when the helper's first stage of a run begins; a later run that has got the
 * very folders of an earlier one of its key needs no mount for them (`takeOver`).
 */
import { isAbsolute, join, relative } from 'node:path';
import type { StageRun } from '../contract/port.ts';
import { folderIdentity, runIdentity } from '../system/folder-identity.ts';

/** Where a helper's launcher mounts what belongs to a run. */
export interface Bases {
  /** Holds the folders of all runs; the launcher's own folder. */
  readonly keep: string;
  /** What stages see in its place. */
  readonly work: string;
  readonly tmp: string;
  readonly shm: string;
  /** `work` lies in `tmp`, since the owner keeps its data under /tmp: then a run's /tmp is a file system in memory. */
  readonly isInTmp: boolean;
}

export interface ViewLimits {
  /** Of a file system in memory. */
  readonly memoryFolderBytes: number;
}

/** `tmp` and `shm`: what stages see as /tmp and /dev/shm. `work`: what they see in the place of `keep`, where it is not in /tmp. */
export function basesOf(
  keep: string,
  at: { readonly work: string; readonly tmp: string; readonly shm: string },
): Bases {
  const inTmp = relative('/tmp', keep);
  const isInTmp = inTmp !== '' && !inTmp.startsWith('..') && !isAbsolute(inTmp);
  return { ...at, keep, isInTmp, work: isInTmp ? join(at.tmp, inTmp) : at.work };
}

/** Mounts that pass on what is mounted upon them. */
export function sharedBases({ work, tmp, shm, isInTmp }: Bases): Entry[] {
  return [...(isInTmp ? [] : [work]), tmp, shm].map((path) => [
    'base',
    path,
    'tmpfs',
    'size=64k,mode=755,shared,X-mount.mkdir',
  ]);
}

export interface View {
  readonly run: StageRun | undefined;
  /** The same for the same folders, whatever they are called by now. A folder that is mounted leaves its number to no other. */
  readonly identity: string;
}

export function viewOf(run: StageRun | undefined): View {
  return { run, identity: run === undefined ? '' : (run.identity ?? identityOfRun(run)) };
}

/** False: its run has ended, for its folders are gone or another's. */
export function isCurrent({ run, identity }: View): boolean {
  return run === undefined || identityOfRun(run) === identity;
}

function identityOfRun({ folder, temporary }: StageRun): string {
  return runIdentity(folderIdentity(folder), folderIdentity(temporary));
}

export function viewTable(bases: Bases, run: StageRun | undefined, { memoryFolderBytes }: ViewLimits): string {
  const { keep, work, tmp, shm, isInTmp } = bases;
  const inodes = Math.max(1024, Math.round(memoryFolderBytes / 16_384));
  const inMemory = `size=${memoryFolderBytes},nr_inodes=${inodes},mode=1777,nosuid,nodev`;
  const own = (path: string): string => `./${relative(keep, path)}`;
  const entries: Entry[] = [
    run === undefined || isInTmp
      ? ['tmp', tmp, 'tmpfs', inMemory]
      : [own(run.temporary), tmp, 'none', 'bind,nosuid,nodev'],
    ['shm', shm, 'tmpfs', inMemory],
  ];
  if (run === undefined) entries.push(['.', work, 'none', 'bind,nosuid,nodev,X-mount.mkdir']);
  else
    entries.push(
      ['runs', work, 'tmpfs', 'size=64k,mode=755,nosuid,nodev,X-mount.mkdir'],
      [own(run.folder), join(work, relative(keep, run.folder)), 'none', 'bind,nosuid,nodev,X-mount.mkdir'],
    );
  return table(entries);
}

export type Entry = readonly [source: string, target: string, type: string, options: string];

export function table(entries: readonly Entry[]): string {
  return entries.map((fields) => `${fields.map(escaped).join(' ')} 0 0\n`).join('');
}

/** As fstab has it. */
function escaped(field: string): string {
  return field.replaceAll(/[\s\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`);
}
