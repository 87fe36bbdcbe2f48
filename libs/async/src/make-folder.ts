/** Folders where they may not be made at all: Node's own `recursive` never ends where a file system makes none although they are missing (/proc). */
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Makes it, and those above it, where they are missing: its owner's alone, unless `mode` is another. Throws what the file system does. */
export async function makeFolder(path: string, mode = 0o700): Promise<void> {
  if (await isMade(path)) return;
  if (dirname(path) !== path) await makeFolder(dirname(path), mode);
  await mkdir(path, { mode }).catch(async (error: NodeJS.ErrnoException) => {
    // Another may have been faster.
    if (error.code !== 'EEXIST' || !(await isMade(path))) throw error;
  });
}

/** The same, for what is made before a process does anything else. */
export function makeFolderSync(path: string, mode = 0o700): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return;
  if (found === undefined && dirname(path) !== path) makeFolderSync(dirname(path), mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
}

async function isMade(path: string): Promise<boolean> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  return found?.isDirectory() === true;
}
