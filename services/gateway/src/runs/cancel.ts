/** `cancelPipeline`: answers with the run already CANCELLED. */
import { isEnded, isRunId, type RunView } from '@penstock/run';
import type { Caller } from '@penstock/identity';
import { BadUserInput, Conflict, NotFound, Unavailable } from '@penstock/errors';
import { changeableTenants, requireRole, tellableTenants } from '../people/granted-run.ts';
import { OwnerRefused, type Owners, type RunReads } from '@penstock/run-client';

export interface CancelResult {
  readonly run: RunView;
  readonly cancelledStages: number;
}

/** Throws `NotFound` for a run of a tenant that is none of the caller's, `Forbidden` where its role does not suffice, `Conflict` for one that has ended. */
export async function cancelRun(
  owners: Owners,
  reads: RunReads,
  caller: Caller,
  runId: string | null | undefined,
): Promise<CancelResult> {
  const tenants = await changeableTenants(reads, caller, runId ?? '', 'trigger');
  if (runId === null || runId === undefined) throw new BadUserInput("The argument 'id' is missing: it names the run.");
  if (!isRunId(runId)) throw new NotFound(`There is no run '${runId.slice(0, 100)}'.`);
  try {
    const { run, cancelledStages } = await owners.cancel({ runId, tenants });
    return { run, cancelledStages };
  } catch (error) {
    if (!(error instanceof OwnerRefused)) throw error;
    const { cause, repeated } = error;
    if (!(cause instanceof NotFound) && !(cause instanceof Conflict)) throw cause;
    // An owner knows only the runs in its memory; one that it has let go has ended.
    const run = await reads.view(runId, tellableTenants(caller, tenants));
    if (run === null) throw new NotFound(`There is no run '${runId}'.`, {}, { cause });
    requireRole(tenants, run, 'cancel it');
    // Its owner has it, and can do nothing with it.
    if (!isEnded(run.status) && cause instanceof Conflict && !repeated)
      throw new Conflict(`The run cannot be cancelled: ${cause.message}.`, {}, { cause });
    if (!isEnded(run.status))
      throw new Unavailable('The run is being taken over by another scheduler; try again in a moment.', { cause });
    if (repeated && run.status === 'CANCELLED') return { run, cancelledStages: run.cancelledStages ?? 0 };
    throw new Conflict(`The run has ended (${run.status}) and cannot be cancelled.`, {}, { cause });
  }
}
