/** What runners hear of runs that are closed: which workspaces and folders can go (P19), also where no two stages shared one. */
import type { RunId } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';

/** Ids in one message to a runner, 40 KB of them. After an outage of the store tens of thousands of runs are closed at once. */
const RELEASED_IDS_MAX = 1_000;

export function releasesOf(
  closed: Iterable<LiveRun>,
  runnersOf: (run: LiveRun) => readonly string[],
): { readonly runner: string; readonly runIds: readonly RunId[] }[] {
  const idsOf = new Map<string, string[]>();
  for (const run of closed) {
    for (const runner of runnersOf(run)) {
      const ids = idsOf.get(runner);
      if (ids === undefined) idsOf.set(runner, [run.id]);
      else ids.push(run.id);
    }
  }
  return [...idsOf].flatMap(([runner, ids]) =>
    Array.from({ length: Math.ceil(ids.length / RELEASED_IDS_MAX) }, (_, page) => ({
      runner,
      runIds: ids.slice(page * RELEASED_IDS_MAX, (page + 1) * RELEASED_IDS_MAX),
    })),
  );
}
