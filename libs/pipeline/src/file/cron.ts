/** Reads cron lines: five fields in UTC, with names, ranges, steps and lists. */
import type { Cron } from '../model/cron.ts';
import { didYouMean } from '../text/suggest.ts';

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const DAYS_IN_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

interface Field {
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
  readonly firstName: number;
}

const FIELDS: readonly Field[] = [
  { label: 'minute', min: 0, max: 59, names: [], firstName: 0 },
  { label: 'hour', min: 0, max: 23, names: [], firstName: 0 },
  { label: 'day of the month', min: 1, max: 31, names: [], firstName: 0 },
  { label: 'month', min: 1, max: 12, names: MONTHS, firstName: 1 },
  // 7 is Sunday as well as 0.
  { label: 'day of the week', min: 0, max: 7, names: DAYS, firstName: 0 },
];

const MACROS: Readonly<Record<string, string>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
};

interface CronFault {
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** What a cron line means, or what is wrong with it. */
export function readCron(line: string): Cron | CronFault {
  if (line.startsWith('@')) {
    const fields = Object.hasOwn(MACROS, line) ? MACROS[line] : undefined;
    return {
      message: `'${line}' is not a cron line`,
      suggestion: fields === undefined ? "five fields, such as '30 4 * * 1-5'" : `write '${fields}'`,
    };
  }
  const fields = line.trim().split(/[ \t]+/);
  if (fields.length !== FIELDS.length) {
    return {
      message: `a cron line has five fields, not ${fields.length}`,
      suggestion: "minute hour day month weekday, such as '30 4 * * 1-5'",
    };
  }
  const values: number[][] = [];
  for (const [index, field] of FIELDS.entries()) {
    const read = readField(fields[index] ?? '', field);
    if ('message' in read) return read;
    values.push(read.values);
  }
  const [minutes = [], hours = [], days = [], months = [], weekdays = []] = values;
  const weekdaysFree = fields[4] === '*';
  if (weekdaysFree && !months.some((month) => days.some((day) => day <= (DAYS_IN_MONTH[month - 1] ?? 31)))) {
    return { message: 'no such day ever comes, so this line would never start anything' };
  }
  return {
    minutes: ascending(minutes),
    hours: ascending(hours),
    days: new Set(days),
    months: new Set(months),
    weekdays: new Set(weekdays.map((day) => day % 7)),
    daysFree: fields[2] === '*',
    weekdaysFree,
  };
}

/** Of a line that was read before, as a definition has it. */
export function cronOf(line: string): Cron {
  const cron = readCron(line);
  if ('message' in cron) throw new RangeError(`'${line}' is no cron line: ${cron.message}`);
  return cron;
}

function ascending(values: readonly number[]): number[] {
  return [...new Set(values)].toSorted((a, b) => a - b);
}

function readField(text: string, field: Field): { values: number[] } | CronFault {
  const values: number[] = [];
  for (const item of text.split(',')) {
    const found = /^(\*|([A-Za-z0-9]+)(?:-([A-Za-z0-9]+))?)(?:\/([0-9]{1,4}))?$/.exec(item);
    if (found === null) return { message: `'${item}' cannot stand in the ${field.label} of a cron line` };
    const [, range, low, high, stepText] = found;
    const step = stepText === undefined ? 1 : Number(stepText);
    if (step < 1) return { message: `the step of the ${field.label} must be at least 1` };
    const from = range === '*' ? field.min : valueOf(low ?? '', field);
    const to =
      range === '*'
        ? field.max
        : high === undefined
          ? stepText === undefined
            ? from
            : field.max
          : valueOf(high, field);
    if (typeof from !== 'number') return from;
    if (typeof to !== 'number') return to;
    if (to < from) return { message: `the range '${item}' of the ${field.label} goes backwards` };
    for (let value = from; value <= to; value += step) values.push(value);
  }
  return { values };
}

function valueOf(text: string, field: Field): number | CronFault {
  const named = field.names.indexOf(text.toLowerCase());
  const value = named === -1 ? (/^[0-9]{1,3}$/.test(text) ? Number(text) : Number.NaN) : named + field.firstName;
  if (Number.isNaN(value))
    return { message: `'${text}' is not a ${field.label}`, suggestion: didYouMean(text, field.names) };
  if (value < field.min || value > field.max)
    return { message: `the ${field.label} must be between ${field.min} and ${field.max}, not ${value}` };
  return value;
}
