/** A runner's result of an attempt (P16): whether it is about the attempt that lives, and the command that it becomes. */
import type { AttemptRef, ResultRequest } from '@penstock/bus';
import type { KeptArtifacts, KeptReport, RunCommand, StageArtifacts, StageReport } from '@penstock/run';
import { liveAttemptOf } from '../dispatch/job-deliveries.ts';
import type { LiveRun } from '../run/live-run.ts';

/** Whether the run still waits for this very result; any other is obsolete (P7). */
export function awaitsResult(run: LiveRun, request: AttemptRef, runner: string): boolean {
  const live = liveAttemptOf(run, request.stage);
  return (
    live?.attempt === request.attempt &&
    live.session === request.session &&
    live.credit === request.credit &&
    live.runner === runner
  );
}

/** `expireMs`: of what the stage leaves. */
export function resultCommand(request: ResultRequest, at: number, expireMs: number): RunCommand {
  const { stage, attempt, status, reason, exitCode, outputs, logBytes } = request;
  const artifacts = request.artifacts === undefined ? undefined : keptUntil(request.artifacts, at + expireMs);
  const report = request.report === undefined ? undefined : reportUntil(request.report, at + expireMs);
  return { type: 'result', at, stage, attempt, status, reason, exitCode, outputs, artifacts, report, logBytes };
}

export function expireMsOf(run: LiveRun, stage: string, defaultMs: number): number {
  return run.plan.stages[run.plan.indexOf.get(stage) ?? -1]?.definition.artifacts?.expireMs ?? defaultMs;
}

/** Only what it is made of: what a runner says goes into the journal. Undefined: it cannot be. */
function keptUntil({ manifest, files, bytes }: KeptArtifacts, expiresAt: number): StageArtifacts | undefined {
  return /^[0-9a-f]{64}$/.test(manifest) && [files, bytes].every(isCount)
    ? { manifest, files, bytes, expiresAt }
    : undefined;
}

function reportUntil(kept: KeptReport, expiresAt: number): StageReport | undefined {
  const { total, failed, skipped, durationMs } = kept;
  const until = keptUntil(kept, expiresAt);
  if (until === undefined || ![total, failed, skipped, durationMs].every(isCount) || failed + skipped > total)
    return undefined;
  return { ...until, total, failed, skipped, durationMs };
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
