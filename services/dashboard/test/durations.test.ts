/** What is said of a pipeline's runs: how many passed, how long they take, and how that went. */
import { describe, expect, it } from 'vitest';
import { durationOf } from '../app/parts/duration.ts';
import { percentile, summariesOf, trendOf } from '../app/pipelines/durations.ts';
import type { Operations } from '../app/api/operations.ts';

type RunRow = Operations['Runs']['data']['runs'][number];

/** The newest first, as the API lists them: the run that began last stands at the front. */
function runs(name: string, each: readonly (readonly [RunRow['status'], number | null])[]): RunRow[] {
  return each.map(([status, secs], index) => {
    const began = (each.length - index) * 3_600_000;
    return {
      id: `${name} ${index}`,
      pipelineName: name,
      status,
      startedAt: new Date(began).toISOString(),
      finishedAt: secs === null ? null : new Date(began + secs * 1_000).toISOString(),
      verdict: null,
      trigger: 'api',
      actor: null,
      repository: null,
      ref: null,
      commit: null,
    };
  });
}

describe('the summaries of pipelines', () => {
  it('stand in the order of their newest runs, and count what has succeeded or failed alone', () => {
    const rows = [
      ...runs('build', [
        ['RUNNING', null],
        ['CANCELLED', 900],
        ['FAILED', 30],
        ['SUCCESS', 10],
        ['SUCCESS', 20],
      ]),
      ...runs('docs', [['QUEUED', null]]),
    ];
    expect(summariesOf(rows).map(({ name, runs: own, passed, p50Ms }) => [name, own.length, passed, p50Ms])).toEqual([
      ['build', 5, 2 / 3, 20_000],
      ['docs', 1, null, null],
    ]);
  });

  it('have the name of a pipeline for no field of an object', () => {
    expect(summariesOf(runs('__proto__', [['SUCCESS', 1]])).map(({ name }) => name)).toEqual(['__proto__']);
  });
});

describe('a percentile', () => {
  it('is the least value that so large a part is at most', () => {
    expect([percentile([], 0.5), percentile([7], 0.95), percentile([3, 1, 2, 4], 0.5)]).toEqual([null, 7, 2]);
    expect(
      percentile(
        Array.from({ length: 100 }, (_, index) => index + 1),
        0.95,
      ),
    ).toBe(95);
  });
});

describe('the trend of a pipeline', () => {
  it('goes from the oldest run to the newest, each with those before it in the window', () => {
    const points = trendOf(
      runs('build', [
        ['SUCCESS', 40],
        ['FAILED', 30],
        ['CANCELLED', 5_000],
        ['SUCCESS', 20],
        ['SUCCESS', 10],
      ]),
      2,
    );
    expect(points.map(({ p50Ms, p95Ms }) => [p50Ms / 1_000, p95Ms / 1_000])).toEqual([
      [10, 10],
      [10, 20],
      [20, 30],
      [30, 40],
    ]);
  });
});

describe('how long something took', () => {
  it.each([
    [-5, '0 ms'],
    [0, '0 ms'],
    [34.4, '34 ms'],
    [999.4, '999 ms'],
    [999.6, '1.0 s'],
    [2_549, '2.5 s'],
    [9_960, '10 s'],
    [59_400, '59 s'],
    [59_999, '1 min 0 s'],
    [187_000, '3 min 7 s'],
    [7_500_000, '2 h 5 min'],
  ])('is said of %d ms as %s', (ms, said) => {
    expect(durationOf(ms)).toBe(said);
  });
});
