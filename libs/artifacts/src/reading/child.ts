/**
 * What the processes have alike that read a stage's files: they enter its working folder, give up every right but those of its
 * user, and write frames.
 */
import { constants, openSync, writeSync } from 'node:fs';
import { frame, type FrameKind } from './frames.ts';

const waiting = new Int32Array(new SharedArrayBuffer(4));

export interface FolderToRead {
  readonly path: string;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
}

/** A descriptor of it; undefined where it cannot be had. */
export function enterFolder({ path, user }: FolderToRead): number | undefined {
  let folder: number;
  try {
    // With the rights of the parent, whatever stands above it; no more than the folder is gone through with them.
    folder = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch {
    return undefined;
  }
  if (user !== undefined) {
    process.setgroups?.([]);
    process.setgid?.(user.gid);
    process.setuid?.(user.uid);
  }
  return folder;
}

export function fail(reason: 'artifacts' | 'quota', message: string): void {
  send('fail', Buffer.from(JSON.stringify({ reason, message })));
}

/** The pipe is written to as it is: the reader takes what it asked for, and nothing piles up here. */
export function send(kind: FrameKind, bytes: Uint8Array = Buffer.alloc(0)): void {
  for (const part of [frame(kind, bytes.length), bytes]) {
    for (let at = 0; at < part.length;) at += writeBlocking(part, at);
  }
}

/** A pipe that Node has made may refuse to block: then it is asked again once it may have room. */
function writeBlocking(part: Uint8Array, at: number): number {
  try {
    return writeSync(1, part, at);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    Atomics.wait(waiting, 0, 0, 1);
    return 0;
  }
}
