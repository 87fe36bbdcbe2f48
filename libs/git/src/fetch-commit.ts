/**
 * The ways to get one commit into a mirror, from the cheapest to the last: the commit alone; where a server gives commits
 * only by the names of its refs, their history in growing steps until the commit is there; and all of it from a server that
 * is nothing but files.
 */
import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Connection } from './connection.ts';
import type { Credentials } from './credentials.ts';
import { doesNotKnowCommit, isDumb, refusesBareCommit } from './failure.ts';
import { GitCommandFailed, GitError } from './errors.ts';
import { runGit } from './git-command.ts';

export interface FetchDependencies {
  /** The mirror. */
  readonly gitFolder: string;
  /** It is one that may lack objects. */
  readonly partial: boolean;
  readonly connection: Connection;
  readonly credentials: Credentials;
  /** Of the mirror, while it grows. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
  /** Milliseconds left until the deadline. */
  readonly timeLeftMs: () => number;
}

interface CommitFetch extends FetchDependencies {
  readonly commit: string;
  /** A ref beside branches and tags that leads to it. */
  readonly ref?: string | undefined;
  readonly whole: boolean;
}

/** A push of more commits at once than a thousand is rare; the last step is all there is. */
const DEPTHS = [1, 50, 1_000, 2_147_483_647];
/** A server that says it has no such commit is asked once for the newest of its refs: it may mean that no ref names it. */
const DEPTH_OF_DOUBT = [50];
const EVERY_REF = ['+refs/heads/*:refs/penstock/remote/heads/*', '+refs/tags/*:refs/penstock/remote/tags/*'];

const ASKED_REF = 'refs/penstock/remote/asked';

/** Where a commit that is there, with what it needs, is remembered: git writes it last. */
export function refOf(commit: string, whole: boolean): string {
  return `refs/penstock/${whole ? 'whole' : 'partial'}/${commit}`;
}

/**
 * Several commits by one git, each alone; all of them are there when it resolves, and none is promised when it rejects.
 * `whole` as for `fetchCommit`. @throws as `runGit`
 */
export async function fetchTogether(
  dependencies: FetchDependencies,
  commits: readonly string[],
  { whole, timeoutMs }: { readonly whole: boolean; readonly timeoutMs: number },
): Promise<void> {
  const timeLeftMs = (): number => Math.min(timeoutMs, dependencies.timeLeftMs());
  await runFetch(
    { ...dependencies, timeLeftMs },
    whole,
    ['--depth=1'],
    commits.map((commit) => `${commit}:${refOf(commit, whole)}`),
  );
}

/** `whole`: with everything in its tree; else without the contents of files, where the server can do that. @throws as `runGit` */
export async function fetchCommit(
  dependencies: FetchDependencies,
  commit: string,
  { whole, ref }: { readonly whole: boolean; readonly ref?: string | undefined },
): Promise<void> {
  const fetch: CommitFetch = { ...dependencies, commit, whole, ref };
  try {
    await runFetch(fetch, whole, ['--depth=1'], [`${commit}:${refOf(commit, whole)}`]);
    return;
  } catch (error) {
    const wanted = isDumb(error)
      ? null
      : refusesBareCommit(error)
        ? DEPTHS
        : doesNotKnowCommit(error)
          ? DEPTH_OF_DOUBT
          : undefined;
    if (wanted === undefined) throw error;
    await fetchHistory(fetch, wanted);
  }
}

/** `depths` null: all of it, from a server that knows no other way. */
async function fetchHistory(fetch: CommitFetch, depths: readonly number[] | null): Promise<void> {
  for (const depth of depths ?? [null]) {
    // Pruned, since a branch may have gone whose name is now the beginning of another's.
    const refs = fetch.ref === undefined ? EVERY_REF : [...EVERY_REF, `+${fetch.ref}:${ASKED_REF}`];
    await runFetch(fetch, fetch.whole, ['--prune', ...(depth === null ? [] : [`--depth=${depth}`])], refs);
    if (!(await isThere(fetch))) continue;
    await git(fetch, ['update-ref', refOf(fetch.commit, fetch.whole), fetch.commit]);
    return;
  }
  throw new GitError('not_found', 'the repository has no such commit, or none that a branch or a tag leads to');
}

/** With all that it needs: a walk of the server's files may have brought the commit and not its tree. */
async function isThere(fetch: CommitFetch): Promise<boolean> {
  try {
    await git(fetch, ['cat-file', '-e', `${fetch.commit}^{tree}`]);
    return true;
  } catch (error) {
    if (error instanceof GitCommandFailed) return false;
    throw error;
  }
}

/** An object by its id, which servers that leave things out give on request. @throws as `runGit` */
export async function fetchObject(fetch: FetchDependencies, object: string): Promise<void> {
  // Told which commits are here, the server would take it that their files are too.
  const connection = {
    ...fetch.connection,
    options: [...fetch.connection.options, '-c', 'fetch.negotiationAlgorithm=noop'],
  };
  await fetchRefs({ ...fetch, connection }, ['--filter=blob:none'], [object]);
}

async function runFetch(
  fetch: FetchDependencies,
  whole: boolean,
  depth: readonly string[],
  refspecs: readonly string[],
): Promise<void> {
  const filter = !fetch.partial ? [] : whole ? ['--no-filter', '--refetch'] : ['--filter=blob:none'];
  await fetchRefs(fetch, [...depth, ...filter], refspecs);
}

/** Most pull requests are of a few commits; one that left its branch earlier than the last step says is not compared. */
const HISTORY_DEPTHS = [50, 1_000];
/** Some hundred thousand paths. */
const PATHS_BYTES_MAX = 16 * 1024 * 1024;

/**
 * What a commit changes against the point where it left a branch, from the root of the repository; null: that point is too far
 * back, or there is none. `ref` leads to the commit. @throws as `runGit`
 */
export async function changedPaths(
  dependencies: FetchDependencies,
  { commit, ref, branch }: { readonly commit: string; readonly ref: string; readonly branch: string },
): Promise<string[] | null> {
  const fetch: CommitFetch = { ...dependencies, commit, whole: !dependencies.partial };
  const base = 'refs/penstock/remote/base';
  for (const depth of HISTORY_DEPTHS) {
    await fetchRefs(
      fetch,
      [`--depth=${depth}`, ...(fetch.partial ? ['--filter=blob:none'] : [])],
      [`+refs/heads/${branch}:${base}`, `+${ref}:${ASKED_REF}`],
    );
    const from = await mergeBase(fetch, base);
    if (from === null) continue;
    const listed = await git(
      fetch,
      ['diff-tree', '-r', '--no-renames', '--name-only', '-z', from, commit],
      PATHS_BYTES_MAX + 1,
    );
    if (listed.length > PATHS_BYTES_MAX) return null;
    return await pathsIn(listed);
  }
  return null;
}

/** Some milliseconds of work, after which others have their turn. */
const PIECE_BYTES = 128 * 1024;

/** Of a list that ends each of them with NUL. */
export async function pathsIn(listed: Buffer): Promise<string[]> {
  const paths: string[] = [];
  for (let from = 0; from < listed.length;) {
    const end = listed.indexOf(0, from + PIECE_BYTES);
    const to = end < 0 ? listed.length : end;
    for (const path of listed.toString('utf8', from, to).split('\0')) if (path !== '') paths.push(path);
    from = to + 1;
    await othersTurn();
  }
  return paths;
}

async function mergeBase(fetch: CommitFetch, base: string): Promise<string | null> {
  try {
    return (await git(fetch, ['merge-base', base, fetch.commit])).toString('utf8').trim();
  } catch (error) {
    if (error instanceof GitCommandFailed && error.exitCode === 1) return null;
    throw error;
  }
}

const QUIET = [
  '--quiet',
  '--no-tags',
  '--no-write-fetch-head',
  '--no-auto-maintenance',
  '--no-recurse-submodules',
  '--no-show-forced-updates',
  '--force',
  '--update-shallow',
];

async function fetchRefs(
  { gitFolder, connection, credentials, bytesMax, signal, timeLeftMs }: FetchDependencies,
  options: readonly string[],
  refspecs: readonly string[],
): Promise<void> {
  await runGit({
    cwd: gitFolder,
    signal,
    credentials,
    timeoutMs: timeLeftMs(),
    bound: { folder: gitFolder, bytesMax },
    options: [...connection.options, `--git-dir=${gitFolder}`],
    env: connection.env,
    args: ['fetch', ...QUIET, ...options, '--end-of-options', 'origin', ...refspecs],
  });
}

function git(
  { gitFolder, signal, timeLeftMs }: FetchDependencies,
  args: readonly string[],
  stdoutBytesMax?: number,
): Promise<Buffer> {
  return runGit({
    args,
    options: [`--git-dir=${gitFolder}`],
    cwd: gitFolder,
    timeoutMs: timeLeftMs(),
    signal,
    ...(stdoutBytesMax === undefined ? {} : { stdoutBytesMax }),
  });
}
