/** Durations as people write them: `90s`, `10m`, `2h`, `1h30m`. */

const UNITS: readonly { readonly unit: string; readonly ms: number }[] = [
  { unit: 'h', ms: 3_600_000 },
  { unit: 'm', ms: 60_000 },
  { unit: 's', ms: 1_000 },
];

const DAY_MS = 24 * 3_600_000;

/** The milliseconds of a duration, or undefined where the text is none. Units stand in the order h, m, s, each once. */
export function parseDuration(text: string): number | undefined {
  const found = /^(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,7})s)?$/.exec(text);
  if (found === null || text === '') return undefined;
  return UNITS.reduce((sum, { ms }, index) => sum + Number(found[index + 1] ?? 0) * ms, 0);
}

/** The same with days in front, `7d` or `1d12h`: for what is counted in them. */
export function parseKeepTime(text: string): number | undefined {
  const [, days, rest = ''] = /^([0-9]{1,4})d(.*)$/s.exec(text) ?? [];
  if (days === undefined) return parseDuration(text);
  const more = rest === '' ? 0 : parseDuration(rest);
  return more === undefined ? undefined : Number(days) * DAY_MS + more;
}

/** The shortest way to write a duration. */
export function formatDuration(ms: number): string {
  let rest = ms;
  let text = '';
  for (const { unit, ms: size } of UNITS) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text === '' ? '0s' : text;
}
