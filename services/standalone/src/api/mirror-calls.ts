/**
 * The mirrors of repositories, used from another thread: one fetch serves the intake, which reads a file, and the runner,
 * which checks out the whole, although they share no thread.
 *
 *  MIRRORCALLS-1 What is asked names the repository and the commit, so that no call depends on an earlier one. Commits
 *                that were fetched lately are remembered, at most `REMEMBERED_MAX`.
 *  MIRRORCALLS-2 Refusals arrive as the GitErrors that they were, with the words of their cause: what git said is for the log.
 */
import type { DoorCalls } from './door-calls.ts';
import type { MetricsSnapshot } from '@penstock/telemetry/metrics';
import { BadFile, GitError, type GitErrorCode, type MirrorCache } from '@penstock/git';

type Source = Pick<MirrorCache, 'fetch' | 'findRef'>;
type Commit = Awaited<ReturnType<MirrorCache['fetch']>>;
interface Address {
  readonly url: string;
  readonly commit: string;
  readonly ref?: string | undefined;
  /** Whose it is. */
  readonly key: string;
  /** Commits that will be asked for next. */
  readonly along?: readonly string[] | undefined;
}

/** What stands for an outcome between threads: the classes of errors do not cross. */
type Outcome<T> = { readonly value: T } | { readonly refused: Refused };

interface Refused {
  readonly code: GitErrorCode;
  readonly message: string;
  readonly path?: string | undefined;
  readonly cause?: string | undefined;
}

/** What the API's thread asks the engine's. */
export interface EngineCalls extends MirrorCalls, DoorCalls {
  /** What the engine counts, and the process. */
  figures(): Promise<MetricsSnapshot>;
}

type WantedRef = Omit<Parameters<MirrorCache['findRef']>[0], 'signal'>;

export interface MirrorCalls {
  fetch(address: Address): Promise<Outcome<null>>;
  readFile(
    address: Address,
    paths: readonly string[],
    bytesMax: number,
  ): Promise<Outcome<{ readonly path: string; readonly text: string } | null>>;
  message(address: Address): Promise<Outcome<string>>;
  changedPaths(address: Address, ref: string, branch: string): Promise<Outcome<string[] | null>>;
  findRef(request: WantedRef): Promise<Outcome<string | null>>;
}

/** Of a call between the threads: longer than any takes by its own deadlines. */
export const CALL_MS_MAX = 5 * 60_000;
const REMEMBERED_MAX = 1_000;

/** The side that has the mirrors. */
export function mirrorCalls(mirrors: Source): MirrorCalls {
  const remembered = new Map<string, Commit>();
  const commitAt = async (address: Address): Promise<Commit> => {
    const name = nameOf(address);
    const known = remembered.get(name);
    if (known !== undefined) return known;
    const commit = await mirrors.fetch(address);
    remembered.set(name, commit);
    for (const oldest of remembered.keys()) {
      if (remembered.size <= REMEMBERED_MAX) break;
      remembered.delete(oldest);
    }
    return commit;
  };
  return {
    fetch: (address) =>
      outcomeOf(async () => {
        // Anew: the repository may have gone since, or the mirror been evicted.
        remembered.delete(nameOf(address));
        await commitAt(address);
        return null;
      }),
    readFile: (address, paths, bytesMax) => outcomeOf(async () => (await commitAt(address)).readFile(paths, bytesMax)),
    message: (address) => outcomeOf(async () => (await commitAt(address)).message()),
    changedPaths: (address, ref, branch) => outcomeOf(async () => (await commitAt(address)).changedPaths(ref, branch)),
    findRef: (request) => outcomeOf(() => mirrors.findRef(request)),
  };
}

function nameOf({ url, commit, key }: Address): string {
  return JSON.stringify([commit, key, url]);
}

/** The side that asks. */
export function mirrorsByCalls(calls: MirrorCalls) {
  return {
    async fetch(address: Address) {
      valueOf(await calls.fetch(address));
      return {
        readFile: async (paths: readonly string[], bytesMax: number) =>
          valueOf(await calls.readFile(address, paths, bytesMax)),
        message: async () => valueOf(await calls.message(address)),
        changedPaths: async (ref: string, branch: string) => valueOf(await calls.changedPaths(address, ref, branch)),
      };
    },
    findRef: async (request: WantedRef) => valueOf(await calls.findRef(request)),
  };
}

async function outcomeOf<T>(work: () => Promise<T>): Promise<Outcome<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    const { code, message, cause } = error;
    return {
      refused: {
        ...{ code, message, path: error instanceof BadFile ? error.path : undefined },
        cause: cause instanceof Error ? cause.message : undefined,
      },
    };
  }
}

function valueOf<T>(outcome: Outcome<T>): T {
  if ('value' in outcome) return outcome.value;
  const { code, message, path, cause } = outcome.refused;
  if (path === undefined)
    throw new GitError(code, message, { cause: cause === undefined ? undefined : new Error(cause) });
  throw new BadFile(path, message.slice(path.length + 1));
}
