/** Looks for a ref in git's file of them: of 100,000 it has ten megabytes, which nobody reads for one name. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Several times the longest line that there is. */
const BLOCK_BYTES = 4_096;
const SORTED = /^# pack-refs with:.* sorted/;
/** The first whole line of a ref; one with `^` in front belongs to the line before. */
const REF = /\n[0-9a-f]+ ([^\n]+)\n/;

/** Whether the file names the ref. False where there is no file. */
export function isPackedRef(file: string, ref: string): boolean {
  let fd: number;
  try {
    fd = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
  try {
    return isIn(fd, ref);
  } finally {
    closeSync(fd);
  }
}

function isIn(fd: number, ref: string): boolean {
  const { size } = fstatSync(fd);
  const text = (from: number, to: number): string => {
    const buffer = Buffer.allocUnsafe(to - from);
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, from));
  };
  let low = 0;
  let high = size;
  if (SORTED.test(text(0, Math.min(size, BLOCK_BYTES))))
    while (high - low > 2 * BLOCK_BYTES) {
      const middle = low + Math.floor((high - low) / 2);
      const block = text(middle, middle + BLOCK_BYTES);
      const found = REF.exec(block);
      if (found === null) break;
      const [, name = ''] = found;
      if (name === ref) return true;
      // Of a line by its first character.
      if (name < ref) low = middle + found.index + 1;
      else high = middle + found.index + 1;
    }
  return text(low, high).includes(` ${ref}\n`);
}
