import { lookup } from '../lookup.ts';

const UNITS: Readonly<Record<string, number>> = lookup({
  s: 1,
  sec: 1,
  second: 1,
  m: 60,
  min: 60,
  mn: 60,
  minute: 60,
  h: 3600,
  hr: 3600,
  hour: 3600,
  d: 86_400,
  day: 86_400,
  w: 604_800,
  wk: 604_800,
  week: 604_800,
  mo: 2_592_000,
  mos: 2_592_000,
  month: 2_592_000,
  y: 31_536_000,
  yr: 31_536_000,
  year: 31_536_000,
});

/** `1 week`, `2 hrs 20 min`, `3 mos`; in whole hours or days where it is that, else in minutes or seconds. */
export function durationOf(text: string, largest: 'h' | 'd'): string | undefined {
  const parts = [...text.toLowerCase().matchAll(/(\d+)\s*([a-z]+)?/g)];
  if (parts.length === 0) return undefined;
  let seconds = 0;
  for (const [, count = '', word = 's'] of parts) {
    const unit = UNITS[word] ?? UNITS[word.replace(/s$/, '')];
    if (unit === undefined) return undefined;
    seconds += Number(count) * unit;
  }
  if (largest === 'd' && seconds % 86_400 === 0) return `${seconds / 86_400}d`;
  if (seconds % 3600 === 0) return `${seconds / 3600}h`;
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}
