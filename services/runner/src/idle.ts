/** When a runner that is to end by itself does: it has nothing to do, no stage and no run that may come back to its folder here; or its one run is over. */
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

/** Resolves when the only run that it serves has ended, or when the signal says so. */
export async function hasServed(runner: Pick<Runner, 'hasServed'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !runner.hasServed) await pauseOrAbort(LOOK_MS_MAX, signal);
}
