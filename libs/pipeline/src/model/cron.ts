/**
 * Cron lines as sets of minutes of UTC, and the ticks that they name. A tick is the beginning of a minute, milliseconds since
 * 1970. Where days of the month and days of the week are both restricted, either makes a day one of the line's, as POSIX has it;
 * a field is restricted unless it is `*`.
 */

export interface Cron {
  /** Ascending, each once. */
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: ReadonlySet<number>;
  /** January is 1. */
  readonly months: ReadonlySet<number>;
  /** Sunday is 0. */
  readonly weekdays: ReadonlySet<number>;
  readonly daysFree: boolean;
  readonly weekdaysFree: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** From a 29th of February to the next lie eight years at most; a line that names no day at all is refused before. */
const DAYS_LOOKED_AT = 8 * 366 + 1;
/** What a date can say. */
const TIME_MAX = 8.64e15;

/** The latest tick at or before this time; undefined: there is none within eight years. */
export function newestTick(cron: Cron, at: number): number | undefined {
  let day = dayOf(at);
  for (let looked = 0; looked < DAYS_LOOKED_AT; looked += 1, day -= DAY_MS) {
    if (!isDay(cron, day)) continue;
    for (const hour of cron.hours.toReversed()) {
      if (day + hour * HOUR_MS > at) continue;
      const minute = cron.minutes.findLast((each) => day + hour * HOUR_MS + each * MINUTE_MS <= at);
      if (minute !== undefined) return day + hour * HOUR_MS + minute * MINUTE_MS;
    }
  }
  return undefined;
}

/** The first tick behind this time; undefined: there is none within eight years. */
export function nextTick(cron: Cron, after: number): number | undefined {
  let day = dayOf(after);
  for (let looked = 0; looked < DAYS_LOOKED_AT && day <= TIME_MAX; looked += 1, day += DAY_MS) {
    if (!isDay(cron, day)) continue;
    for (const hour of cron.hours) {
      if (day + (hour + 1) * HOUR_MS <= after) continue;
      const minute = cron.minutes.find((each) => day + hour * HOUR_MS + each * MINUTE_MS > after);
      if (minute !== undefined) return day + hour * HOUR_MS + minute * MINUTE_MS;
    }
  }
  return undefined;
}

/** How many ticks lie between the two times, neither included. */
export function ticksBetween(cron: Cron, after: number, before: number): number {
  let ticks = 0;
  for (let day = dayOf(after); day < before; day += DAY_MS) {
    if (!isDay(cron, day)) continue;
    if (day > after && day + DAY_MS <= before) ticks += cron.hours.length * cron.minutes.length;
    else ticks += ticksOfDay(cron, day).filter((tick) => tick > after && tick < before).length;
  }
  return ticks;
}

function ticksOfDay({ hours, minutes }: Cron, day: number): number[] {
  return hours.flatMap((hour) => minutes.map((minute) => day + hour * HOUR_MS + minute * MINUTE_MS));
}

function dayOf(time: number): number {
  return Math.floor(time / DAY_MS) * DAY_MS;
}

function isDay({ days, months, weekdays, daysFree, weekdaysFree }: Cron, day: number): boolean {
  const date = new Date(day);
  if (!months.has(date.getUTCMonth() + 1)) return false;
  const [isDayOfMonth, isWeekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())];
  return daysFree || weekdaysFree ? isDayOfMonth && isWeekday : isDayOfMonth || isWeekday;
}
