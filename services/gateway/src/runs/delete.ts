/** `deleteRun`: from its answer on nobody sees the run (P34). */
import { actorOf, type Caller } from '@penstock/identity';
import { BadUserInput, Conflict, NotFound } from '@penstock/errors';
import { isEnded, isRunId } from '@penstock/run';
import { changeableTenants, requireRole, tellableTenants } from '../people/granted-run.ts';
import { OwnerRefused, type Owners, type RunReads } from '@penstock/run-client';

/** Throws `NotFound` for a run of a tenant that is none of the caller's, `Forbidden` where its role does not suffice, `Conflict` for one that has not ended. */
export async function deleteRun(
  owners: Owners,
  reads: RunReads,
  caller: Caller,
  runId: string | null | undefined,
): Promise<void> {
  const tenants = await changeableTenants(reads, caller, runId ?? '', 'admin');
  if (runId === null || runId === undefined) throw new BadUserInput("The argument 'id' is missing: it names the run.");
  const run = isRunId(runId) ? await reads.view(runId, tellableTenants(caller, tenants)) : null;
  if (run === null) throw new NotFound(`There is no run '${runId.slice(0, 100)}'.`);
  requireRole(tenants, run, 'delete it');
  try {
    // Also of one that has not ended by its document: where that is damaged, its owner knows that it never will.
    await owners.delete({ runId, tenants, by: caller.user?.email ?? actorOf(caller) });
  } catch (error) {
    if (!(error instanceof OwnerRefused)) throw error;
    const { cause, repeated } = error;
    if (cause instanceof Conflict && !isEnded(run.status))
      throw new Conflict(`The run has not ended (${run.status}): cancel it first, or wait for its end.`, {}, { cause });
    if (cause instanceof Conflict) throw new Conflict(`The run cannot be deleted: ${cause.message}.`, {}, { cause });
    if (!(cause instanceof NotFound)) throw cause;
    // It was there a moment ago: an earlier sending of this request has deleted it, or somebody else has.
    if (!repeated) throw new NotFound(`There is no run '${runId}'.`, {}, { cause });
  }
}
