/** What tells folders apart, whatever they are called by now. */
import { lstatSync, type Stats } from 'node:fs';

/** Of what a path names itself. */
export function folderIdentity(path: string, found = lstatSync(path, { throwIfNoEntry: false })): string {
  return found === undefined ? path : identityOfStats(path, found);
}

function identityOfStats(path: string, { dev, ino }: Stats): string {
  if (Number.isSafeInteger(ino) && Number.isSafeInteger(dev)) return `${dev}:${ino}`;
  const exact = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return exact === undefined ? path : `${exact.dev}:${exact.ino}`;
}

/** Of a run's folders together, of which it has the identities. */
export function runIdentity(folder: string, temporary: string): string {
  return `${folder} ${temporary}`;
}

/** Whether a path names the folder of the run that has this identity. */
export function isFolderOf(path: string, identity: string): boolean {
  return identity.startsWith(`${folderIdentity(path)} `);
}
