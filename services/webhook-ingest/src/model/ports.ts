/** What the ingest needs of the world, as narrow as it uses it. */
import type { ServerMode } from '@penstock/config';
import type { CloneCredential } from '@penstock/git';

/** Clones of repositories, as `@penstock/git` gives them. Its refusals are errors with a `code`. */
export interface CommitSource {
  fetch(address: {
    readonly url: string;
    readonly commit: string;
    /** Whose it is; what is kept for one serves no other. */
    readonly key: string;
    /** In place of what the server has. */
    readonly credential?: CloneCredential | undefined;
    /** A ref beside branches and tags that leads to it. */
    readonly ref?: string | undefined;
    /** Commits of the same repository that will be asked for next: they may come along. */
    readonly along?: readonly string[] | undefined;
  }): Promise<FetchedCommit>;
}

export interface RefSource {
  /** What the ref names on its server now; null: there is no such ref. */
  findRef(request: {
    readonly url: string;
    readonly ref: string;
    /** Whose it is; absent: nobody's in particular. */
    readonly key?: string | undefined;
    /** In place of what the server has. */
    readonly credential?: CloneCredential | undefined;
  }): Promise<string | null>;
}

export interface FetchedCommit {
  /** The first of these paths that is there. Throws (`bad_file`) for one that is no regular file, or too large. */
  readFile(
    paths: readonly string[],
    bytesMax: number,
  ): Promise<{ readonly path: string; readonly text: string } | null>;
  /** Of the commit. */
  message(): Promise<string>;
  /** What it changes since it left this branch, `ref` leading to it; null: not known. */
  changedPaths(ref: string, branch: string): Promise<readonly string[] | null>;
}

export interface ClonePolicy {
  readonly mode: ServerMode;
  readonly allowedHosts: readonly string[];
}

/** `SERVICE_FORK_POLICY`: what comes of a pull request from a fork. */
export type ForkPolicy = 'approve' | 'run' | 'ignore';
