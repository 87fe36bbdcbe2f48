/** Attempts as the stages themselves count them: a grant that came to nothing has no number (P12). */
import type { RunEvent } from '@penstock/run';

/** The events without those of grants that came to nothing; of the others `attempt` is what their stages and clients see. */
export function executions(events: readonly RunEvent[]): RunEvent[] {
  const returned = events.filter((event) => event.type === 'stage_returned');
  return events.flatMap((event): RunEvent[] => {
    if (!('stage' in event) || !('attempt' in event)) return [event];
    const before = returned.filter(({ stage, attempt }) => stage === event.stage && attempt <= event.attempt);
    if (before.at(-1)?.attempt === event.attempt) return [];
    return [{ ...event, attempt: event.attempt - before.length }];
  });
}
