import { Cron as Croner } from 'croner';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cronOf, newestTick, nextTick, parsePipeline, ticksBetween } from '../src/index.ts';

const at = (text: string): number => Date.parse(text);
const shown = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString().slice(0, 16);

/** A field as people write it. */
const field = (min: number, max: number, names: readonly string[] = []): fc.Arbitrary<string> => {
  const value = fc.integer({ min, max });
  const item = fc.oneof(
    value.map(String),
    fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
    fc.integer({ min: 1, max: max - min }).map((step) => `*/${step}`),
    fc
      .tuple(value, value, fc.integer({ min: 1, max: 7 }))
      .map(([a, b, step]) => `${Math.min(a, b)}-${Math.max(a, b)}/${step}`),
    ...(names.length === 0 ? [] : [fc.constantFrom(...names)]),
  );
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant('*') },
    fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join(',')),
  );
};

const line = fc
  .tuple(
    field(0, 59),
    field(0, 23),
    field(1, 28),
    field(1, 12, ['jan', 'Feb', 'DEC']),
    field(0, 7, ['sun', 'Mon', 'SAT']),
  )
  .map((fields) => fields.join(' '));

const time = fc.integer({ min: at('2020-01-01T00:00Z'), max: at('2100-01-01T00:00Z') });

describe('the ticks of a cron line', () => {
  it('are those of croner, whatever the line', () => {
    fc.assert(
      fc.property(line, time, (text, from) => {
        const theirs = new Croner(text, { timezone: 'UTC', paused: true }).nextRun(new Date(from));
        expect(shown(nextTick(cronOf(text), Math.floor(from / 1000) * 1000)), text).toBe(shown(theirs?.getTime()));
      }),
      { numRuns: 1_500 },
    );
  });

  it('lie one behind the other: the newest before the next is where one begins, and none lies between', () => {
    fc.assert(
      fc.property(line, time, (text, from) => {
        const cron = cronOf(text);
        const next = nextTick(cron, from) ?? 0;
        const newest = newestTick(cron, from) ?? 0;
        expect(next).toBeGreaterThan(from);
        expect(newest).toBeLessThanOrEqual(from);
        expect(newestTick(cron, next - 1)).toBe(newest);
        expect(newestTick(cron, next)).toBe(next);
        expect(nextTick(cron, newest)).toBe(next);
        expect(ticksBetween(cron, newest, next)).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  it('are counted as they come', () => {
    fc.assert(
      fc.property(line, time, fc.integer({ min: 0, max: 40 }), (text, from, count) => {
        const cron = cronOf(text);
        let last = from;
        for (let each = 0; each <= count; each += 1) last = nextTick(cron, last) ?? 0;
        expect(ticksBetween(cron, from, last)).toBe(count);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['0 3 * * *', '2026-11-22T02:59', '2026-11-22T03:00'],
    ['0 3 * * *', '2026-11-22T03:00', '2026-11-23T03:00'],
    ['0 0 29 2 *', '2096-02-29T00:00', '2104-02-29T00:00'],
    ['0 12 13 * 5', '2026-11-13T12:00', '2026-11-20T12:00'],
    ['59 23 31 12 *', '2026-12-31T23:59', '2027-12-31T23:59'],
    ['0 0 * * 7', '2026-11-22T00:00', '2026-11-29T00:00'],
  ])('%s comes after %s at %s', (text, after, expected) => {
    expect(shown(nextTick(cronOf(text), at(`${after}Z`)))).toBe(expected);
  });
});

describe('schedule in a file', () => {
  const read = (schedule: string): unknown => {
    const parsed = parsePipeline(
      `pipeline: {name: p}\ninputs: {target: {type: string, required: true}, count: {type: number, default: 1}}\nschedule: ${schedule}\nstages:\n  a: {run: x}\n`,
    );
    return parsed.ok ? parsed.definition.schedule : parsed.diagnostics;
  };

  it('is a line, a list of lines, or maps of them with inputs', () => {
    expect(read("' 0  3 * * * '")).toEqual([{ cron: '0 3 * * *' }]);
    expect(read("{cron: '0 3 * * *', inputs: {target: x, count: 2}}")).toEqual([
      { cron: '0 3 * * *', inputs: { target: 'x', count: '2' } },
    ]);
    expect(read("['*/5 * * * *', {cron: '*/5 * * * *', inputs: {count: 3}}]")).toEqual([
      { cron: '*/5 * * * *' },
      { cron: '*/5 * * * *', inputs: { count: '3' } },
    ]);
    expect(read('[]')).toEqual([]);
  });
});
