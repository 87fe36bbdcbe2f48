/** An event of a run as a watcher is told it; word for word what a server's log stream has. */
import { isoTime, type RunEvent } from '@penstock/run';
import type { StageLogTold, ToldEvent } from '../output/told-events.ts';

export interface StageText {
  readonly text: string;
  readonly truncated: boolean;
}

/** Undefined: not part of the story. `textOf` is asked for a stage that completes. */
export function toldRunEvent(
  event: RunEvent,
  textOf: (stage: string) => StageText,
): Exclude<ToldEvent, StageLogTold> | undefined {
  const timestamp = isoTime(event.at);
  switch (event.type) {
    case 'stage_started':
      return { type: 'stage_started', stage: event.stage, status: 'Running', timestamp, attempt: event.attempt };
    case 'stage_retrying':
      return {
        type: 'stage_retrying',
        stage: event.stage,
        status: 'Failed',
        timestamp,
        attempt: event.attempt,
        reason: event.reason,
        exitCode: event.exitCode,
        dueAt: isoTime(event.dueAt),
      };
    case 'stage_completed': {
      const logs = textOf(event.stage);
      return {
        type: 'stage_completed',
        stage: event.stage,
        status: event.status === 'SUCCESS' ? 'Success' : 'Failed',
        logs: logs.text,
        ...(logs.truncated ? { truncated: true } : {}),
        timestamp,
        attempt: event.attempt,
        reason: event.reason,
        exitCode: event.exitCode,
      };
    }
    case 'stage_skipped':
      return { type: 'stage_skipped', stage: event.stage, status: 'Skipped', reason: event.reason, timestamp };
    case 'run_completed':
      return {
        type: 'pipeline_completed',
        status: event.status,
        timestamp,
        outcome: event.outcome,
        reason: event.reason,
      };
    case 'run_quarantined':
      return { type: 'pipeline_completed', status: 'FAILED', timestamp, outcome: 'quarantined', reason: 'quarantined' };
    case 'run_cancelled':
      return { type: 'pipeline_cancelled', status: 'CANCELLED', cancelledStages: event.cancelledStages, timestamp };
    default:
      return undefined;
  }
}
