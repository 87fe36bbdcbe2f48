/** How often a service that is not ready yet is asked, and what is said of one that never was. */
import { expect, it } from 'vitest';
import { notReadyText, readyPauseMs } from '../../src/container/services.ts';

/** For so long podman keeps the processes of a command. */
const KEPT_MS = 300_000;

function triesOf(limitMs: number): number[] {
  const tries: number[] = [];
  for (let now = 0; now < limitMs; now += readyPauseMs(now, limitMs - now)) tries.push(now);
  return tries;
}

it('a service that is soon ready is asked often, and one that never is leaves few processes of the engine', () => {
  const tries = triesOf(3_600_000);
  expect(tries.filter((at) => at < 2_000).length).toBeGreaterThanOrEqual(10);
  const together = tries.map((at) => tries.filter((other) => other >= at && other < at + KEPT_MS).length);
  expect(Math.max(...together)).toBeLessThan(100);
});

it('a service is seen to be ready a tenth later than it is, and within five seconds', () => {
  for (const waited of [3_000, 10_000, 40_000])
    expect(readyPauseMs(waited, 3_600_000)).toBeLessThanOrEqual(waited / 10);
  expect(readyPauseMs(3_500_000, 100_000)).toBe(5_000);
});

it.each([5_000, 30_000, 60_000, 3_600_000])(
  'one that becomes ready shortly before its time of %i ms is over is asked in time',
  (limitMs) => {
    expect(limitMs - (triesOf(limitMs).at(-1) ?? 0)).toBeLessThanOrEqual(200);
  },
);

it('a service whose command has not ended once is not said to have ended with 0', () => {
  const never = 'the service web was not ready within 0.7 s: its command did not end';
  expect(notReadyText('web', 700, undefined)).toBe(never);
  const ended = 'the service web was not ready within 2 s: its command ended with exit code 3';
  expect(notReadyText('web', 2_000, 3)).toBe(ended);
});
