/** What is read of a commit without its files ever being written anywhere. Links are not followed: they are refused. */
import { BadFile, GitError } from './errors.ts';
import { describeBytes } from './git-command.ts';
import type { SmallCommit } from './small-commit.ts';

/** A git command in the mirror, with its output. */
export type InMirror = (args: readonly string[], stdoutBytesMax: number) => Promise<Buffer>;

export interface CommitFile {
  readonly path: string;
  readonly text: string;
}

const PATHS_MAX = 16;
const LISTING_BYTES_MAX = 64 * 1024;
/** A commit's message is a person's text. */
export const MESSAGE_BYTES_MAX = 64 * 1024;
const REGULAR = new Set(['100644', '100755', '100664']);

export interface FoundFile {
  readonly path: string;
  readonly object: string;
}

/**
 * The first of `paths` that the commit has, whatever it is there: a link in the place of the first file does not make the
 * second one count. Null: it has none. @throws GitError `bad_file`
 */
export async function findFile(git: InMirror, commit: string, paths: readonly string[]): Promise<FoundFile | null> {
  if (paths.length > PATHS_MAX || paths.some((path) => !isPlainPath(path))) throw badPath();
  const listing = await git(['ls-tree', '-z', '--full-tree', '--end-of-options', commit, ...paths], LISTING_BYTES_MAX);
  const entries = new Map(
    listing
      .toString('utf8')
      .split('\0')
      .flatMap((line) => {
        const [, mode = '', object = '', path = ''] = /^(\d+) \w+ ([0-9a-f]+)\t(.*)$/su.exec(line) ?? [];
        return path === '' ? [] : [[path, { mode, object }]];
      }),
  );
  for (const path of paths) {
    const entry = entries.get(path);
    if (entry === undefined) continue;
    if (!REGULAR.has(entry.mode)) throw new BadFile(path, `is ${kindOf(entry.mode)}, not a file`);
    return { path, object: entry.object };
  }
  return null;
}

/** The same of a commit that is in memory. */
export function readSmallFile(
  { entries, folders }: SmallCommit,
  paths: readonly string[],
  bytesMax: number,
): CommitFile | null {
  if (paths.length > PATHS_MAX || paths.some((path) => !isPlainPath(path))) throw badPath();
  for (const path of paths) {
    if (folders.includes(path)) throw new BadFile(path, `is ${kindOf('040000')}, not a file`);
    const entry = entries.find((each) => each.path === path);
    if (entry === undefined) continue;
    if (entry.kind === 'link' || entry.kind === 'submodule')
      throw new BadFile(path, `is ${kindOf(entry.kind === 'link' ? '120000' : '160000')}, not a file`);
    return { path, text: textOf(path, Buffer.from(entry.content), bytesMax) };
  }
  return null;
}

/** @throws GitError `bad_file` where it is larger, or no UTF-8 text */
export async function readText(git: InMirror, { path, object }: FoundFile, bytesMax: number): Promise<string> {
  return textOf(path, await git(['cat-file', 'blob', object], bytesMax + 1), bytesMax);
}

function textOf(path: string, bytes: Buffer, bytesMax: number): string {
  if (bytes.length > bytesMax) throw new BadFile(path, `is larger than ${describeBytes(bytesMax)}`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new BadFile(path, 'is not a text in UTF-8', { cause: error });
  }
}

/** At most 64 KiB of it. */
export async function readMessage(git: InMirror, commit: string): Promise<string> {
  const raw = (await git(['cat-file', 'commit', commit], MESSAGE_BYTES_MAX)).toString('utf8');
  const body = raw.indexOf('\n\n');
  return body === -1 ? '' : raw.slice(body + 2);
}

function badPath(): GitError {
  return new GitError('bad_file', 'a file of a repository is named by a relative path');
}

function isPlainPath(path: string): boolean {
  return (
    path !== '' &&
    !path.startsWith('/') &&
    !path.includes('\0') &&
    path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

function kindOf(mode: string): string {
  if (mode === '120000') return 'a link';
  if (mode === '040000') return 'a folder';
  return mode === '160000' ? 'a submodule' : 'something else';
}
