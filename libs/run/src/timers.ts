/**
 * What a run's stages wait for in time. Each has one timer at most: for its next attempt, for a runner, for people, or for the
 * end of its attempt. Its beginning is a wall time, as journaled; whoever waits in memory does so by a clock that is never set.
 */
import type { StageDefinition } from '@penstock/pipeline';
import { isEnded } from './evolve.ts';
import type { Plan } from './plan.ts';
import type { StagePicture } from './stages.ts';
import type { RunState } from './state.ts';

export interface RunSettings {
  /** A stage that no runner takes for so long is FAILED with reason `no_runner`. */
  readonly queueTimeoutMs: number;
}

/** A runner ends a stage at its timeout by itself; its owner asks for a stop so much later, in case it did not. */
export const TIMEOUT_BACKSTOP_MS = 30_000;
/** Exponential backoff stops doubling here. */
const RETRY_DELAY_MS_MAX = 60 * 60 * 1000;

export interface StageTimer {
  readonly kind: 'retry' | 'queue' | 'gate' | 'timeout';
  /** When it began, milliseconds since 1970. */
  readonly since: number;
  readonly lengthMs: number;
}

/** Undefined: nothing of the stage is timed. */
export function timerOf(
  run: Pick<RunState, 'createdAt'>,
  stage: StagePicture,
  definition: Pick<StageDefinition, 'retry' | 'timeoutMs'>,
  { queueTimeoutMs }: RunSettings,
): StageTimer | undefined {
  if (stage.status === 'PENDING') {
    if (stage.dueAt === undefined) return undefined;
    const lengthMs = retryDelayMs(definition.retry, stage.failures);
    return { kind: 'retry', since: stage.dueAt - lengthMs, lengthMs };
  }
  if (stage.status === 'QUEUED' && stage.gateDueAt !== undefined) {
    const since = stage.queuedAt ?? run.createdAt;
    return { kind: 'gate', since, lengthMs: Math.max(0, stage.gateDueAt - since) };
  }
  if (stage.status === 'QUEUED')
    return { kind: 'queue', since: stage.queuedAt ?? run.createdAt, lengthMs: queueTimeoutMs };
  if (stage.live === undefined || stage.live.stopping !== undefined) return undefined;
  return { kind: 'timeout', since: stage.live.startedAt, lengthMs: definition.timeoutMs + TIMEOUT_BACKSTOP_MS };
}

/** How long a stage waits for its next attempt after so many failures. */
export function retryDelayMs({ backoff, delayMs }: StageDefinition['retry'], failures: number): number {
  const factor = backoff === 'exponential' ? 2 ** Math.max(0, failures - 1) : 1;
  return Math.min(delayMs * factor, Math.max(RETRY_DELAY_MS_MAX, delayMs));
}

/** The earliest time at which `wake` has something to do; undefined where nothing is timed. */
export function nextDeadline(run: RunState, plan: Plan, settings: RunSettings): number | undefined {
  if (isEnded(run.status)) return undefined;
  let earliest: number | undefined;
  for (const { index, definition } of plan.stages) {
    const stage = run.stages.get(index);
    const timer = stage && timerOf(run, stage, definition, settings);
    if (timer !== undefined && (earliest === undefined || timer.since + timer.lengthMs < earliest))
      earliest = timer.since + timer.lengthMs;
  }
  return earliest;
}
