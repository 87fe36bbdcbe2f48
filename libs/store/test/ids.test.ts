import { expect, it } from 'vitest';
import { idOfNamed, newId } from '../src/index.ts';

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/u;
const AT = Date.parse('2026-11-28T12:00:00.000Z');

it('are UUIDv7, sorted by their time', () => {
  const ids = [AT, AT + 1, AT + 2].map(newId);
  for (const id of [...ids, idOfNamed(AT, 'one')]) expect(id).toMatch(UUID_V7);
  expect(ids.toSorted()).toEqual(ids);
  expect(newId(AT)).not.toBe(newId(AT));
});

it('of what has a name are the same each time, and others for another name or time', () => {
  expect(idOfNamed(AT, 'one')).toBe(idOfNamed(AT, 'one'));
  expect(new Set([idOfNamed(AT, 'one'), idOfNamed(AT, 'two'), idOfNamed(AT + 1, 'one')]).size).toBe(3);
});
