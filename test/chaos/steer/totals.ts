/** How much of what people steer was in a load. */
import type { JournaledRun } from '../journal.ts';
import type { LoadAccount } from '../load-account.ts';
import { adoptedIn } from './lineage-checks.ts';
import { ticksIn, type TickAccount } from './tick-load.ts';

export interface SteeredTotals {
  readonly decisions: Readonly<Record<string, number>>;
  readonly gatesEnded: Readonly<Record<string, number>>;
  readonly reruns: number;
  readonly rerunsRefused: number;
  readonly adopted: number;
  readonly added: number;
  readonly ticks: number;
  readonly ticksMissed: number;
}

export function steeredTotals(
  { accepted, gates = [], reruns }: LoadAccount,
  runs: ReadonlyMap<string, JournaledRun>,
  account: TickAccount | undefined,
): SteeredTotals {
  const ticks = ticksIn(runs).filter(({ repository }) => account?.lines.has(repository) === true);
  const gateNames = new Set(gates.map(({ runId, stage }) => `${runId} ${stage}`));
  const events = accepted.flatMap(({ id }) => runs.get(id)?.events.map((event) => ({ id, event })) ?? []);
  return {
    decisions: countOf(gates.map(({ outcome }) => outcome)),
    gatesEnded: countOf(
      events.flatMap(({ id, event }) =>
        event.type === 'stage_completed' && gateNames.has(`${id} ${event.stage}`) ? [event.reason ?? event.status] : [],
      ),
    ),
    reruns: accepted.filter(({ rerun }) => rerun !== undefined).length,
    rerunsRefused: reruns?.refused.length ?? 0,
    adopted: adoptedIn(events.map(({ event }) => event)).length,
    added: events.filter(({ event }) => event.type === 'stages_added').length,
    ticks: ticks.length,
    ticksMissed: ticks.reduce((sum, { missed }) => sum + missed, 0),
  };
}

function countOf(names: readonly string[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(names, (name) => name)].map(([name, all]) => [name, all.length]));
}
