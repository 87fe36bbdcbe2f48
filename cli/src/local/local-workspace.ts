/**
 * Where the stages of a local run work: the folder that the command was called in, shared by all of them; for a stage
 * that asks for `workspace: fresh` a copy of the files that git knows, as they are now.
 *
 * Owns one temporary folder, in which everything lies that the run makes for itself: copies and the files that stages
 * write their outputs to. `remove` leaves nothing of it.
 */
import { execFile } from 'node:child_process';
import { constants, mkdtempSync, writeFileSync } from 'node:fs';
import { copyFile, lstat, mkdir, readlink, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { systemReason } from '@penstock/errors';
import { removeTreeHere } from '@penstock/executor';
import { workdirFault } from '@penstock/pipeline';
import { printableText } from '../output/printable-text.ts';
import { NotWritten, WorkspaceProblem } from '../process/errors.ts';

/** The list of a repository's files: a million paths. */
const LIST_BYTES_MAX = 128 * 1024 * 1024;
/** Copies under way at a time: more only wait for the disk. */
const COPIES_MAX = 16;

export class LocalWorkspace {
  /** Shared by the stages. */
  readonly folder: string;
  /** What the run makes for itself lies here. */
  readonly scratch: string;
  #outputFiles = 0;
  #copies = 0;
  #listed: Promise<Buffer[]> | undefined;

  /** Throws NotWritten where there is no place for a temporary folder. */
  constructor(folder: string) {
    this.folder = folder;
    try {
      this.scratch = mkdtempSync(join(tmpdir(), 'penstock-run-'));
    } catch (error) {
      throw new NotWritten(
        `there is no folder for the run's own files in ${printableText(tmpdir())} (${systemReason(error)}): let TMPDIR name one that can be written`,
        { cause: error },
      );
    }
  }

  /** For `$SERVICE_OUTPUT`; the file is there where the stage declares outputs. */
  outputFile(declaresOutputs: boolean): string {
    this.#outputFiles += 1;
    const path = join(this.scratch, `output-${this.#outputFiles}`);
    if (declaresOutputs) writeFileSync(path, '', { mode: 0o600 });
    return path;
  }

  /** A new folder with the files that git knows. Throws WorkspaceProblem. */
  async fresh(signal: AbortSignal): Promise<string> {
    this.#copies += 1;
    const copy = join(this.scratch, `workspace-${this.#copies}`);
    // Only the list is shared: the files may have changed since the last copy, which is what stages are for.
    this.#listed ??= listFiles(this.folder);
    await copyFiles(await this.#listed, this.folder, copy, signal);
    return copy;
  }

  /** Of a path that `fresh` gave. */
  async discard(copy: string): Promise<void> {
    await removeTreeHere(copy);
  }

  async remove(): Promise<void> {
    await removeTreeHere(this.scratch);
  }
}

/** The stage's folder in its workspace. Throws WorkspaceProblem for one outside of it. */
export function workdirIn(workspace: string, workdir: string | undefined): string {
  if (workdir === undefined) return workspace;
  const fault = workdirFault(workdir);
  if (fault !== undefined) throw new WorkspaceProblem(fault);
  return resolve(workspace, workdir);
}

async function listFiles(folder: string): Promise<Buffer[]> {
  const list = await new Promise<Buffer>((resolveList, reject) => {
    const args = ['-c', 'core.fsmonitor=false', 'ls-files', '-z', '--cached', '--recurse-submodules'];
    execFile('git', args, { cwd: folder, encoding: 'buffer', maxBuffer: LIST_BYTES_MAX }, (error, stdout, stderr) => {
      if (error === null) resolveList(stdout);
      else if (error.code === 'ENOENT')
        reject(
          new WorkspaceProblem(
            "a stage with 'workspace: fresh' gets a copy of the files that git knows, and there is no git on the PATH",
          ),
        );
      else
        reject(
          new WorkspaceProblem(
            `a stage with 'workspace: fresh' gets a copy of the files that git knows: ${stderr.toString('utf8').trim().split('\n', 1)[0] ?? ''}`,
          ),
        );
    });
  });
  const paths = new Map<string, Buffer>();
  for (let from = 0; from < list.length;) {
    const end = list.indexOf(0, from);
    const path = list.subarray(from, end === -1 ? list.length : end);
    // A file in conflict is listed once for each side.
    paths.set(path.toString('latin1'), path);
    from = end === -1 ? list.length : end + 1;
  }
  return [...paths.values()];
}

/** Paths are bytes: a file's name need not be text. */
async function copyFiles(paths: readonly Buffer[], from: string, to: string, signal: AbortSignal): Promise<void> {
  const made = new Set<string>();
  await mkdir(to, { mode: 0o700 });
  let next = 0;
  const work = async (): Promise<void> => {
    for (let path = paths[next++]; path !== undefined && !signal.aborted; path = paths[next++])
      await copyOne(path, from, to, made);
  };
  await Promise.all(Array.from({ length: COPIES_MAX }, work));
}

async function copyOne(path: Buffer, from: string, to: string, made: Set<string>): Promise<void> {
  const source = Buffer.concat([Buffer.from(`${from}/`), path]);
  const target = Buffer.concat([Buffer.from(`${to}/`), path]);
  try {
    const stat = await lstat(source);
    const slash = path.lastIndexOf('/');
    const parent = slash === -1 ? '' : path.toString('latin1', 0, slash);
    if (slash !== -1 && !made.has(parent)) {
      await mkdir(Buffer.concat([Buffer.from(`${to}/`), path.subarray(0, slash)]), { recursive: true });
      made.add(parent);
    }
    if (stat.isSymbolicLink()) await symlink(await readlink(source, 'buffer'), target);
    else if (stat.isFile()) await copyFile(source, target, constants.COPYFILE_FICLONE);
    // A submodule that is not there.
    else if (stat.isDirectory()) await mkdir(target, { recursive: true });
  } catch (error) {
    // Deleted, and not told to git yet: the copy lacks it too.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw new WorkspaceProblem(`cannot copy '${path.toString('utf8')}': ${systemReason(error)}`, { cause: error });
  }
}
