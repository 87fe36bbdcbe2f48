/** Months in UTC, the periods of quotas: `2026-11`. Times are milliseconds since 1970. */

import type { RunEvent } from './events.ts';

interface Month {
  readonly name: string;
  readonly startsAt: number;
  readonly endsAt: number;
}

/** Asked for at every event that counts, and nearly always about the same month. */
let known: Month = monthNamed('1970-01');

/** The month of a time. */
export function monthOf(at: number): string {
  if (at < known.startsAt || at >= known.endsAt) known = monthNamed(new Date(at).toISOString().slice(0, 7));
  return known.name;
}

/** When a month begins. */
export function monthStart(month: string): number {
  return monthNamed(month).startsAt;
}

/** When a month ends: the beginning of the next. */
export function monthEnd(month: string): number {
  return monthNamed(month).endsAt;
}

function monthNamed(name: string): Month {
  const [year = 1970, month = 1] = name.split('-').map(Number);
  return { name, startsAt: Date.UTC(year, month - 1), endsAt: Date.UTC(year, month) };
}

/** Which of its key's runs of the month of its time the event makes its run; undefined: it does not count it. */
export function monthCountOf(event: RunEvent): number | undefined {
  return event.type === 'run_created' || event.type === 'run_approved' ? event.runOfMonth : undefined;
}
