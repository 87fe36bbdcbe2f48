/** A run's events: from its owner while it goes on, then from the store. */
import { NotFound, Unavailable } from '@penstock/errors';
import { closesRun, isSettled, type RunEvent, type RunId } from '@penstock/run';
import { isDamage, type RunsReader } from '@penstock/store';
import type { Owners } from './owners.ts';
import { unavailableStore } from './run-reads.ts';

export interface RunEventSources {
  readonly owners: Owners;
  readonly store: RunsReader;
}

/** What happened in the run stands in its document alone, and that cannot be read. */
export class StoryDamaged extends NotFound {}

/**
 * The committed events after this version, all of them, oldest first. Who asks has made sure that the run is one of the
 * tenants'. Throws `Unavailable`, `StoryDamaged`, and `NotFound` for a run that nobody knows any more.
 */
export async function readRunEvents(
  { owners, store }: RunEventSources,
  runId: RunId,
  tenants: readonly string[],
  after: number,
): Promise<readonly RunEvent[]> {
  try {
    const events: RunEvent[] = [];
    for (;;) {
      const { run } = await owners.watch({ runId, after: after + events.length });
      if (run === null) return (await documentEvents(store, runId, tenants)).slice(after);
      events.push(...run.events);
      if (!run.more) return events;
    }
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    // The document of a run that has ended holds everything, whoever is away.
    const events = await documentEvents(store, runId, tenants).catch(() => null);
    if (events === null) throw error;
    return events.slice(after);
  }
}

async function documentEvents(
  store: RunsReader,
  runId: RunId,
  tenants: readonly string[],
): Promise<readonly RunEvent[]> {
  let document;
  try {
    document = await store.get(runId, { tenants });
  } catch (error) {
    if (!isDamage(error)) throw unavailableStore(error);
    throw new StoryDamaged(
      `What happened in the run '${runId}' cannot be read: its document in the store is damaged.`,
      {},
      { cause: error },
    );
  }
  if (document === null) throw new NotFound(`There is no run '${runId}'.`);
  if (!isSettled(document.state))
    throw new Unavailable('The run is being taken over by another scheduler; try again in a moment.');
  return closed(document.events);
}

/** A cancelled or quarantined run of release 0.6 has no event that says that its processes are gone: its last one does. */
function closed(events: readonly RunEvent[]): readonly RunEvent[] {
  const last = events.at(-1);
  const end = events.find(({ type }) => type === 'run_cancelled' || type === 'run_quarantined');
  if (last === undefined || end === undefined || events.some(closesRun)) return events;
  const stopped: RunEvent =
    end.type === 'run_cancelled'
      ? { type: 'run_stopped', at: last.at, status: 'CANCELLED', cancelledStages: end.cancelledStages }
      : { type: 'run_stopped', at: last.at, status: 'FAILED' };
  return [...events, stopped];
}
