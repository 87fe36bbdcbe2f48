import { describe, expect, it } from 'vitest';
import { newestFirst, notOlder, type RunRow } from '../app/runs/run-rows.ts';

const row = (id: string, status: RunRow['status'], finishedAt: string | null = null): RunRow => ({
  ...{
    id,
    status,
    finishedAt,
    pipelineName: 'p',
    startedAt: '2026-01-01T00:00:00.000Z',
    verdict: null,
    trigger: 'api',
  },
  ...{ actor: null, repository: null, ref: null, commit: null },
});

describe('answers that come late', () => {
  const ended = row('2', 'SUCCESS', '2026-01-01T00:00:01.000Z');

  it('let no run go on that is known to be over', () => {
    expect(notOlder([row('3', 'RUNNING'), row('2', 'RUNNING')], [ended])).toEqual([row('3', 'RUNNING'), ended]);
  });

  it('say when a run has ended of which only that was heard', () => {
    expect(notOlder([ended], [row('2', 'SUCCESS')])).toEqual([ended]);
    expect(notOlder([row('2', 'RUNNING')], [row('2', 'QUEUED')])).toEqual([row('2', 'RUNNING')]);
  });
});

it('runs stand the newest first, each once, as it was told last', () => {
  const rows = [row('1', 'RUNNING'), row('3', 'RUNNING'), row('2', 'RUNNING'), row('3', 'FAILED')];
  expect(newestFirst(rows, 2).map(({ id, status }) => [id, status])).toEqual([
    ['3', 'FAILED'],
    ['2', 'RUNNING'],
  ]);
});
