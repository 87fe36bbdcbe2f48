/** The making of the data folder, with what is above it. */
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemReason } from '@penstock/errors';

/**
 * Its owner's alone, where it is ours: new, empty, or used before. A folder that holds something else (`--data-dir /tmp`)
 * keeps its rights. Throws an Error that names the folder and the cause.
 */
export function makeDataFolder(path: string): void {
  try {
    makeFolder(path);
    if (existsSync(join(path, 'lock')) || readdirSync(path).length === 0) chmodSync(path, 0o700);
  } catch (cause) {
    throw new Error(`the data folder ${path} cannot be made (${reasonOf(cause)}): name another one with --data-dir`, {
      cause,
    });
  }
}

function reasonOf(cause: unknown): string {
  const { code } = cause as NodeJS.ErrnoException;
  if (code === 'EEXIST' || code === 'ENOTDIR') return 'a file is in its place, or in the place of a folder above it';
  return code === 'ENOENT' ? 'no folder can be made there' : systemReason(cause);
}

/** Step by step: Node's own `recursive` never returns where a folder that is there can hold no other, as /proc. */
function makeFolder(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  if (found === undefined && dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another start may have been faster; a file in its place is in the way.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
}
