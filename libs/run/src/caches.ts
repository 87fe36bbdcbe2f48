/**
 * Whose files a stage's `cache` is: where a run may write, and where it looks. Both follow from where the run came from alone, so
 * that its owner, and nobody who runs it, says so.
 *
 *  CACHE-1 A scope is of one tenant, one repository (else one pipeline) and one ref.
 *  CACHE-2 What is not trusted writes nothing that a trusted run finds: only a pull request from a fork writes at all, for runs of that
 *     pull request that are not trusted either.
 *  CACHE-3 Any other delivery that is not trusted, which anybody can send in a repository's name, reads nothing.
 *  CACHE-5 A run whose file was replaced (P30) writes what is found by it alone: anybody may have written that file.
 *  CACHE-4 A run's own come first, then those of the branch that its pull request would go into, then those of the default branch. It
 *     writes its own alone.
 */
import { isTrusted } from './origin.ts';
import type { RunState } from './state.ts';

export interface CacheScope {
  readonly tenant: string;
  /** `<provider>/<repository>`; '' where the run came from none. */
  readonly repository: string;
  /** The pipeline's name where there is no repository, else ''. */
  readonly pipeline: string;
  /** '' where the run came from none. */
  readonly ref: string;
}

export interface CacheScopes {
  readonly write: CacheScope | null;
  /** In the order in which they are looked through. */
  readonly read: readonly CacheScope[];
}

/** What a stage has left for later runs: stored under its hash before this is told. */
export interface SavedCache {
  readonly key: string;
  /** Of the archive, lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
}

export function cacheScopesOf({
  id,
  tenant,
  pipelineName,
  origin,
  lineage,
}: Pick<RunState, 'id' | 'tenant' | 'pipelineName' | 'origin' | 'lineage'>): CacheScopes {
  const { provider = '', repository, ref = '', pullRequest, defaultBranch } = origin;
  const isForeign = !isTrusted(origin);
  if (isForeign && pullRequest?.fork !== true) return { write: null, read: [] };
  const scopeOf = (at: string): CacheScope => ({
    tenant,
    ...(repository === undefined
      ? { repository: '', pipeline: pipelineName }
      : { repository: `${provider}/${repository}`, pipeline: '' }),
    ref: at,
  });
  const own = pullRequest === undefined ? ref : `pull/${pullRequest.number}${isForeign ? '/untrusted' : ''}`;
  const branches = repository === undefined ? [] : [pullRequest?.branch, defaultBranch];
  const others = branches.flatMap((branch) => (branch === undefined ? [] : [`refs/heads/${branch}`]));
  // No branch is called so: a ref has its whole name here.
  const written = lineage?.edited === true ? `rerun/${id}` : own;
  return { write: scopeOf(written), read: [...new Set([written, own, ...others])].map(scopeOf) };
}
