/** A stage that is known to fail: until a day has passed, its failure fails nothing. Plain JSON, as the definition that it stands in. */

export interface Quarantine {
  /** The day as it is written, `2026-12-31`: the last one on which it holds. */
  readonly until: string;
  /** Milliseconds since 1970, in UTC: the end of that day. A run that is created from then on is not affected. */
  readonly endsAt: number;
  /** Of one line: an issue, a sentence. */
  readonly reason?: string | undefined;
  /** Where the day stands in the file, in UTF-16 units; a byte order mark does not count. */
  readonly start: number;
  /** `stages.<name>.quarantine` */
  readonly path: string;
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** The end of a day in UTC, as milliseconds since 1970; undefined: there is no such day. */
export function endOfDay(text: string): number | undefined {
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(text)) return undefined;
  const start = Date.parse(`${text}T00:00:00Z`);
  // What has too many days in its month is read as a day of the next one by some engines, and refused by others.
  if (Number.isNaN(start) || new Date(start).toISOString().slice(0, 10) !== text) return undefined;
  return start + DAY_MS;
}
