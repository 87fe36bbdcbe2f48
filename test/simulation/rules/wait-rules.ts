/**
 * Waits are counted by a clock that nobody sets (P5): what ended a stage's wait came no earlier than the wait lasts, by the true
 * time. Only within one owner's time: at a take-over the wall clock says how old a wait is.
 */
import type { RunEvent } from '@penstock/run';
import type { RunTruth } from './run-truth.ts';

/** From a decision to its commit; a wait begins with the one and is seen here with the other. */
const COMMIT_MS_MAX = 20_000;

interface Seen {
  readonly at: number;
  readonly epoch: number;
  readonly queueTimeoutMs: number;
}

/** `run` is as it was before the event. */
export function checkWait(run: RunTruth, event: RunEvent, seen: Seen, fail: (message: string) => void): void {
  const length = lengthOf(run, event, seen);
  if (length !== undefined) {
    const { stage, lengthMs } = length;
    const since = run.waits.get(`${stage}\n${length.kind}`);
    if (since?.epoch === seen.epoch && seen.at - since.at < lengthMs - COMMIT_MS_MAX)
      fail(
        `${event.type} of ${run.id}/${stage} comes ${seen.at - since.at} ms after its wait began, which lasts ${lengthMs} ms`,
      );
  }
  for (const stage of event.type === 'stages_queued' || event.type === 'gates_queued' ? event.stages : [])
    run.waits.set(`${stage}\nqueue`, { at: seen.at, epoch: seen.epoch });
  if (event.type === 'stage_started' || event.type === 'stage_retrying')
    run.waits.set(`${event.stage}\nother`, { at: seen.at, epoch: seen.epoch });
}

function lengthOf(
  run: RunTruth,
  event: RunEvent,
  { queueTimeoutMs }: Seen,
): { readonly stage: string; readonly kind: 'queue' | 'other'; readonly lengthMs: number } | undefined {
  if (event.type === 'stage_completed' && event.reason === 'no_runner')
    return { stage: event.stage, kind: 'queue', lengthMs: queueTimeoutMs };
  if (event.type === 'stage_completed' && event.reason === 'timeout' && event.attempt === 0) {
    const planned = run.state.stages.plan.stages[run.state.stages.plan.indexOf.get(event.stage) ?? -1];
    const lengthMs = planned?.definition.approval?.timeoutMs;
    return lengthMs === undefined ? undefined : { stage: event.stage, kind: 'queue', lengthMs };
  }
  if (event.type === 'stage_stopping' && event.reason === 'timeout') {
    const planned = run.state.stages.plan.stages[run.state.stages.plan.indexOf.get(event.stage) ?? -1];
    return planned && { stage: event.stage, kind: 'other', lengthMs: planned.definition.timeoutMs };
  }
  return undefined;
}
