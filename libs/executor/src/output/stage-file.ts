/** A file that a stage has left for whoever runs it, at a path that it was given in a variable. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { systemReason } from '@penstock/errors';
import { BadOutputs, TooLargeOutputs } from '../contract/errors.ts';

/** `variable` names it to the stage. Null where there is no file. The stage may have put anything at the path: nothing is followed or waited for. Throws BadOutputs. */
export function readStageFile(path: string, variable: string, bytesMax: number): string | null {
  // The usual case, and an exception is the dearer answer.
  let fd: number;
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return null;
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    // The answer to a link that is not to be followed is the one to links that lead in a circle.
    if (code === 'ELOOP') throw new BadOutputs(`${variable} is a link, which is not followed`, 0);
    throw new BadOutputs(`${variable} cannot be read: ${systemReason(error)}`, 0);
  }
  try {
    const { size } = fstatSync(fd);
    if (!fstatSync(fd).isFile()) throw new BadOutputs(`${variable} is no file any more`, 0);
    if (size > bytesMax) throw new TooLargeOutputs(`${variable} holds ${size} bytes; ${bytesMax} are read`);
    const buffer = Buffer.alloc(size);
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, size, 0));
  } finally {
    closeSync(fd);
  }
}
