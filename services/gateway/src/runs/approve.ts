/** `approveRun`: answers with the run, which from then on has its turn like any other. */
import { actorOf, type Caller } from '@penstock/identity';
import { BadUserInput, Conflict, NotFound, Unavailable } from '@penstock/errors';
import { isEnded, isRunId, type RunView } from '@penstock/run';
import { changeableTenants, requireRole, tellableTenants } from '../people/granted-run.ts';
import { OwnerRefused, type Owners, type RunReads } from '@penstock/run-client';

/** Throws `NotFound` for a run of a tenant that is none of the caller's, `Forbidden` where its role does not suffice, `Conflict` for one that waits for no approval. */
export async function approveRun(
  owners: Owners,
  reads: RunReads,
  caller: Caller,
  runId: string | null | undefined,
): Promise<RunView> {
  const tenants = await changeableTenants(reads, caller, runId ?? '', 'approve');
  if (runId === null || runId === undefined) throw new BadUserInput("The argument 'id' is missing: it names the run.");
  if (!isRunId(runId)) throw new NotFound(`There is no run '${runId.slice(0, 100)}'.`);
  try {
    return (await owners.approve({ runId, tenants, by: approverOf(caller) })).run;
  } catch (error) {
    if (!(error instanceof OwnerRefused)) throw error;
    const { cause } = error;
    if (cause instanceof Conflict) throw new Conflict(`The run cannot be approved: ${cause.message}.`, {}, { cause });
    if (!(cause instanceof NotFound)) throw cause;
    // An owner knows only the runs in its memory; one that it has let go has ended.
    const run = await reads.view(runId, tellableTenants(caller, tenants));
    if (run === null) throw new NotFound(`There is no run '${runId}'.`, {}, { cause });
    requireRole(tenants, run, 'approve it');
    if (!isEnded(run.status))
      throw new Unavailable('The run is being taken over by another scheduler; try again in a moment.', { cause });
    throw new Conflict(`The run has ended (${run.status}) and cannot be approved.`, {}, { cause });
  }
}

/** As a person would be named; else as the audit log does. */
function approverOf(caller: Caller): string {
  return caller.user?.email ?? actorOf(caller);
}
