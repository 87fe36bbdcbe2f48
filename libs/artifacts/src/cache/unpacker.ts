/**
 * A process of its own that unpacks the archive of a cache (descriptor 4) into a stage's folders, with the rights of the stage's
 * user and no others. What it unpacks appears in place only when all of it was read: it is made in a folder beside, and moved.
 *
 *  UNPACKER-1 Nothing is written but below the roots, whoever made the archive: paths are checked (`archive.ts`), and a folder of the
 *     stage's is entered by its name below a descriptor, and never through a link.
 *  UNPACKER-2 What it was not told to restore is not restored, whatever the archive holds.
 *  UNPACKER-3 A twentieth of the disk, 1 GiB at most, is left free: an archive of a megabyte may hold twenty gigabytes of nothing, and other
 *     stages write to that disk.
 *
 * What lies unpacked in a folder of the user's already is moved in the same way, without an archive.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  futimesSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
  symlinkSync,
  unlinkSync,
  writeSync,
  type Stats,
} from 'node:fs';
import { systemReason } from '@penstock/errors';
import { below } from '../reading/walk.ts';
import { ArchiveReader, BadArchive, type CacheRoot, type FileHead } from './archive.ts';
import { CachedPaths } from './cached-paths.ts';
import {
  becomeUser,
  CACHE_FILES_MAX,
  openRoots,
  readRequest,
  tell,
  type Unpacked,
  type UnpackRequest,
} from './child.ts';

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const ARCHIVE = 4;
const ROOTS: readonly CacheRoot[] = ['workspace', 'home'];
/** UNPACKER-3 */
const LEFT_FREE = { share: 1 / 20, bytesMax: 1024 ** 3 };
/** Written between two looks. */
const LOOK_BYTES = 16 * 1024 ** 2;

const request = readRequest<UnpackRequest>();
const roots = openRoots(request);
// With the rights of the parent: it may lie where the user does not come.
const from = request.from === undefined ? undefined : openSync(request.from, FOLDER);
becomeUser(request.user);
process.umask(0);

let files = 0;
let bytes = 0;
let unlooked = LOOK_BYTES;
const made = new Set<string>();
const meant = { workspace: new CachedPaths(request.paths, 'workspace'), home: new CachedPaths(request.paths, 'home') };

const reader = new ArchiveReader((count) => {
  const part = Buffer.allocUnsafe(count);
  let filled = 0;
  while (filled < count) {
    const read = readSync(ARCHIVE, part, filled, count - filled, null);
    if (read === 0) break;
    filled += read;
  }
  return part.subarray(0, filled);
});

function makeParents(root: CacheRoot, path: string): void {
  const last = path.lastIndexOf('/');
  const folder = last === -1 ? root : `${root}/${path.slice(0, last)}`;
  if (made.has(folder)) return;
  let at = root.length;
  for (;;) {
    const parent = folder.slice(0, at);
    if (!made.has(parent)) {
      mkdirSync(parent, 0o755);
      made.add(parent);
    }
    if (at === folder.length) return;
    const next = folder.indexOf('/', at + 1);
    at = next === -1 ? folder.length : next;
  }
}

/** UNPACKER-3. Of the disk that this process's folder is on. */
function checkRoom(about: number): void {
  unlooked += about;
  if (unlooked < LOOK_BYTES) return;
  unlooked = 0;
  const { bavail, blocks, bsize } = statfsSync('.');
  if (bavail * bsize < Math.min(LEFT_FREE.bytesMax, blocks * bsize * LEFT_FREE.share))
    throw new BadArchive('the disk has no room for it that is not left to others');
}

function unpackFile({ root, path, size, mode, time }: FileHead): void {
  bytes += size;
  if (bytes > request.bytesMax) throw new BadArchive(`it holds more than ${request.bytesMax} bytes`);
  const isMeant = roots[root] !== undefined && meant[root].includes(path);
  let file: number | undefined;
  if (isMeant) {
    makeParents(root, path);
    file = openSync(`${root}/${path}`, 'wx', 0o600);
  }
  try {
    for (let left = size; left > 0;) {
      const part = reader.content(left);
      left -= part.length;
      if (file === undefined) continue;
      checkRoom(part.length);
      for (let at = 0; at < part.length;) at += writeSync(file, part, at);
    }
    if (file === undefined) return;
    files += 1;
    fchmodSync(file, mode);
    futimesSync(file, time / 1000, time / 1000);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function unpackAll(): void {
  for (let records = 0; ; records += 1) {
    const head = reader.next();
    if (head === null) return;
    if (records >= CACHE_FILES_MAX) throw new BadArchive(`it holds more than ${CACHE_FILES_MAX} files`);
    if (!('link' in head)) unpackFile(head);
    else if (roots[head.root] !== undefined && meant[head.root].includes(head.path)) {
      makeParents(head.root, head.path);
      symlinkSync(head.link, `${head.root}/${head.path}`);
      files += 1;
    }
  }
}

/** From a folder beside into one that is there. A subtree that is new goes by one rename. */
function move(from: string, into: number): void {
  for (const name of readdirSync(from)) {
    const source = `${from}/${name}`;
    const target = below(into, name);
    const there = statusOf(target);
    const isFolder = lstatSync(source).isDirectory();
    if (there?.isDirectory() === true) {
      if (isFolder) enter(source, target);
      // A cache is done without; what a stage has kept is not.
      else if (from !== undefined && request.replace)
        throw new BadArchive(`a folder is in the place of ${JSON.stringify(name)}`);
      continue;
    }
    if (there !== undefined && !request.replace) continue;
    if (there !== undefined && isFolder) unlinkSync(target);
    renameSync(source, target);
  }
}

function enter(source: string, target: string): void {
  const folder = openSync(target, FOLDER);
  try {
    move(source, folder);
  } finally {
    closeSync(folder);
  }
}

function statusOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

const stagingParent = roots.home ?? roots.workspace ?? -1;
const staging = below(stagingParent, request.staging);
try {
  if (from === undefined) mkdirSync(staging, 0o700);
  const folder = from ?? openSync(staging, FOLDER);
  process.chdir(`/proc/self/fd/${folder}`);
  if (from === undefined) unpackAll();
  else for (const name of readdirSync('.')) made.add(name);
  for (const root of ROOTS) {
    const into = roots[root];
    if (into !== undefined && made.has(root)) move(root, into);
  }
  tell<Unpacked>({ files, bytes });
} catch (error) {
  const isSystem = typeof (error as NodeJS.ErrnoException).code === 'string' && 'syscall' in (error as object);
  if (!(error instanceof BadArchive) && !isSystem) throw error;
  tell<Unpacked>({ fault: error instanceof BadArchive ? error.message : systemReason(error) });
} finally {
  process.chdir('/');
  if (from === undefined) rmSync(staging, { recursive: true, force: true });
}
