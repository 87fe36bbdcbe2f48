/** What `/ready` of the internal port says where something that a service needs does not answer. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { allAnswer } from '../src/index.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const there = async (): Promise<void> => {};
const frozen = (): Promise<void> => new Promise(() => {});

it('names who does not answer before a probe gives up', async () => {
  const begun = performance.now();
  const answer = allAnswer({ 'a scheduler': there, 'the store': frozen }).catch((error: Error) => [
    error.message,
    performance.now() - begun < 2_000,
  ]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await answer).toEqual(['the store does not answer', true]);
});

it('gives the reason of who says no, and is content where all answer', async () => {
  const refusing = (): Promise<void> => Promise.reject(new Error('no scheduler can commit'));
  await expect(allAnswer({ 'the store': there, 'a scheduler': refusing })).rejects.toThrow('no scheduler can commit');
  await expect(allAnswer({ 'the store': there, 'a scheduler': there })).resolves.toBeUndefined();
});
