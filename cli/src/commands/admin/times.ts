/** How long ago something was, in one short word; and times that a person gives. */
import { UsageError } from '../../process/errors.ts';
import { printableText } from '../../output/printable-text.ts';

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function sinceOf(time: string, now: number): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return '-';
  const seconds = Math.max(0, Math.round((now - at) / 1_000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** `24h` before now, or an ISO time. Throws `UsageError`. */
export function timeGiven(text: string, now: number): string {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (unit !== '') return new Date(now - Number(count) * (UNITS_MS[unit] ?? 0)).toISOString();
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at))
    throw new UsageError(
      `--since is '${printableText(text)}': give a time as 2026-11-23T08:00:00Z, or how long ago as 90m, 24h, 7d`,
      'admin',
    );
  return new Date(at).toISOString();
}
