/** Who may do something about a run: those of its tenant, and whom they have let into its repository. */
import { Forbidden } from '@penstock/errors';
import { grantedReaches, readableTenants, requireChanger, type AccessRole, type Caller } from '@penstock/identity';
import { isReached, isRunId, reachOf, type RunView } from '@penstock/run';
import type { RunReads } from '@penstock/run-client';

/** The tenants whose runs the caller may change, and that of this very run where its role there is this one or above. */
export async function changeableTenants(
  reads: RunReads,
  caller: Caller,
  runId: string,
  role: AccessRole,
): Promise<readonly string[]> {
  const own = requireChanger(caller);
  const reaches = grantedReaches(caller, role);
  if (reaches.length === 0 || !isRunId(runId)) return own;
  const run = await reads.view(runId, reaches);
  return run === null || own.includes(run.tenant) ? own : [...own, run.tenant];
}

/**
 * Where a refused change is told of the run: in the tenants that may be changed, and in repositories where others have let the
 * caller in. Any other run is not found, also where everybody may read it: it is another tenant's.
 */
export function tellableTenants(caller: Caller, changeable: readonly string[]): readonly string[] {
  const readable = readableTenants(caller);
  return [...new Set([...changeable, ...grantedReaches(caller, 'read').filter((reach) => readable.includes(reach))])];
}

/** Throws `Forbidden` where the run is told of only because others have let the caller in, with a role below what this needs. */
export function requireRole(changeable: readonly string[], { id, tenant }: RunView, change: string): void {
  if (!changeable.includes(tenant))
    throw new Forbidden(`You may see the run '${id}', but not ${change}: your role at its repository does not say so.`);
}

/** Whether the caller sees the run only because others let it. */
function isGranted(caller: Caller, run: Pick<RunView, 'tenant' | 'provider' | 'repository'>): boolean {
  return !caller.readTenants.includes(run.tenant) && isReached(caller.readTenants, run);
}

/** What stands for the run's readers in a ticket. */
export function readersOf(caller: Caller, run: Pick<RunView, 'tenant' | 'provider' | 'repository'>): string {
  const grant = isGranted(caller, run) ? caller.grants?.find((one) => isReached([reachOf(one)], run)) : undefined;
  return grant === undefined ? run.tenant : reachOf(grant);
}
