import { expect, it } from 'vitest';
import { defaultSlots } from '../src/executors/default-slots.ts';

const GIB = 1024 ** 3;

it.each([
  ['as many as the memory takes', undefined, 2, 24, 10],
  ['no more than processors have turns for', undefined, 2, 512, 16],
  ['one for each processor, also of a machine with little memory', undefined, 16, 16, 16],
  ['two of the smallest', undefined, 1, 1, 2],
  ['as many as the memory takes of what a stage may have', 8 * GIB, 4, 64, 7],
])('a runner has %s', (_what, stageMemoryBytes, processors, gibibytes, slots) => {
  expect(defaultSlots(stageMemoryBytes, { processors, memoryBytes: gibibytes * GIB })).toBe(slots);
});
