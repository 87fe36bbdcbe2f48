/** How often a service that is not ready yet is asked. */
import { expect, it } from 'vitest';
import { readyPauseMs } from '../../src/container/services.ts';

/** For so long podman keeps the processes of a command. */
const KEPT_MS = 300_000;

it('a service that is soon ready is asked often, and one that never is leaves few processes of the engine', () => {
  const tries = [0];
  for (let now = 0; now < 3_600_000; now += readyPauseMs(now)) tries.push(now);
  expect(tries.filter((at) => at < 2_000).length).toBeGreaterThanOrEqual(10);
  const together = tries.map((at) => tries.filter((other) => other >= at && other < at + KEPT_MS).length);
  expect(Math.max(...together)).toBeLessThan(100);
});

it('a service is seen to be ready a tenth later than it is, and within five seconds', () => {
  for (const waited of [3_000, 10_000, 40_000]) expect(readyPauseMs(waited)).toBeLessThanOrEqual(waited / 10);
  expect(readyPauseMs(3_600_000)).toBe(5_000);
});
