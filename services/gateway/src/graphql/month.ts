/** Calendar months in UTC: what usage is counted by. */

export interface Month {
  /** `2026-11` */
  readonly name: string;
  /** ISO 8601, its first millisecond. */
  readonly start: string;
  /** The first millisecond of the next. */
  readonly end: string;
}

/** `at` in milliseconds since 1970. */
export function monthOf(at: number): Month {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const start = new Date(Date.UTC(year, month)).toISOString();
  return { name: start.slice(0, 7), start, end: new Date(Date.UTC(year, month + 1)).toISOString() };
}
