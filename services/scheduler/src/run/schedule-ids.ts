/**
 * The names of schedules, of their lines and of the runs that they begin (P28): each follows from what it names alone, so that
 * whoever owns the partition makes the same ones. All have the form of run ids, whose bits say where they belong.
 */
import { createHash, createHmac } from 'node:crypto';
import type { ScheduleLine } from '@penstock/pipeline';
import { newRunId, type LineState, type RunId, type ScheduleState } from '@penstock/run';

type Named = Pick<ScheduleState, 'tenant' | 'key' | 'provider' | 'repository'>;

/** One for a tenant and a repository, however its name is written. */
export function scheduleIdOf({ tenant, key, provider, repository }: Named): string {
  return named(key, [tenant, provider, repository.toLowerCase()]);
}

export function lineIdOf({ tenant, key, provider, repository }: Named, { cron, inputs = {} }: ScheduleLine): string {
  return named(key, [tenant, provider, repository.toLowerCase(), cron, Object.entries(inputs).toSorted()]);
}

/** Two owners, before and after a take-over in the middle of a tick, make one run of it. */
export function tickRunId(
  { idKey, key, tenant, provider, repository }: ScheduleState,
  { cron, inputs = {} }: LineState,
  tick: number,
): RunId {
  const named = JSON.stringify([tenant, provider, repository, cron, Object.entries(inputs).toSorted(), tick]);
  return newRunId({ now: tick, key, random: createHmac('sha256', idKey).update(named).digest() });
}

/** Of no time. */
function named(key: string, parts: readonly unknown[]): string {
  return newRunId({ now: 0, key, random: createHash('sha256').update(JSON.stringify(parts)).digest() });
}
