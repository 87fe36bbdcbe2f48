/** What the runner's own files need of a disk that may be full: whole writes, and errors that can be recognised. */
import { statfsSync, writeSync } from 'node:fs';

const FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Whether the error, or what caused it, says that there is no room left. */
export function isDiskFull(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (FULL.has((cause as NodeJS.ErrnoException).code ?? '')) return true;
  return false;
}

/** All of the bytes or an error: a disk that is nearly full takes a part of them first. */
export function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  for (let at = 0; at < bytes.length;) {
    const taken = writeSync(fd, bytes, at, bytes.length - at, position + at);
    if (taken === 0) throw Object.assign(new Error('the disk takes no more bytes'), { code: 'ENOSPC' });
    at += taken;
  }
}

/** What an unprivileged process could still write to a file system, and how many files it could still make there. */
export interface FreeOnDisk {
  readonly bytes: number;
  readonly files: number;
}

/** Of the file system of `path`. Infinity where that cannot be found out, or has no bound. */
export function freeOnDisk(path: string): FreeOnDisk {
  try {
    const { bavail, bsize, files, ffree } = statfsSync(path);
    // Btrfs, for one, makes what it needs for a file as it is needed, and says that there is none.
    return { bytes: bavail * bsize, files: files === 0 ? Infinity : ffree };
  } catch {
    return { bytes: Infinity, files: Infinity };
  }
}
