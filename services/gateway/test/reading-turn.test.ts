import { expect, it } from 'vitest';
import { readingTurn } from '../src/runs/reading-turn.ts';

it('files of the API key take turns by what looks like the name of their pipeline, those of a user together', () => {
  const turn = (yaml: string): string => readingTurn('service', yaml);
  const one = turn('pipeline: {name: one}\nstages: {}\n');
  expect(turn('# a comment\npipeline:\n  name: "one"  # here\n')).toBe(one);
  expect(turn('{"pipeline": {"name": "one"}}')).toBe(one);
  expect(turn('pipeline: {name: two}\n')).not.toBe(one);
  expect(readingTurn('user/1', 'pipeline: {name: one}')).toBe(readingTurn('user/1', 'pipeline: {name: two}'));
  const turns = new Set(Array.from({ length: 1_000 }, (_, index) => turn(`pipeline: {name: p${index}}`)));
  expect(turns.size).toBeLessThanOrEqual(64);
});
