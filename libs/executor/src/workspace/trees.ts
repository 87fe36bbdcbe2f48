/**
 * Whole trees of files that stages have written: given to a user, and removed.
 *
 * TREES-1. What belongs to a stage's user is removed with that user's rights, from inside its folder and by descriptors: whatever
 *     is swapped for a link meanwhile, nothing goes that does not stand in the folder. A small tree is removed by a thread: in
 *     folders alone that the user owns, as their descriptors say, for there it may remove everything itself.
 */
import { execFile } from 'node:child_process';
import { constants, lstatSync, type Stats } from 'node:fs';
import { chmod, open, rm, rmdir, unlink, type FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { TaskThread } from '@penstock/async';
import type { StageUser } from '../contract/port.ts';
import { O_PATH, removeSmallTree, type SmallTree } from './small-tree.ts';

/** For a tree that needs `rm`; a large one on a slow disk takes minutes. */
const TREE_MS_MAX = 10 * 60_000;
/** Of a small one; beyond it a process tries. */
const SMALL_TREE_MS_MAX = 60_000;
const REMOVALS_WAITING_MAX = 1_000;
const OPTIONS = { timeout: TREE_MS_MAX, maxBuffer: 64 * 1024 };
const EMPTY_THIS_FOLDER = 'chmod -R u+rwX . 2>/dev/null; exec find . -mindepth 1 -delete';
const run = promisify(execFile);
/** How long a disk takes to remove a file is nobody's to say: one that tells its device of each keeps a thread for milliseconds. */
const removals = new TaskThread<SmallTree, boolean>({
  program: new URL('./tree-thread.ts', import.meta.url),
  name: 'penstock-removal',
  taskMsMax: SMALL_TREE_MS_MAX,
  tasksMax: REMOVALS_WAITING_MAX,
});

/** Of a tree that no stage can reach yet. */
export async function giveTree(path: string, { uid, gid }: StageUser): Promise<void> {
  await run('chown', ['-Rh', `${uid}:${gid}`, '--', path], OPTIONS);
}

/** Also with folders that nobody may read and paths longer than the kernel takes. Nothing there: nothing is done. */
export function removeTree(path: string): Promise<void> {
  return removeWith(path, (tree) => removals.ask(tree).catch(() => false));
}

/** The same for a process that has nothing else to do: a thread takes longer to begin than a small tree to go. */
export function removeTreeHere(path: string): Promise<void> {
  return removeWith(path, (tree) => Promise.resolve(removeSmallTree(tree)));
}

type RemoveSmall = (tree: SmallTree) => Promise<boolean>;

async function removeWith(path: string, removeSmall: RemoveSmall): Promise<void> {
  const found = statusOf(path);
  if (found === undefined) return;
  const own = process.getuid?.();
  if (!found.isDirectory()) await unlink(path);
  else if (own === 0 && found.uid !== own) await removeFromInside(path, found.uid, asUser(found), removeSmall);
  // A runner that shares its user with the stages: what is theirs to swap is not ours to walk by names.
  else if (process.platform === 'linux') await removeFromInside(path, found.uid, [], removeSmall);
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

/** TREES-1. A small tree needs no process. */
async function removeFromInside(
  path: string,
  uid: number,
  as: readonly string[],
  removeSmall: RemoveSmall,
): Promise<void> {
  if (await removeSmall({ path, uid })) return;
  // Also of a folder that its owner has shut.
  const folder = await open(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await emptyFolder(folder, as);
  } finally {
    await folder.close();
  }
  await rmdir(path);
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
