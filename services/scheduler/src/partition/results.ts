/** A runner's result of an attempt (P16): whether it is about the attempt that lives, and the command that it becomes. */
import type { ResultRequest } from '@penstock/bus';
import type { RunCommand } from '@penstock/run';
import { liveAttemptOf } from '../dispatch/job-deliveries.ts';
import type { LiveRun } from '../run/live-run.ts';

/** Whether the run still waits for this very result; any other is obsolete (P7). */
export function awaitsResult(run: LiveRun, request: ResultRequest, runner: string): boolean {
  const live = liveAttemptOf(run, request.stage);
  return (
    live?.attempt === request.attempt &&
    live.session === request.session &&
    live.credit === request.credit &&
    live.runner === runner
  );
}

export function resultCommand(request: ResultRequest, at: number): RunCommand {
  const { stage, attempt, status, reason, exitCode, outputs, logBytes } = request;
  return { type: 'result', at, stage, attempt, status, reason, exitCode, outputs, logBytes };
}
