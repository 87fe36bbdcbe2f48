/** A runner's result of an attempt (P16): whether it is about the attempt that lives, and the command that it becomes. */
import type { AttemptRef, ResultRequest } from '@penstock/bus';
import {
  addedTextOptions,
  type AddedTextOptions,
  type KeptArtifacts,
  type KeptReport,
  type ResultCommand,
  type RunCommand,
  type SavedCache,
  type StageArtifacts,
  type StageReason,
  type StageReport,
} from '@penstock/run';
import { PIPELINE_LIMITS, type PipelineDefinition } from '@penstock/pipeline';
import { journaledBytes } from '../run/commit.ts';
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

/** What a result adds to its run, once it has been read. `text` undefined: it is none. */
export interface ReadAdded {
  readonly text: string | undefined;
  readonly meaning: PipelineDefinition | undefined;
}

/** How what the result adds is to be read; undefined: nobody waits for it. */
export function addedOptionsOf(run: LiveRun, request: ResultRequest, runner: string): AddedTextOptions | undefined {
  if (request.status !== 'success' || request.added === undefined || !awaitsResult(run, request, runner))
    return undefined;
  return addedTextOptions(run.plan, request.stage);
}

/** `expireMs`: of what the stage leaves. */
export function resultCommand(
  request: ResultRequest,
  at: number,
  expireMs: number,
  added?: ResultCommand['added'],
): RunCommand {
  const { stage, attempt } = request;
  const status = request.status === 'success' ? 'success' : 'failed';
  const reason = request.reason !== undefined && Object.hasOwn(REASONS, request.reason) ? request.reason : undefined;
  const exitCode = Number.isSafeInteger(request.exitCode) ? request.exitCode : undefined;
  const logBytes = isCount(request.logBytes) ? request.logBytes : 0;
  const outputs = textsOf(request.outputs);
  const artifacts = request.artifacts === undefined ? undefined : keptUntil(request.artifacts, at + expireMs);
  const report = request.report === undefined ? undefined : reportUntil(request.report, at + expireMs);
  const caches = status === 'success' ? savedCaches(request.caches) : undefined;
  const kept = { outputs, artifacts, report, caches };
  return { type: 'result', at, stage, attempt, status, reason, exitCode, ...kept, added, logBytes };
}

/** All there are: what a runner says becomes a label of figures. */
const REASONS: Readonly<Record<StageReason, true>> = {
  exit: true,
  timeout: true,
  oom: true,
  signal: true,
  runner_lost: true,
  no_runner: true,
  checkout: true,
  image: true,
  service: true,
  artifacts: true,
  evicted: true,
  secret: true,
  pipeline_file: true,
  log_limit: true,
  quota: true,
  quarantined: true,
  rejected: true,
  cancelled: true,
  dependency: true,
  when: true,
  approval: true,
  parent: true,
};

function textsOf(outputs: ResultRequest['outputs'] | null): ResultRequest['outputs'] {
  if (typeof outputs !== 'object' || outputs === null) return undefined;
  const texts = Object.entries(outputs).filter(([, value]) => typeof value === 'string');
  return texts.length === 0 ? undefined : Object.fromEntries(texts);
}

/** With what it takes of what the texts of a run may take (P29). */
export function sizedAdded(run: LiveRun, { text, meaning }: ReadAdded): ResultCommand['added'] {
  const [created] = run.events;
  const fileBytes = created?.type === 'run_created' ? journaledBytes(created.yaml) : 0;
  return { text, meaning, bytes: text === undefined ? 0 : journaledBytes(text), fileBytes };
}

export function expireMsOf(run: LiveRun, stage: string, defaultMs: number): number {
  return run.plan.stages[run.plan.indexOf.get(stage) ?? -1]?.definition.artifacts?.expireMs ?? defaultMs;
}

/** What cannot be one, or is one too many, is left out: a cache that is not there fails nobody. */
function savedCaches(caches: readonly SavedCache[] | undefined): readonly SavedCache[] | undefined {
  if (!Array.isArray(caches)) return undefined;
  const { cachesMax, cacheKeyLengthMax } = PIPELINE_LIMITS;
  return (caches as readonly SavedCache[])
    .filter(
      ({ key, sha256, bytes }) =>
        typeof key === 'string' &&
        key !== '' &&
        key.length <= cacheKeyLengthMax &&
        key.isWellFormed() &&
        isHash(sha256) &&
        Number.isSafeInteger(bytes) &&
        bytes >= 0,
    )
    .slice(0, cachesMax)
    .map(({ key, sha256, bytes }) => ({ key, sha256, bytes }));
}

/** Only what it is made of: what a runner says goes into the journal. Undefined: it cannot be. */
function keptUntil({ manifest, files, bytes }: KeptArtifacts, expiresAt: number): StageArtifacts | undefined {
  return isHash(manifest) && [files, bytes].every(isCount) ? { manifest, files, bytes, expiresAt } : undefined;
}

function reportUntil(kept: KeptReport, expiresAt: number): StageReport | undefined {
  const { total, failed, skipped, durationMs } = kept;
  const until = keptUntil(kept, expiresAt);
  if (until === undefined || ![total, failed, skipped, durationMs].every(isCount) || failed + skipped > total)
    return undefined;
  return { ...until, total, failed, skipped, durationMs };
}

/** A list of one would do for the expression, and no store takes it. */
function isHash(value: unknown): boolean {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
