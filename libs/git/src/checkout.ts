/**
 * A workspace at a commit: a repository of its own, detached at that commit, whose `origin` is the clone address. No hook
 * runs, no filter, no submodule is fetched, large files kept elsewhere (LFS) stay pointers. Links stand as git has them;
 * git writes nothing through one.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GitCommandFailed, GitError } from './errors.ts';
import { describeBytes, runGit } from './git-command.ts';
import { TaskThread } from '@penstock/async';
import { writeSkeleton } from './skeleton.ts';
import type { SmallCommit } from './small-commit.ts';
import { emptyFolder, WRITING, type WriteOptions, type WriteTask } from './write-checkout.ts';

export interface CheckoutOptions {
  readonly mirror: string;
  readonly commit: string;
  /** Shown to the stages. */
  readonly url: string;
  /** Empty, or not there. */
  readonly folder: string;
  /** Of the files. */
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const TREE_FILES_MAX = 1_000_000;
const SCRIPT = fileURLToPath(new URL('./checkout.sh', import.meta.url));
const TOO_LARGE = 65;
/** Of 500 files, on a disk that hardly answers. */
const SMALL_MS_MAX = 5 * 60_000;
/** More stages than begin at the same time. */
const WAITING_MAX = 10_000;

/** The folder is whole when this resolves, and gone when it rejects. @throws as `runGit`; GitError `too_large` */
export async function checkOut({
  mirror,
  commit,
  url,
  folder,
  bytesMax,
  timeoutMs,
  signal,
}: CheckoutOptions): Promise<void> {
  emptyFolder(folder);
  try {
    const gitFolder = join(folder, '.git');
    await writeSkeleton(gitFolder, { bare: false, url, sha256: commit.length === 64, partial: false });
    await writeFile(join(gitFolder, 'HEAD'), `${commit}\n`);
    // Nothing before it is here.
    await writeFile(join(gitFolder, 'shallow'), `${commit}\n`);
    await runGit({
      file: '/bin/sh',
      args: [
        SCRIPT,
        mirror,
        // In quotes, as in C: in a list of folders a colon would end it.
        JSON.stringify(join(mirror, 'objects')),
        commit,
        folder,
        String(TREE_FILES_MAX),
        String(bytesMax),
      ],
      cwd: folder,
      timeoutMs,
      signal,
    });
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    if (!(error instanceof GitCommandFailed) || error.exitCode !== TOO_LARGE) throw error;
    throw new GitError(
      'too_large',
      `the files of the commit are larger than ${describeBytes(bytesMax)}, or more than ${TREE_FILES_MAX}`,
    );
  }
}

export type CheckoutThread = TaskThread<WriteTask, void>;

export function startCheckoutThread(): CheckoutThread {
  return new TaskThread({
    program: new URL('./checkout-thread.ts', import.meta.url),
    name: 'penstock-checkout',
    taskMsMax: SMALL_MS_MAX,
    tasksMax: WAITING_MAX,
  });
}

/** Without a process. Of a folder that the thread has not come to, it takes nothing away. @throws the signal's reason */
export async function checkOutSmall(
  thread: CheckoutThread,
  commit: SmallCommit,
  { signal, ...options }: WriteOptions & { readonly signal: AbortSignal },
): Promise<void> {
  signal.throwIfAborted();
  const state = new Int32Array(new SharedArrayBuffer(4));
  const callOff = (): number => Atomics.or(state, 0, WRITING.calledOff);
  signal.addEventListener('abort', callOff, { once: true });
  const { folder } = options;
  try {
    await thread.ask({ commit, options, state });
    signal.throwIfAborted();
  } catch (error) {
    // One that is closed, full or late may never come to it, and then nobody has seen what is in the folder.
    if ((callOff() & WRITING.begun) !== 0) await rm(folder, { recursive: true, force: true });
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', callOff);
  }
}
