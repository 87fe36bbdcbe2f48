/**
 * The folders that a stage is given, brought into its Pod: what is in them on the runner, by `tar` through an exec of its own. A tree
 * of empty folders, a run without a repository has no more, needs no `tar` in the image: the job makes them.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { hasPipes } from '@penstock/executor';
import type { Cluster, ExecStatus } from '../cluster/cluster.ts';
import { ClusterError } from '../errors.ts';
import { GUARD_FOLDER, STAGE_CONTAINER } from './pod-manifest.ts';

/** More are a tree worth an archive. */
const EMPTY_FOLDERS_MAX = 32;
const COMPLAINT_CHARACTERS_MAX = 1_000;

/**
 * The job may not have made the folder yet. Permissions are those of the files, whatever its shell would take from them. Where it fails it
 * takes the rest all the same: a line that is closed while something is sent by it does not say why.
 */
const UNPACK = [
  '{ mkdir -p "$1" && umask 0 && tar -x -p -f - -C "$1"; } && exit',
  'code=$?',
  'cat >/dev/null',
  'exit $code',
].join('\n');

/** What is brought: all that is in a folder of this machine, or what `contents` names, and where it goes. */
export interface Brought {
  readonly from: string;
  readonly to: string;
  readonly contents?: readonly string[] | undefined;
}

/** Of a folder what a stage is given of it: paths below it. */
export function contentsOf(folder: string, contents: readonly string[] | undefined): string[] | undefined {
  return contents?.filter((path) => path.startsWith(`${folder}/`));
}

/**
 * The empty folders in it, itself among them; null where there is a file, or more than a few. `contents`: nothing else in it counts;
 * `except`: a file that does not.
 */
export async function emptyFoldersOf(
  folder: string,
  contents: readonly string[] | undefined,
  except: string | undefined,
): Promise<string[] | null> {
  const found = contents === undefined ? [folder] : [];
  for (const path of contents ?? []) {
    const entry = await lstat(path).catch(() => undefined);
    if (entry?.isDirectory() === true) found.push(path);
    else if (entry !== undefined && (path !== except || entry.size > 0)) return null;
  }
  for (let at = 0; at < found.length; at += 1) {
    const path = found[at] ?? folder;
    for (const entry of await readdir(path, { withFileTypes: true })) {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) found.push(inner);
      else if (inner !== except || (await lstat(inner)).size > 0) return null;
    }
    if (found.length > EMPTY_FOLDERS_MAX) return null;
  }
  return found;
}

/** All of it, over what an earlier try has brought. @throws ClusterError, with the code 422 where `tar` itself has failed */
export async function bringFolder(
  cluster: Cluster,
  pod: string,
  { from: folder, to, contents }: Brought,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  // Not the folder itself: in the Pod it is the node's, and its mode and time are not the stage's to set.
  const names = contents?.filter((path) => existsSync(path)).map((path) => relative(folder, path));
  // On the input of `tar`: a stranger's folder may have more names than a command can be given.
  const entries = (names ?? (await readdir(folder))).map((name) => `./${name}\0`).join('');
  const closed = Promise.withResolvers<ExecStatus | null>();
  let complaint = '';
  const socket = await cluster.exec(pod, STAGE_CONTAINER, [`${GUARD_FOLDER}/sh`, '-c', UNPACK, 'folder', to], {
    onStdout: () => {},
    onStderr: (bytes) => {
      complaint = (complaint + bytes.toString('utf8')).slice(0, COMPLAINT_CHARACTERS_MAX);
    },
    onClose: (status) => closed.resolve(status),
  });
  const abort = (): void => socket.close();
  signal.addEventListener('abort', abort, { once: true });
  const tar = spawn('tar', ['-c', '-f', '-', '-C', folder, '--null', '-T', '-'], { stdio: ['pipe', 'pipe', 'ignore'] });
  const packed = new Promise<number | null>((resolve) => {
    tar.once('error', () => resolve(null));
    tar.once('close', resolve);
  });
  try {
    if (!hasPipes(tar)) throw new ClusterError(0, 'there are too many open files to read the folder of the stage');
    // It has ended before it has read all of them, which its exit code tells.
    tar.stdin.on('error', () => {});
    tar.stdin.end(entries);
    for await (const bytes of tar.stdout as AsyncIterable<Buffer>) await socket.send(bytes);
    // 1: a file changed while it was read; what is there by now is the run's.
    const code = await packed;
    if (code !== 0 && code !== 1) throw new ClusterError(0, `the folder of the stage could not be read (tar: ${code})`);
    await socket.endInput();
    const status = await closed.promise;
    signal.throwIfAborted();
    if (status?.status !== 'Success')
      throw new ClusterError(
        status === null ? 0 : 422,
        `the folder of the stage could not be brought into its Pod: ${complaint.trim() || (status?.message ?? 'the connection broke')}`,
      );
  } finally {
    signal.removeEventListener('abort', abort);
    tar.kill('SIGKILL');
    socket.close();
  }
}
