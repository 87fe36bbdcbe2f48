/** Durations as people write them: `90s`, `10m`, `2h`, `1h30m`, `7d`. */

const UNITS: readonly { readonly unit: string; readonly ms: number }[] = [
  { unit: 'h', ms: 3_600_000 },
  { unit: 'm', ms: 60_000 },
  { unit: 's', ms: 1_000 },
];

const DAY_MS = 24 * 3_600_000;

/** The milliseconds of a duration, or undefined where the text is none. Units stand in the order d, h, m, s, each once. */
export function parseDuration(text: string): number | undefined {
  const found = /^(?:([0-9]{1,4})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,7})s)?$/.exec(text);
  if (found === null || text === '') return undefined;
  const [, days = 0, ...others] = found;
  return UNITS.reduce((sum, { ms }, index) => sum + Number(others[index] ?? 0) * ms, Number(days) * DAY_MS);
}

/** The shortest way to write a duration without days. */
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
