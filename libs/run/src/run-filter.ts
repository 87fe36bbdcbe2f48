/** Which runs a list is about: the same for the owner's memory, the store and whoever merges the two. Pure. */
import type { RunStatus } from './stage-state.ts';
import type { RunView } from './state.ts';

const STATUSES: Readonly<Record<RunStatus, true>> = {
  PENDING: true,
  QUEUED: true,
  RUNNING: true,
  SUCCESS: true,
  FAILED: true,
  SKIPPED: true,
  CANCELLED: true,
};
export const RUN_STATUSES = Object.keys(STATUSES) as readonly RunStatus[];

/** What is absent bounds nothing. */
export interface RunFilter {
  readonly pipelineName?: string | undefined;
  readonly status?: RunStatus | undefined;
  /** As the host names it: `owner/name`. */
  readonly repository?: string | undefined;
  /** Any of these. */
  readonly refs?: readonly string[] | undefined;
}

/** Stores keep well-formed text only, so texts are compared as well-formed ones. */
export function matchesFilter(
  run: Pick<RunView, 'pipelineName' | 'status' | 'repository' | 'ref'>,
  filter: RunFilter,
): boolean {
  const { pipelineName, status, repository, refs } = filter;
  return (
    (pipelineName === undefined || run.pipelineName.toWellFormed() === pipelineName) &&
    (status === undefined || run.status === status) &&
    (repository === undefined || run.repository?.toWellFormed() === repository) &&
    (refs === undefined || (run.ref !== undefined && refs.includes(run.ref.toWellFormed())))
  );
}

/** A short name stands for the branch and for the tag of that name. */
export function refsOf(name: string): readonly string[] {
  return name.startsWith('refs/') ? [name] : [name, `refs/heads/${name}`, `refs/tags/${name}`];
}
