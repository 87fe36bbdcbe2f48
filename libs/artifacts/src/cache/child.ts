/** What the processes that pack and unpack caches have in common: what they are told, whose rights they have, what they answer. */
import { constants, openSync, readSync, writeSync } from 'node:fs';
import type { CacheRoot } from './archive.ts';

export interface CacheUser {
  readonly uid: number;
  readonly gid: number;
}

export interface CacheFolders {
  /** Absolute paths; they may be a stranger's folders. */
  readonly workspace: string;
  /** Absent: what is meant of it is left alone. */
  readonly home?: string | undefined;
}

export interface PackRequest extends CacheFolders {
  readonly user?: CacheUser | undefined;
  readonly paths: readonly string[];
  /** Of all files together. */
  readonly bytesMax: number;
}

export interface UnpackRequest extends CacheFolders {
  readonly user?: CacheUser | undefined;
  readonly paths: readonly string[];
  readonly bytesMax: number;
  /** Of the folder that it is unpacked in before it goes to its place: a name, below the home, or the workspace where there is none. */
  readonly staging: string;
  /** A folder of the user's with what is to be moved to its place, by its root; there is no archive then. */
  readonly from?: string | undefined;
  /** Whether what stands there already gives way. */
  readonly replace: boolean;
}

export type Packed =
  | {
      readonly files: number;
      readonly bytes: number;
      readonly leftOut: readonly { readonly path: string; readonly why: string }[];
      readonly leftOutCount: number;
    }
  | { readonly fault: string };

export type Unpacked = { readonly files: number; readonly bytes: number } | { readonly fault: string };

/** Of a cache: `node_modules` of a large repository several times. */
export const CACHE_FILES_MAX = 500_000;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const ANSWER = 3;
const REQUEST_BYTES_MAX = 1024 * 1024;

const waiting = new Int32Array(new SharedArrayBuffer(4));

/** One line of JSON from the input, which may go on behind it. */
export function readRequest<T>(): T {
  const bytes: number[] = [];
  const one = Buffer.alloc(1);
  while (bytes.length < REQUEST_BYTES_MAX) {
    if (again(() => readSync(0, one, 0, 1, null)) === 0 || one[0] === 0x0a) break;
    bytes.push(one[0] ?? 0);
  }
  return JSON.parse(Buffer.from(bytes).toString('utf8')) as T;
}

/** With the rights of the parent, whatever stands above them; no more than the folders is gone through with these. */
export function openRoots({ workspace, home }: CacheFolders): Readonly<Record<CacheRoot, number | undefined>> {
  return { workspace: openSync(workspace, FOLDER), home: home === undefined ? undefined : openSync(home, FOLDER) };
}

export function becomeUser(user: CacheUser | undefined): void {
  if (user === undefined) return;
  process.setgroups?.([]);
  process.setgid?.(user.gid);
  process.setuid?.(user.uid);
}

export function tell<T>(answer: T): void {
  writeWhole(ANSWER, Buffer.from(`${JSON.stringify(answer)}\n`));
}

export function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += again(() => writeSync(descriptor, bytes, at));
}

/** A pipe that Node has made may refuse to block: then it is asked again once it may have room, or something to read. */
function again(work: () => number): number {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      Atomics.wait(waiting, 0, 0, 1);
    }
  }
}
