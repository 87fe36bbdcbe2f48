/** What `rerunPipeline` needs of the run that is to run again: who may have it do so, its file, and what that stood for (P30). */
import type { Caller } from '@penstock/identity';
import { BadUserInput, NotFound, Unavailable } from '@penstock/errors';
import type { CreateRequest } from '@penstock/bus';
import { isRunId, type RunCreated, type RunEvent, type RunView } from '@penstock/run';
import { changeableTenants, requireRole, tellableTenants } from '../people/granted-run.ts';
import { readRunEvents, StoryDamaged, type Owners, type RunReads } from '@penstock/run-client';
import type { RunsReader } from '@penstock/store';

export interface RerunArguments {
  readonly id?: string | null | undefined;
  readonly from?: readonly string[] | null | undefined;
  readonly onlyFailed?: boolean | null | undefined;
  readonly inputs?: readonly { readonly key: string; readonly value: string }[] | null | undefined;
  /** In place of the run's own file. */
  readonly yaml?: string | null | undefined;
  readonly waitSeconds?: number | null | undefined;
  readonly runId?: string | null | undefined;
}

export interface RerunSources {
  readonly owners: Owners;
  readonly reads: RunReads;
  readonly store: RunsReader;
}

export interface RepeatedRun {
  readonly view: RunView;
  readonly created: RunCreated;
}

/** More names than a run has stages say nothing. */
const FROM_MAX = 2_000;

/** Throws `NotFound` for a run of a tenant that is none of the caller's, `Forbidden` where its role does not suffice. */
export async function runToRepeat(
  { owners, reads, store }: RerunSources,
  caller: Caller,
  id: string | null | undefined,
): Promise<RepeatedRun> {
  const tenants = await changeableTenants(reads, caller, id ?? '', 'trigger');
  if (id === null || id === undefined) throw new BadUserInput("The argument 'id' is missing: it names the run.");
  const view = isRunId(id) ? await reads.view(id, tellableTenants(caller, tenants)) : null;
  if (view === null) throw new NotFound(`There is no run '${id.slice(0, 100)}'.`);
  requireRole(tenants, view, 'run it again');
  const created = await createdOf({ owners, store }, view);
  if (created === null) throw new NotFound(`There is no run '${id}'.`);
  return { view, created };
}

/** What a run began with; null: it is gone meanwhile. */
export async function createdOf(
  { owners, store }: Pick<RerunSources, 'owners' | 'store'>,
  { id, tenant }: Pick<RunView, 'id' | 'tenant'>,
): Promise<RunCreated | null> {
  // The first event says it all: every owner has it, and so has any document of the run.
  let created: RunEvent | undefined;
  try {
    const { run } = await owners.watch({ runId: id, after: 0 });
    [created] = run?.events ?? (await readRunEvents({ owners, store }, id, [tenant], 0));
  } catch (error) {
    if (error instanceof NotFound && !(error instanceof StoryDamaged)) return null;
    if (!(error instanceof Unavailable)) throw error;
    const document = await store.get(id, { tenants: [tenant] }).catch(() => null);
    if (document === null) throw error;
    [created] = document.events;
  }
  return created?.type === 'run_created' ? created : null;
}

/** Throws `BadUserInput`. */
export function wishOf({ from, onlyFailed }: RerunArguments): Omit<NonNullable<CreateRequest['rerun']>, 'parent'> {
  if (from != null && from.length > FROM_MAX)
    throw new BadUserInput(`'from' names ${from.length} stages; it may name ${FROM_MAX}.`);
  if (from != null && from.length > 0 && onlyFailed === true)
    throw new BadUserInput("'from' and 'onlyFailed' exclude each other: give one of them.");
  return {
    ...(from == null || from.length === 0 ? {} : { from }),
    ...(onlyFailed === true ? { onlyFailed } : {}),
  };
}
