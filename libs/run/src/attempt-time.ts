/** How long attempts took: what usage counts as time of stages. */
import type { RunEvent } from './events.ts';

/**
 * Milliseconds of the attempt that `events[index]` ended, from its grant; undefined where that event ends none. A grant
 * that was given back took no time. `events` are all events of the run, version 1 first.
 */
export function attemptMs(events: readonly RunEvent[], index: number): number | undefined {
  const event = events[index];
  if (event?.type !== 'stage_completed' && event?.type !== 'stage_retrying' && event?.type !== 'attempt_gone')
    return undefined;
  if (event.attempt === 0) return undefined;
  for (let before = index - 1; before > 0; before--) {
    const started = events[before];
    if (started?.type === 'stage_started' && started.attempt === event.attempt && started.stage === event.stage)
      return Math.max(0, event.at - started.at);
  }
  return undefined;
}
