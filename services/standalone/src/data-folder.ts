/** The making of the data folder, with what is above it. */
import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolderSync } from '@penstock/async';
import { systemReason } from '@penstock/errors';

/**
 * Its owner's alone, where it is ours: new, empty, or used before. A folder that holds something else (`--data-dir /tmp`)
 * keeps its rights. Throws an Error that names the folder and the cause.
 */
export function makeDataFolder(path: string): void {
  try {
    makeFolderSync(path);
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
