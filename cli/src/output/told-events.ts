/**
 * What a run tells about itself, as the log stream of a server has it: one vocabulary for `run`, `trigger` and `logs`,
 * and for `--json`. Timestamps are ISO 8601 in UTC with milliseconds.
 */

export type ToldStream = 'stdout' | 'stderr' | 'system';

export interface StageStartedTold {
  readonly type: 'stage_started';
  readonly stage: string;
  readonly status: 'Running';
  readonly timestamp: string;
  readonly attempt: number;
}

export interface StageLogTold {
  readonly type: 'stage_log';
  readonly stage: string;
  readonly stream: ToldStream;
  readonly line: string;
  readonly timestamp: string;
}

export interface StageRetryingTold {
  readonly type: 'stage_retrying';
  readonly stage: string;
  readonly status: 'Failed';
  readonly timestamp: string;
  readonly attempt: number;
  readonly reason: string;
  readonly exitCode?: number | undefined;
  /** When the next attempt may start. */
  readonly dueAt?: string | undefined;
}

export interface StageCompletedTold {
  readonly type: 'stage_completed';
  readonly stage: string;
  readonly status: 'Success' | 'Failed';
  /** The last attempt's text, its last 64 KiB where it is longer. */
  readonly logs: string;
  readonly truncated?: boolean | undefined;
  readonly timestamp: string;
  readonly attempt?: number | undefined;
  readonly reason?: string | undefined;
  readonly exitCode?: number | undefined;
}

export interface StageSkippedTold {
  readonly type: 'stage_skipped';
  readonly stage: string;
  readonly status: 'Skipped';
  readonly reason: string;
  readonly timestamp: string;
}

export interface PipelineCompletedTold {
  readonly type: 'pipeline_completed';
  readonly status: 'SUCCESS' | 'FAILED' | 'SKIPPED';
  readonly timestamp: string;
  readonly outcome?: string | undefined;
  readonly reason?: string | undefined;
}

export interface PipelineCancelledTold {
  readonly type: 'pipeline_cancelled';
  readonly status: 'CANCELLED';
  readonly cancelledStages: number;
  readonly timestamp: string;
}

export type ToldEvent =
  | StageStartedTold
  | StageLogTold
  | StageRetryingTold
  | StageCompletedTold
  | StageSkippedTold
  | PipelineCompletedTold
  | PipelineCancelledTold;

/** The last event of a run's story. */
export function endsRun(event: ToldEvent): event is PipelineCompletedTold | PipelineCancelledTold {
  return event.type === 'pipeline_completed' || event.type === 'pipeline_cancelled';
}
