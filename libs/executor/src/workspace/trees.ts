/**
 * Whole trees of files that stages have written: given to a user, and removed.
 *
 * TREES-1. What belongs to a stage's user is removed with that user's rights, from inside its folder: whatever is swapped for
 *     a link meanwhile, nothing goes that the stage could not have removed itself.
 */
import { execFile } from 'node:child_process';
import { constants, lstatSync, type Stats } from 'node:fs';
import { open, rm, rmdir, unlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { StageUser } from '../contract/port.ts';

/** For a tree that needs `rm`; a large one on a slow disk takes minutes. */
const TREE_MS_MAX = 10 * 60_000;
const OPTIONS = { timeout: TREE_MS_MAX, maxBuffer: 64 * 1024 };
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
  if (found.uid === own || own !== 0) await removeOwn(path);
  else if (found.isDirectory()) await removeOfAnother(path, found);
  else await unlink(path);
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
async function removeOfAnother(path: string, { uid, gid }: StageUser): Promise<void> {
  try {
    await rmdir(path);
  } catch {
    const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    try {
      // Its owner may have shut itself out.
      await folder.chmod(0o700);
      await emptyAsOwner(folder.fd, uid, gid);
    } finally {
      await folder.close();
    }
    await rmdir(path);
  }
}

/** The folder is entered with our rights, whatever stands above it, and by its descriptor, whatever stands at its path by now. */
async function emptyAsOwner(folder: number, uid: number, gid: number): Promise<void> {
  const asOwner = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--inh-caps=-all', '--bounding-set=-all'];
  await run('setpriv', [...asOwner, '--no-new-privs', '--', 'sh', '-c', EMPTY_THIS_FOLDER], {
    ...OPTIONS,
    cwd: `/proc/${process.pid}/fd/${folder}`,
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
}
