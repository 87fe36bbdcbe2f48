/** What clients are shown, when all is over, of runs that were repeated: they are what they were, and know who repeats them. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Api, Outcome } from '../api.ts';
import type { JournaledRun } from '../journal.ts';
import type { LoadAccount } from '../load-account.ts';
import type { ReportRun } from '../violations.ts';
import type { ShownLineage } from '../steered.ts';
import { succeededIn } from './lineage-checks.ts';

export interface Looks {
  /** By run that was looked at before it was run again; null: it is not to be had. */
  readonly pictures: ReadonlyMap<string, string | null>;
  /** By run that repeats another, or is repeated. */
  readonly lineages: ReadonlyMap<string, ShownLineage | null>;
}

/** Of each kind; runs that were repeated are alike. */
const LOOKED_AT_MAX = 60;
const TRIES_MAX = 10;
const LOOK_MS = 300;

export async function lookedAt(api: Api, account: LoadAccount): Promise<Looks> {
  const pictures = new Map<string, string | null>();
  for (const id of [...(account.reruns?.pictures.keys() ?? [])].slice(-LOOKED_AT_MAX)) {
    const found = await answered(() => api.picture(id));
    pictures.set(id, found?.text ?? null);
  }
  const lineages = new Map<string, ShownLineage | null>();
  const reruns = account.accepted.flatMap(({ id, rerun }) => (rerun === undefined ? [] : [id, rerun.parent]));
  for (const id of new Set(reruns.slice(-LOOKED_AT_MAX))) lineages.set(id, await answered(() => api.lineage(id)));
  return { pictures, lineages };
}

/** Everything is healed by now, so what is not answered soon is not to be had. */
async function answered<T>(ask: () => Promise<Outcome<T | null>>): Promise<T | null> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const outcome = await ask();
    if (outcome.ok) return outcome.value;
    await pause(LOOK_MS);
  }
  return null;
}

/** A run that was over when it was run again is what it was. */
export function checkPictures({ reruns }: LoadAccount, looks: Looks | undefined, report: ReportRun): void {
  for (const [id, after] of looks?.pictures ?? []) {
    const before = reruns?.pictures.get(id);
    if (before !== after)
      report(
        'untrue',
        id,
        `it was run again, and is another: ${after ?? 'not to be had'}, before ${before ?? 'nothing'}`,
      );
  }
}

/** Only where all has succeeded is there nothing to run again. */
export function checkRefused(
  { accepted, reruns }: LoadAccount,
  runs: ReadonlyMap<string, JournaledRun>,
  report: ReportRun,
): void {
  const pipelines = new Map(accepted.map(({ id, pipeline }) => [id, pipeline]));
  for (const { parent, wish } of reruns?.refused ?? []) {
    const succeeded = succeededIn(runs.get(parent)?.events ?? []);
    const left = (pipelines.get(parent)?.stages ?? []).filter(({ name }) => !succeeded.has(name));
    if (wish.onlyFailed !== true || left.length > 0)
      report(
        'answer',
        parent,
        `there was nothing to run again of it, as was answered, and ${left.map(({ name }) => name).join(', ')} had not succeeded`,
      );
  }
}
