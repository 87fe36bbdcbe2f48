/** What the sweep learns of a run: its own document, or where it is deleted, what others have adopted of it (P30, P34). */
import { DeletedRuns, RunsRepository, type DocumentStore } from '@penstock/store';
import type { SweptRun } from './sweep.ts';

export function sweptRuns(store: DocumentStore): (runId: string) => Promise<SweptRun | null> {
  const runs = new RunsRepository(store);
  const deleted = new DeletedRuns(store);
  return async (runId) => {
    const run = await runs.getAsOwner(runId);
    if (run !== null) return run;
    const heirs = await deleted.heirsOf(runId);
    // Too many to be read, or one that may still name more than its document says: everything stays.
    if (heirs === undefined || heirs.some(({ finishedAt }) => finishedAt === null))
      return { open: true, view: { stages: [] } };
    const stages = heirs.flatMap((heir) =>
      heir.stages.flatMap(({ artifacts }) => {
        if (artifacts?.run !== runId) return [];
        const { run: _, ...own } = artifacts;
        return [{ artifacts: own }];
      }),
    );
    return stages.length === 0 ? null : { open: false, view: { stages } };
  };
}
