/** State as the API shows it. */
import { isEnded, numberOf } from './evolve.ts';
import { gateViewOf } from './gates.ts';
import { isTrusted, triggerOf } from './origin.ts';
import type { GateView } from './stage-state.ts';
import type { StagePicture } from './stages.ts';
import type { RunState, RunView, StageView, StoredRunState, TriggerOrigin } from './state.ts';

/** `named`: of its stages these alone, in their order; absent: all. */
export function viewOf(run: RunState, named?: readonly string[]): RunView {
  const stages =
    named === undefined
      ? run.stages.map((stage, index) => stageViewOf(stage, gateViewOf(run, run.stages.plan, index)))
      : named.flatMap((name) => stageViewNamed(run, name));
  return viewWith(run, stages);
}

/** Of a document alone, whose plan is not read: it does not say of its gates that they are some. */
export function viewOfStored(run: StoredRunState): RunView {
  return viewWith(
    run,
    run.stages.map((stage) => stageViewOf(stage, undefined)),
  );
}

function viewWith(run: RunState | StoredRunState, stages: readonly StageView[]): RunView {
  return {
    id: run.id,
    tenant: run.tenant,
    key: run.key,
    pipelineName: run.pipelineName,
    status: run.status,
    startedAt: isoTime(run.createdAt),
    finishedAt: run.finishedAt === undefined ? null : isoTime(run.finishedAt),
    outcome: run.outcome ?? null,
    reason: run.reason ?? null,
    version: run.version,
    cancelledStages: run.cancelledStages ?? null,
    stages,
    ...originViewOf(run.origin),
    ...(run.fingerprint === undefined ? {} : { fingerprint: run.fingerprint }),
    ...(run.inputs === undefined ? {} : { inputs: Object.entries(run.inputs).map(([key, value]) => ({ key, value })) }),
    ...(run.extensions === undefined ? {} : { extensions: run.extensions }),
    ...(run.lineage === undefined ? {} : { lineage: run.lineage }),
  };
}

function stageViewNamed(run: RunState, name: string): StageView[] {
  const { plan } = run.stages;
  const index = plan.indexOf.get(name) ?? -1;
  const stage = run.stages.get(index);
  return stage === undefined ? [] : [stageViewOf(stage, gateViewOf(run, plan, index))];
}

/** Never the address that it was cloned from: that may hold credentials. */
function originViewOf(
  origin: TriggerOrigin,
): Pick<
  RunView,
  'trigger' | 'trusted' | 'actor' | 'provider' | 'source' | 'repository' | 'ref' | 'commit' | 'pullRequest' | 'tick'
> {
  const { source, repository, ref, commit, actor, provider, pullRequest, tick } = origin;
  return {
    trigger: triggerOf(origin),
    trusted: isTrusted(origin),
    ...(actor === undefined ? {} : { actor }),
    ...(provider === undefined ? {} : { provider }),
    ...(source === undefined ? {} : { source }),
    ...(repository === undefined ? {} : { repository }),
    ...(ref === undefined ? {} : { ref }),
    ...(commit === undefined ? {} : { commit }),
    ...(pullRequest === undefined ? {} : { pullRequest }),
    ...(tick === undefined ? {} : { tick: { ...tick, at: isoTime(tick.at) } }),
  };
}

/** `passed` counts SUCCESS, `failed` FAILED, `skipped` SKIPPED; cancelled and unfinished stages are in none. */
export interface RunSummary {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export function summaryOf(view: RunView): RunSummary {
  const count = (status: StageView['status']): number => view.stages.filter((stage) => stage.status === status).length;
  return { passed: count('SUCCESS'), failed: count('FAILED'), skipped: count('SKIPPED') };
}

/** ISO 8601 in UTC with milliseconds. */
export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

function stageViewOf(stage: StagePicture, gate: GateView | undefined): StageView {
  return {
    name: stage.name,
    ...(stage.after === undefined ? {} : { after: stage.after }),
    status: stage.status,
    startedAt: stage.startedAt === undefined ? null : isoTime(stage.startedAt),
    finishedAt: stage.finishedAt === undefined ? null : isoTime(stage.finishedAt),
    outputs: Object.entries(stage.outputs ?? {}).map(([key, value]) => ({ key, value })),
    reason: isEnded(stage.status) ? (stage.reason ?? null) : null,
    exitCode: stage.exitCode ?? null,
    attempt: numberOf(stage),
    ...(stage.failedAttempts === undefined ? {} : { failedAttempts: stage.failedAttempts }),
    ...(stage.artifacts === undefined ? {} : { artifacts: stage.artifacts }),
    ...(stage.report === undefined ? {} : { report: stage.report }),
    ...(stage.tolerated === undefined ? {} : { tolerated: stage.tolerated }),
    ...(stage.adopted === undefined ? {} : { adopted: stage.adopted }),
    ...(gate === undefined ? {} : { gate, approvals: stage.approvals ?? [] }),
  };
}
