/**
 * Removes a small tree without a process, and holds its thread meanwhile: for a thread of its own (`trees.ts`, TREES-1).
 */
import { closeSync, constants, fstatSync, opendirSync, openSync, rmdirSync, unlinkSync } from 'node:fs';

export interface SmallTree {
  readonly path: string;
  /** Whose it is. */
  readonly uid: number;
}

/** Of Linux, where Node names it not. */
export const O_PATH = 0o10000000;
/** Of more a process is not dear. */
const ENTRIES_MAX = 300;
const DEPTH_MAX = 32;

/** False where the tree is large, or something in it is not the user's to remove: part of it may have gone. */
export function removeSmallTree({ path, uid }: SmallTree): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch {
    // It is not empty, or no folder any more.
  }
  try {
    // Also of a folder that its owner has shut.
    const folder = openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    try {
      if (!isEmptied(folder, uid)) return false;
    } finally {
      closeSync(folder);
    }
    rmdirSync(path);
    return true;
  } catch {
    // Shut, changed meanwhile, or made to stay.
    return false;
  }
}

function isEmptied(folder: number, uid: number): boolean {
  let left = ENTRIES_MAX;
  const { dev } = fstatSync(folder);
  const empty = (fd: number, depth: number): boolean => {
    const found = fstatSync(fd);
    if (found.uid !== uid || found.dev !== dev || depth > DEPTH_MAX) return false;
    const here = Buffer.from(`/proc/self/fd/${fd}/`);
    const listing = opendirSync(here, { encoding: 'buffer' as BufferEncoding });
    try {
      for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
        left -= 1;
        if (left < 0) return false;
        const path = Buffer.concat([here, entry.name as unknown as Buffer]);
        if (!entry.isDirectory()) {
          unlinkSync(path);
          continue;
        }
        const inner = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
        try {
          if (!empty(inner, depth + 1)) return false;
        } finally {
          closeSync(inner);
        }
        rmdirSync(path);
      }
      return true;
    } finally {
      listing.closeSync();
    }
  };
  return empty(folder, 0);
}
