/**
 * A process of its own that makes the archive of a cache from a stage's folders, with the rights of the stage's user and no
 * others. It is told what to pack by a line of JSON, writes the archive to its output, and last what came of it to descriptor 3.
 */
import { closeSync, constants, fstatSync, openSync, readlinkSync, readSync } from 'node:fs';
import { pathFault } from '../manifest.ts';
import { below, walkBelow, WalkTooLarge, type Visit } from '../reading/walk.ts';
import { ArchiveWriter, linkFault, type CacheRoot } from './archive.ts';
import { CachedPaths } from './cached-paths.ts';
import {
  becomeUser,
  CACHE_FILES_MAX,
  openRoots,
  readRequest,
  tell,
  writeWhole,
  type Packed,
  type PackRequest,
} from './child.ts';

const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const OUTPUT = 1;
const READ_BYTES = 256 * 1024;
const LEFT_OUT_TOLD = 10;
const ROOTS: readonly CacheRoot[] = ['workspace', 'home'];

const buffer = Buffer.allocUnsafe(READ_BYTES);

class TooMuch extends Error {}

const request = readRequest<PackRequest>();
const roots = openRoots(request);
becomeUser(request.user);
let files = 0;
let bytes = 0;
const leftOut: { path: string; why: string }[] = [];
let leftOutCount = 0;
const archive = new ArchiveWriter((part) => writeWhole(OUTPUT, part));

function leave(path: string, why: string): void {
  leftOutCount += 1;
  if (leftOut.length < LEFT_OUT_TOLD) leftOut.push({ path, why });
}

function count(): void {
  files += 1;
  if (files > CACHE_FILES_MAX) throw new TooMuch(`there are more than ${CACHE_FILES_MAX} files`);
}

function packFile(root: CacheRoot, at: number, name: string, path: string): void {
  let file: number;
  try {
    file = openSync(below(at, name), FILE);
  } catch {
    return leave(path, 'it cannot be read');
  }
  try {
    const { size, mode, mtimeMs } = fstatSync(file);
    count();
    bytes += size;
    if (bytes > request.bytesMax) throw new TooMuch(`the files have more than ${request.bytesMax} bytes`);
    archive.head({ root, path, size, mode: mode & 0o777, time: Math.max(0, Math.round(mtimeMs)) });
    for (let read = 0; read < size;) {
      const length = readSync(file, buffer, 0, Math.min(buffer.length, size - read), read);
      if (length === 0) throw new TooMuch(`${JSON.stringify(path)} has become shorter while it was read`);
      archive.content(buffer.subarray(0, length));
      read += length;
    }
  } finally {
    closeSync(file);
  }
}

function packLink(root: CacheRoot, at: number, name: string, path: string): void {
  let link: string;
  try {
    link = readlinkSync(below(at, name));
  } catch {
    return leave(path, 'it cannot be read');
  }
  const fault = linkFault(path, link);
  if (fault !== undefined) return leave(path, fault);
  count();
  archive.head({ root, path, link });
}

try {
  for (const root of ROOTS) {
    const folder = roots[root];
    const paths = new CachedPaths(request.paths, root);
    if (folder === undefined || paths.isEmpty) continue;
    const visit: Visit = (at, entry, path, name) => {
      if (!paths.includes(path)) return;
      const fault = name === undefined ? 'its name is not UTF-8' : pathFault(path);
      if (fault !== undefined || name === undefined) leave(path, fault ?? '');
      else if (entry.isFile()) packFile(root, at, name, path);
      else if (entry.isSymbolicLink()) packLink(root, at, name, path);
      else leave(path, 'it is no file');
    };
    walkBelow(folder, paths, {
      visit,
      unreadable: (path) => leave(path, 'the folder cannot be read'),
      isEnough: () => false,
    });
  }
  archive.end();
  tell<Packed>({ files, bytes, leftOut, leftOutCount });
} catch (error) {
  if (!(error instanceof TooMuch) && !(error instanceof WalkTooLarge)) throw error;
  tell<Packed>({ fault: error.message });
}
