/**
 * What clients see of a run: every event of its event stream, with all of its fields. The log stream
 * (`GET /pipeline/{id}/logs`) sends them as server-sent events, `penstock run --json` prints them, one a line. The tables of
 * `docs/events.md` are made from this file; a test compares them.
 *
 *  PUBLIC-1 Every event has `type`, which is also the name of the server-sent event, and `timestamp`.
 *  PUBLIC-2 The last event of a run is `pipeline_completed` or `pipeline_cancelled`, and no other event ends a run's stream.
 *     A cancelled run has one `pipeline_cancelling` before it; only lines of its stages come between the two.
 *  PUBLIC-3 A field that does not apply is absent, never null. Clients pass over events and fields that they do not know.
 *  PUBLIC-4 What never ran is no attempt: a grant that came to nothing has no number, and the beginning of an attempt is told once.
 */
import type { RunEvent } from './events.ts';
import { isoTime } from './projection.ts';
import type { StageReason, StageReport } from './stage-state.ts';

/** Every event of the stream. */
export type PublicEvent =
  | PublicStageStarted
  | PublicStageLog
  | PublicStageRetrying
  | PublicStageCompleted
  | PublicStageSkipped
  | PublicStageApproval
  | PublicStagesAdded
  | PublicPipelineCompleted
  | PublicPipelineCancelling
  | PublicPipelineCancelled;

/** Those that events of the run bring about; the others are its log, line by line. */
export type PublicRunEvent = Exclude<PublicEvent, PublicStageLog>;

/** An attempt of a stage has begun. */
interface PublicStageStarted {
  readonly type: 'stage_started';
  /** The stage's full name. */
  readonly stage: string;
  readonly status: 'Running';
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
}

/** A stage has written a line. */
interface PublicStageLog {
  readonly type: 'stage_log';
  /** The stage's full name. */
  readonly stage: string;
  /** Where the line was written; the engine's own remarks are in `system`, and `service:<name>` is what a service beside the stage prints. */
  readonly stream: 'stdout' | 'stderr' | 'system' | `service:${string}`;
  /** The line without its end. */
  readonly line: string;
  /** When the runner sent the line on; ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
}

export type LogStreamName = PublicStageLog['stream'];

/** An attempt has failed, and another follows. */
interface PublicStageRetrying {
  readonly type: 'stage_retrying';
  /** The stage's full name. */
  readonly stage: string;
  readonly status: 'Failed';
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
  /** The number of the attempt that failed. */
  readonly attempt: number;
  /** Why the attempt failed. */
  readonly reason: StageReason;
  /** What the attempt's command ended with, where it ended by itself. */
  readonly exitCode?: number | undefined;
  /** When the next attempt may start; ISO 8601 in UTC, with milliseconds. */
  readonly dueAt: string;
}

/** A stage has ended, and no further attempt follows. */
interface PublicStageCompleted {
  readonly type: 'stage_completed';
  /** The stage's full name. */
  readonly stage: string;
  readonly status: 'Success' | 'Failed';
  /** The text of the last attempt; its last 64 KiB where it is longer. */
  readonly logs: string;
  /** Present where `logs` does not hold all of the text: not its beginning, or not a part that the server no longer has. */
  readonly truncated?: true | undefined;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
  /** The number of the last attempt; 0 where none began. */
  readonly attempt: number;
  /** Why the stage failed. */
  readonly reason?: StageReason | undefined;
  /** What the last attempt's command ended with, where it ended by itself. */
  readonly exitCode?: number | undefined;
  /** It succeeded in the run that this one repeats, and did not run in this one. */
  readonly adopted?: true | undefined;
  /** How the tests of the last attempt went, where its `reports` say so: `total`, and of these `passed`, `failed` and `skipped`. */
  readonly tests?: TestsSummary | undefined;
}

export interface TestsSummary {
  readonly total: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** A stage will not run. */
interface PublicStageSkipped {
  readonly type: 'stage_skipped';
  /** The stage's full name. */
  readonly stage: string;
  readonly status: 'Skipped';
  /** `dependency`: a stage that it comes after did not succeed; `when`: its condition is false; `approval`: nobody approved the run. */
  readonly reason: 'dependency' | 'when' | 'approval';
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
}

/** Somebody has approved or rejected a stage that waits for it. */
interface PublicStageApproval {
  readonly type: 'stage_approval';
  /** The stage's full name. */
  readonly stage: string;
  /** Who has decided: a login, an email address, or `api-key`. */
  readonly by: string;
  /** What. */
  readonly decision: 'approved' | 'rejected';
  /** What they have said with it. */
  readonly comment?: string | undefined;
  /** How many different people have approved so far. */
  readonly approved: number;
  /** How many have to. */
  readonly quorum: number;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
}

/** A stage that has succeeded has added others to the run. */
interface PublicStagesAdded {
  readonly type: 'stages_added';
  /** The full name of the stage that has added them. */
  readonly stage: string;
  /** Their full names. */
  readonly stages: readonly string[];
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
}

/** The run has ended; the stream ends with this event. */
interface PublicPipelineCompleted {
  readonly type: 'pipeline_completed';
  readonly status: 'SUCCESS' | 'FAILED' | 'SKIPPED';
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
  /** `interrupted`: a lost runner ended the run; `quarantined`: the engine could not go on with it. */
  readonly outcome?: 'interrupted' | 'quarantined' | undefined;
  /** Why the run as a whole failed, where no stage says it. */
  readonly reason?: StageReason | undefined;
}

/** The run was cancelled: nothing starts any more, what runs is stopped, and `pipeline_cancelled` follows when it is gone. */
interface PublicPipelineCancelling {
  readonly type: 'pipeline_cancelling';
  /** How many stages had not ended. */
  readonly cancelledStages: number;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
}

/** The processes of a cancelled run are gone and all they wrote was sent; the stream ends with this event, in place of `pipeline_completed`. */
interface PublicPipelineCancelled {
  readonly type: 'pipeline_cancelled';
  readonly status: 'CANCELLED';
  /** How many stages had not ended when the run was cancelled. */
  readonly cancelledStages: number;
  /** ISO 8601 in UTC, with milliseconds. */
  readonly timestamp: string;
}

/** The text of a stage's last attempt, for `stage_completed`. */
export interface StageText {
  readonly text: string;
  /** The beginning is missing. */
  readonly truncated: boolean;
}

/** The bound of `stage_completed.logs`: an event has to fit into what a client holds in memory, and the lines came before it. */
export const STAGE_TEXT_BYTES_MAX = 64 * 1024;

/** What clients see of an event, in this order; often nothing. `text` is called only for an event that shows the stage's text. */
export function publicEventsOf(event: RunEvent, text: () => StageText): PublicRunEvent[] {
  const timestamp = isoTime(event.at);
  if (event.type === 'stages_adopted')
    return event.adopted.map(({ stage }) => {
      return { type: 'stage_completed', stage, status: 'Success', logs: '', timestamp, attempt: 0, adopted: true };
    });
  if (event.type !== 'stages_skipped') return [publicEventOf(event, text) ?? []].flat();
  const { reason } = event;
  return event.stages.map((stage) => ({ type: 'stage_skipped', stage, status: 'Skipped', reason, timestamp }));
}

function publicEventOf(event: RunEvent, text: () => StageText): PublicRunEvent | null {
  const timestamp = isoTime(event.at);
  switch (event.type) {
    case 'stage_started':
      if (event.again === true) return null;
      return { type: 'stage_started', stage: event.stage, status: 'Running', timestamp, attempt: numberIn(event) };
    case 'stage_retrying':
      return {
        type: 'stage_retrying',
        stage: event.stage,
        status: 'Failed',
        timestamp,
        attempt: numberIn(event),
        reason: event.reason,
        exitCode: event.exitCode,
        dueAt: isoTime(event.dueAt),
      };
    case 'stage_completed': {
      const logs = text();
      return {
        type: 'stage_completed',
        stage: event.stage,
        status: event.status === 'SUCCESS' ? 'Success' : 'Failed',
        logs: logs.text,
        ...(logs.truncated ? { truncated: true } : {}),
        timestamp,
        attempt: numberIn(event),
        reason: event.reason,
        exitCode: event.exitCode,
        ...(event.report === undefined ? {} : { tests: testsOf(event.report) }),
      };
    }
    case 'stage_skipped':
      return { type: 'stage_skipped', stage: event.stage, status: 'Skipped', reason: event.reason, timestamp };
    case 'gate_decided': {
      const { stage, by, decision, comment, approved, quorum } = event;
      return { type: 'stage_approval', stage, by, decision, comment, approved, quorum, timestamp };
    }
    case 'stages_added':
      return { type: 'stages_added', stage: event.stage, stages: event.stages, timestamp };
    case 'run_completed':
      return {
        type: 'pipeline_completed',
        status: event.status,
        timestamp,
        outcome: event.outcome,
        reason: event.reason,
      };
    case 'run_cancelled':
      return { type: 'pipeline_cancelling', cancelledStages: event.cancelledStages, timestamp };
    case 'run_stopped':
      return event.status === 'CANCELLED'
        ? { type: 'pipeline_cancelled', status: 'CANCELLED', cancelledStages: event.cancelledStages ?? 0, timestamp }
        : { type: 'pipeline_completed', status: 'FAILED', timestamp, outcome: 'quarantined', reason: 'quarantined' };
    default:
      return null;
  }
}

function testsOf({ total, failed, skipped }: StageReport): TestsSummary {
  return { total, passed: total - failed - skipped, failed, skipped };
}

/** Grants that came to nothing are no attempts to clients (PUBLIC-4). */
function numberIn({
  attempt,
  number = attempt,
}: {
  readonly attempt: number;
  readonly number?: number | undefined;
}): number {
  return number;
}

/** Whether the run has its final status from this event of its journal on; processes of a cancelled one may live a while. */
export function endsRun({ type }: Pick<RunEvent, 'type'>): boolean {
  return type === 'run_completed' || type === 'run_cancelled' || type === 'run_quarantined';
}

/** Whether the run's event stream ends with this event of its journal (PUBLIC-2): nothing of the run lives any more. */
export function closesRun({ type }: Pick<RunEvent, 'type'>): boolean {
  return type === 'run_completed' || type === 'run_stopped';
}

/** Whether the event stream ends with this event (PUBLIC-2). */
export function endsEventStream({ type }: Pick<PublicEvent, 'type'>): boolean {
  return type === 'pipeline_completed' || type === 'pipeline_cancelled';
}

const KNOWN_TYPES: Readonly<Record<PublicEvent['type'], true>> = {
  stage_started: true,
  stage_log: true,
  stage_retrying: true,
  stage_completed: true,
  stage_skipped: true,
  stage_approval: true,
  stages_added: true,
  pipeline_completed: true,
  pipeline_cancelling: true,
  pipeline_cancelled: true,
};

/** False: an event of a newer server. */
export function isPublicEventType(type: string): type is PublicEvent['type'] {
  return Object.hasOwn(KNOWN_TYPES, type);
}
