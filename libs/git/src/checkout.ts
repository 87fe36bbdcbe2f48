/**
 * A workspace at a commit: a repository of its own, detached at that commit, whose `origin` is the clone address. No hook
 * runs, no filter, no submodule is fetched, large files kept elsewhere (LFS) stay pointers. Links stand as git has them;
 * git writes nothing through one.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GitError } from './errors.ts';
import { describeBytes, runGit } from './git-command.ts';
import { writeSkeleton } from './skeleton.ts';

export interface CommitInMirror {
  readonly mirror: string;
  readonly commit: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A tree of few objects can stand for more files than any disk has. */
export const TREE_FILES_MAX = 1_000_000;
const SCRIPT = fileURLToPath(new URL('./checkout.sh', import.meta.url));

/** Into a folder that is empty or not there; `url` is shown to the stages. The folder is whole when this resolves, and gone when it rejects. @throws as `runGit` */
export async function checkOut({ mirror, commit, timeoutMs, signal }: CommitInMirror, url: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await readdir(folder)).length > 0) throw new Error('a workspace is checked out into an empty folder only');
  try {
    const gitFolder = join(folder, '.git');
    await writeSkeleton(gitFolder, { bare: false, url, sha256: commit.length === 64, partial: false });
    await writeFile(join(gitFolder, 'HEAD'), `${commit}\n`);
    // Nothing before it is here.
    await writeFile(join(gitFolder, 'shallow'), `${commit}\n`);
    await runGit({ file: '/bin/sh', args: [SCRIPT, mirror, commit, folder], cwd: folder, timeoutMs, signal });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** What the files of a commit take on a disk, before one of them is written. @throws GitError `too_large` */
export async function assertTreeFits({ mirror, commit, timeoutMs, signal }: CommitInMirror, bytesMax: number): Promise<void> {
  let [files, bytes, rest, isTooLarge] = [0, 0, '', false];
  const onStdout = (chunk: Uint8Array): boolean => {
    const entries = (rest + Buffer.from(chunk).toString('latin1')).split('\0');
    rest = entries.pop() ?? '';
    for (const entry of entries) {
      files += 1;
      bytes += Number(/^\d+ \w+ [0-9a-f]+ +(\d+)\t/u.exec(entry)?.[1] ?? 0);
    }
    isTooLarge = files > TREE_FILES_MAX || bytes > bytesMax;
    return !isTooLarge;
  };
  await runGit({ args: ['ls-tree', '-r', '-l', '-z', '--full-tree', '--end-of-options', commit], options: [`--git-dir=${mirror}`], cwd: mirror, timeoutMs, signal, onStdout });
  if (isTooLarge) throw new GitError('too_large', files > TREE_FILES_MAX ? `the commit has more than ${TREE_FILES_MAX} files` : `the files of the commit are larger than ${describeBytes(bytesMax)}`);
}
