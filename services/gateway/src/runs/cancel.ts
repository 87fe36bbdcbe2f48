/** `cancelPipeline`: answers with the run already CANCELLED. */
import { isEnded, isRunId, type RunView } from '@penstock/run';
import { readableTenants, type Caller } from '@penstock/identity';
import { BadUserInput, Conflict, Forbidden, NotFound, Unavailable } from '@penstock/errors';
import { changeableTenants } from '../people/granted-run.ts';
import { OwnerRefused, type Owners, type RunReads } from '@penstock/run-client';

export interface CancelResult {
  readonly run: RunView;
  readonly cancelledStages: number;
}

/** Throws `NotFound` for a run that the caller may not see, `Forbidden` for one that it may only see, `Conflict` for one that has ended. */
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
    const run = await reads.view(runId, [...new Set([...tenants, ...readableTenants(caller)])]);
    if (run === null) throw new NotFound(`There is no run '${runId}'.`, {}, { cause });
    if (!tenants.includes(run.tenant))
      throw new Forbidden(`You may see the run '${runId}', but not cancel it: it is not yours.`);
    if (!isEnded(run.status))
      throw new Unavailable('The run is being taken over by another scheduler; try again in a moment.', { cause });
    if (repeated && run.status === 'CANCELLED') return { run, cancelledStages: run.cancelledStages ?? 0 };
    throw new Conflict(`The run has ended (${run.status}) and cannot be cancelled.`, {}, { cause });
  }
}
