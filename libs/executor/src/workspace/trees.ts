/**
 * Whole trees of files that stages have written: given to a user, and removed.
 *
 * TREES-1. What belongs to a stage's user is removed with that user's rights, from inside its folder and by descriptors: whatever
 *     is swapped for a link meanwhile, nothing goes that does not stand in the folder. A small tree is removed by this process: in
 *     folders alone that the user owns, as their descriptors say, for there it may remove everything itself.
 */
import { execFile } from 'node:child_process';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  rmdirSync,
  unlinkSync,
  type Stats,
} from 'node:fs';
import { chmod, open, rm, rmdir, unlink, type FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { StageUser } from '../contract/port.ts';

/** For a tree that needs `rm`; a large one on a slow disk takes minutes. */
const TREE_MS_MAX = 10 * 60_000;
/** Some milliseconds of this thread; of more a process is not dear. */
const SMALL_TREE_ENTRIES = 300;
const SMALL_TREE_DEPTH = 32;
const OPTIONS = { timeout: TREE_MS_MAX, maxBuffer: 64 * 1024 };
/** Of Linux, where Node names it not. */
const O_PATH = 0o10000000;
const EMPTY_THIS_FOLDER = 'chmod -R u+rwX . 2>/dev/null; exec find . -mindepth 1 -delete';
const run = promisify(execFile);

/** Of a tree that no stage can reach yet. */
export async function giveTree(path: string, { uid, gid }: StageUser): Promise<void> {
  await run('chown', ['-Rh', `${uid}:${gid}`, '--', path], OPTIONS);
}

/** Also with folders that nobody may read and paths longer than the kernel takes. Nothing there: nothing is done. */
export async function removeTree(path: string): Promise<void> {
  const found = statusOf(path);
  if (found === undefined) return;
  const own = process.getuid?.();
  if (!found.isDirectory()) await unlink(path);
  else if (own === 0 && found.uid !== own) await removeFromInside(path, found.uid, asUser(found));
  // A runner that is not root shares its user with the stages: what is theirs to swap is not ours to walk by names.
  else if (own !== 0 && process.platform === 'linux') await removeFromInside(path, found.uid, []);
  else await removeOwn(path);
}

/** Undefined where nothing is, a file in the place of a folder above it included. */
function statusOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

async function removeOwn(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    // What it cannot change is not ours; rm then says so.
    await run('chmod', ['-R', 'u+rwX', '--', path], OPTIONS).catch(() => {});
    await run('rm', ['-rf', '--', path], OPTIONS);
  }
}

/** TREES-1. An empty folder needs no process. */
async function removeFromInside(path: string, uid: number, as: readonly string[]): Promise<void> {
  try {
    await rmdir(path);
  } catch {
    // Also of a folder that its owner has shut.
    const folder = await open(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    try {
      if (!isEmptied(folder.fd, uid)) await emptyFolder(folder, as);
    } finally {
      await folder.close();
    }
    await rmdir(path);
  }
}

/** TREES-1. False where the tree is large, or something in it is not the user's to remove: part of it may have gone. */
function isEmptied(folder: number, uid: number): boolean {
  let left = SMALL_TREE_ENTRIES;
  const { dev } = fstatSync(folder);
  const empty = (fd: number, depth: number): boolean => {
    const found = fstatSync(fd);
    if (found.uid !== uid || found.dev !== dev || depth > SMALL_TREE_DEPTH) return false;
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
  try {
    return empty(folder, 0);
  } catch {
    // Shut, changed meanwhile, or made to stay.
    return false;
  }
}

async function emptyFolder(folder: FileHandle, as: readonly string[]): Promise<void> {
  try {
    await chmod(`/proc/self/fd/${folder.fd}`, 0o700);
    await runInside(folder.fd, [...as, 'sh', '-c', EMPTY_THIS_FOLDER]);
  } catch (error) {
    if (as.length === 0) throw error;
    // No stage makes files immutable, but root may have.
    await runInside(folder.fd, ['chattr', '-R', '-f', '-i', '-a', '.']).catch(() => {});
    await chmod(`/proc/self/fd/${folder.fd}`, 0o700);
    await runInside(folder.fd, [...as, 'sh', '-c', EMPTY_THIS_FOLDER]);
  }
}

function asUser({ uid, gid }: StageUser): string[] {
  return [
    ...['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--inh-caps=-all', '--bounding-set=-all'],
    ...['--no-new-privs', '--'],
  ];
}

/** The folder is entered with our rights, whatever stands above it, and by its descriptor, whatever stands at its path by now. */
async function runInside(folder: number, [file = '', ...args]: readonly string[]): Promise<void> {
  await run(file, args, {
    ...OPTIONS,
    cwd: `/proc/${process.pid}/fd/${folder}`,
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
}
