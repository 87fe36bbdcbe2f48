/** Rows of runs out of several answers, which need not come in the order in which they were asked for. Pure. */
import type { Operations } from '../api/operations.ts';
import { isOver } from '../parts/is-over.ts';

export type RunRow = Operations['Runs']['data']['runs'][number];

/** A run that is over never goes on: an answer that says so is older than what is known, and counts for nothing of it. */
export function notOlder(answered: readonly RunRow[], known: readonly RunRow[]): RunRow[] {
  const byId = new Map(known.map((row) => [row.id, row]));
  return answered.map((row) => {
    const before = byId.get(row.id);
    return before !== undefined && isOver(before.status) && !isOver(row.status) ? before : row;
  });
}

/** Ids of runs begin with their time. */
export function newestFirst(rows: readonly RunRow[], max: number): RunRow[] {
  const byId = new Map(rows.map((row) => [row.id, row]));
  return [...byId.values()].toSorted((a, b) => (a.id < b.id ? 1 : -1)).slice(0, max);
}
