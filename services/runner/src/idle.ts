/** When a runner has had nothing to do for long enough to end: no stage, and no run that may come back to its folder here. */
import { machineTime, pauseOrAbort } from '@penstock/async';
import type { Runner } from './runner-options.ts';

const LOOK_MS_MAX = 1_000;

/** Resolves then, or when the signal says so. */
export async function idleFor(
  runner: Pick<Runner, 'running' | 'openRuns'>,
  idleMs: number,
  signal: AbortSignal,
  now: () => number = () => machineTime.bootNow(),
): Promise<void> {
  for (let since = now(); !signal.aborted && now() - since < idleMs;) {
    await pauseOrAbort(Math.min(LOOK_MS_MAX, idleMs), signal);
    if (runner.running > 0 || runner.openRuns > 0) since = now();
  }
}
