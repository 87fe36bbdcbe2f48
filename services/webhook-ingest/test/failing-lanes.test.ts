import { describe, expect, it } from 'vitest';
import { FailingLanes } from '../src/processing/failing-lanes.ts';

const HOUR_MS = 3_600_000;

function told() {
  const lines: { readonly text: string; readonly fields: object }[] = [];
  const add = (fields: object, text: string): void => void lines.push({ text, fields });
  return { lines, lanes: new FailingLanes({ warn: add, info: add } as never) };
}

describe('what the log says of a lane that fails', () => {
  it('is that it began, once an hour that it goes on, and that it is over', () => {
    const { lines, lanes } = told();
    lanes.tried('a', 'request-1');
    for (let attempt = 1; attempt <= 250; attempt += 1) {
      lanes.failed('a', new Error('no room'), attempt, (attempt - 1) * (HOUR_MS / 100));
      lanes.tried('a', 'request-1');
    }
    lanes.done('a');
    expect(lines.map(({ text }) => text)).toEqual([
      'a delivery could not be processed; tried again',
      'a delivery still cannot be processed; tried again',
      'a delivery still cannot be processed; tried again',
      'a delivery that could not be processed is processed',
    ]);
    expect(lines[0]?.fields).toMatchObject({ lane: 'a', attempt: 3, requestId: 'request-1' });
    expect(lines[3]?.fields).toMatchObject({ lane: 'a', attempts: 250, requestId: 'request-1', failedForSecs: 8964 });
  });

  it('is nothing of the first failures, which are a restart on the other side, nor of what was told before it was over', () => {
    const { lines, lanes } = told();
    for (const attempt of [1, 2]) lanes.failed('a', new Error('away'), attempt, attempt);
    lanes.done('a');
    lanes.done('b');
    expect(lines).toEqual([]);
    for (const attempt of [1, 2, 3]) lanes.failed('a', new Error('away'), attempt, attempt);
    lanes.done('a');
    lanes.done('a');
    expect(lines).toHaveLength(2);
  });
});
