/**
 * Views as run documents have them. One that is damaged costs no list: its run is shown as its story says, or where that is damaged
 * too, as the fields of the document do.
 *
 *  RUNVIEWS-1 An answer has every run that the store names, whatever became of its document's parts.
 *  RUNVIEWS-2 Whoever runs the server is told once of each, with the id.
 */
import { isoTime, RUN_STATUSES, type RunView } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';
import { isTombstone } from './deleted-runs.ts';
import { isDamage } from './errors.ts';
import { PLACES, type Collection, type DocumentOf, type Selection } from './port.ts';
import { decodeRun, decodeView, type RunDocument, type runsSpec } from './run-documents.ts';

export type RunPlace = DocumentOf<typeof runsSpec, never>;
export type ViewRow = DocumentOf<typeof runsSpec, 'view'>;

export interface FoundView {
  readonly view: RunView;
  /** Of its text; of one that is damaged, about. */
  readonly characters: number;
  /** It has all that there was to show. */
  readonly isWhole: boolean;
}

/** Runs that were told of; beyond these they are told of again. */
const TOLD_MAX = 1_000;
const DAMAGED = 'the document of a run is damaged: answers show of it what can be read';

export class RunViews {
  readonly #runs: Collection<typeof runsSpec>;
  readonly #log: Pick<Log, 'error'>;
  readonly #told = new Set<string>();

  constructor(runs: Collection<typeof runsSpec>, log: Pick<Log, 'error'>) {
    this.#runs = runs;
    this.#log = log;
  }

  /** Where a document of the list cannot be decoded, all come without their views. */
  async list(selection: Omit<Selection<typeof runsSpec>, 'parts'>): Promise<(ViewRow | RunPlace)[]> {
    return await undamaged(
      () => this.#runs.list({ ...selection, parts: ['view'] }),
      () => this.#runs.list({ ...selection, ...PLACES }),
    );
  }

  async listed(selection: Omit<Selection<typeof runsSpec>, 'parts'>): Promise<RunView[]> {
    const views: RunView[] = [];
    for (const row of await this.list(selection)) {
      const found = await this.of(row);
      if (found !== null) views.push(found.view);
    }
    return views;
  }

  /** Null: it is deleted by now. `meter` is told the characters before they are read. */
  async of(place: ViewRow | RunPlace, meter?: (characters: number) => void | Promise<void>): Promise<FoundView | null> {
    try {
      const row = 'view' in place ? place : await this.#runs.get(place.id, { parts: ['view'] });
      if (row === null || isTombstone(row)) return null;
      const { length: characters } = row.view;
      await meter?.(characters);
      return { view: decodeView(row.id, row.view), characters, isWhole: true };
    } catch (error) {
      if (!isDamage(error)) throw error;
      return await this.#ofDamaged(place, error);
    }
  }

  /** As far as it can be read. Null: there is none, it is deleted, or of none of these tenants. Throws damage where its story is damaged. */
  async document(id: string, tenants?: readonly string[]): Promise<RunDocument | null> {
    const row = await undamaged(
      () => this.#runs.get(id),
      async () => {
        const rest = await this.#runs.get(id, { parts: ['story'] });
        return rest === null ? null : { ...rest, view: '' };
      },
    );
    if (row === null || isTombstone(row)) return null;
    return tenants === undefined || tenants.includes(row.tenant) ? decodeRun(row) : null;
  }

  async #ofDamaged(place: RunPlace, error: Error): Promise<FoundView | null> {
    const { id } = place;
    if (this.#told.size >= TOLD_MAX) this.#told.clear();
    if (!this.#told.has(id)) this.#log.error({ runId: id, err: error }, DAMAGED);
    this.#told.add(id);
    try {
      const document = await this.document(id);
      if (document === null) return null;
      return { view: document.view, characters: JSON.stringify(document.view).length, isWhole: true };
    } catch (storyError) {
      if (!isDamage(storyError)) throw storyError;
      return { view: viewOfFields(place), characters: 0, isWhole: false };
    }
  }
}

async function undamaged<T>(read: () => Promise<T>, otherwise: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return await otherwise();
  }
}

/** Of the lowest version: whatever else is known of the run is newer. */
function viewOfFields({ id, tenant, key, pipelineName, status, createdAt, repository, ref }: RunPlace): RunView {
  return {
    id,
    tenant,
    key,
    pipelineName,
    status: RUN_STATUSES.find((known) => known === status) ?? 'FAILED',
    startedAt: isoTime(createdAt),
    finishedAt: null,
    outcome: null,
    reason: null,
    version: 0,
    cancelledStages: null,
    stages: [],
    // Nobody knows; a run without a word on it counts as trusted.
    trusted: false,
    ...(repository === '' ? {} : { repository }),
    ...(ref === '' ? {} : { ref }),
  };
}
