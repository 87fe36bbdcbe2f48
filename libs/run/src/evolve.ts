/**
 * State is what its events add up to: `evolve` is the one function that writes a run's state, used when deciding, when
 * replaying a journal and when making documents, so that the three cannot differ.
 *
 * It writes in place. A partition that loses a commit throws its whole memory away, so nothing needs the old state; and
 * copying a run of 2,000 stages at each of its 6,000 events would cost more than deciding them.
 */
import { planAfter } from './added-stages.ts';
import type { RunId } from './brands.ts';
import type { ResolvedExtension } from '@penstock/pipeline';
import { eventBytes } from './document-room.ts';
import { assertNever, RunInvariantError } from './errors.ts';
import type { RunCreated, RunEvent, SkipReason } from './events.ts';
import { isLoss } from './retry-cause.ts';
import type { Plan } from './plan.ts';
import { countIn } from './lineage.ts';
import { Stages, type StagePicture } from './stages.ts';
import type { StageState } from './stage-state.ts';
import type { LockedExtension, RunState } from './state.ts';
import { isFailureTolerated } from './tolerated.ts';

export function newRun(id: RunId, created: RunCreated, plan: Plan): RunState {
  return {
    id,
    tenant: created.tenant,
    key: created.key,
    pipelineName: created.pipelineName,
    yaml: created.yaml,
    priority: created.priority,
    origin: created.origin,
    ...(created.inputs === undefined ? {} : { inputs: created.inputs }),
    ...(created.extensions === undefined ? {} : { extensions: lockOf(created.extensions) }),
    ...(created.group === undefined ? {} : { group: created.group }),
    ...(created.fingerprint === undefined ? {} : { fingerprint: created.fingerprint }),
    ...(created.lineage === undefined ? {} : { lineage: created.lineage }),
    ...(created.lineage?.adopts === undefined ? {} : { adoptionsLeft: countIn(created.lineage.adopts) }),
    createdAt: created.at,
    version: 1,
    eventBytes: 0,
    ...(created.held === undefined
      ? { status: 'PENDING', held: false }
      : { status: 'QUEUED', held: true, awaitsApproval: true }),
    stages: new Stages(plan),
    openStages: plan.stages.length,
    liveAttempts: 0,
    workspaces: {},
  };
}

/** One for all runs that share a list. */
const locks = new WeakMap<readonly ResolvedExtension[], readonly LockedExtension[]>();

function lockOf(extensions: readonly ResolvedExtension[]): readonly LockedExtension[] {
  let lock = locks.get(extensions);
  if (lock === undefined)
    locks.set(extensions, (lock = extensions.map(({ uses, id, version, hash }) => ({ uses, id, version, hash }))));
  return lock;
}

/** Applies every event but `run_created`. Throws RunInvariantError where the event cannot follow the state. */
export function evolve(run: RunState, event: RunEvent): void {
  const { plan } = run.stages;
  countEvent(run, event);
  switch (event.type) {
    case 'run_created':
      throw new RunInvariantError(run.id, 'created twice');
    case 'stages_adopted':
      for (const { stage: name, outputs, artifacts } of event.adopted) {
        const stage = editNamed(run, plan, name);
        endStage(run, stage, 'SUCCESS', event.at);
        stage.adopted = true;
        if (outputs !== undefined) run.stages.publish(stage, outputs);
        if (artifacts !== undefined) stage.artifacts = artifacts;
        if (run.adoptionsLeft !== undefined) run.adoptionsLeft -= 1;
      }
      if (run.adoptionsLeft === 0) run.adoptionsLeft = undefined;
      return;
    case 'run_approved':
      run.held = false;
      run.awaitsApproval = undefined;
      run.approvedAt = event.at;
      run.status = 'PENDING';
      return;
    case 'run_held':
      run.held = true;
      run.rested = undefined;
      // One that has begun goes on being so while it waits for its place again.
      if (run.status !== 'RUNNING') run.status = 'QUEUED';
      return;
    case 'run_admitted':
      run.held = false;
      run.admittedAt = event.at;
      unqueue(run);
      return;
    case 'run_rested':
      run.rested = true;
      // People alone are waited for.
      if (run.status === 'PENDING') run.status = 'QUEUED';
      return;
    case 'gates_queued':
      for (const name of event.stages) {
        const index = indexNamed(run, plan, name);
        const gate = run.stages.edit(index) as StageState;
        run.stages.queue(index, event.at);
        gate.gateDueAt = event.dueAt;
      }
      return;
    case 'gate_decided': {
      const { at, person, by, decision, comment } = event;
      const gate = editNamed(run, plan, event.stage);
      const given = { person, by, decision, ...(comment === undefined ? {} : { comment }), at };
      gate.approvals = [...(gate.approvals ?? []), given];
      return;
    }
    case 'stages_queued':
      // Of a run whose gates were open, too: from here on it is a runner that it waits for.
      unqueue(run);
      for (const name of event.stages) run.stages.queue(indexNamed(run, plan, name), event.at);
      return;
    case 'stage_started': {
      const stage = editNamed(run, plan, event.stage);
      if (stage.live !== undefined)
        throw new RunInvariantError(run.id, `stage '${stage.name}' granted while attempt ${stage.live.attempt} lives`);
      const { attempt, runner, session, credit } = event;
      stage.status = 'RUNNING';
      stage.attempt = attempt;
      stage.startedAt ??= event.at;
      stage.live = { attempt, runner, session, credit, startedAt: event.at };
      run.liveAttempts += 1;
      run.status = 'RUNNING';
      const planned = plan.stages[plan.indexOf.get(event.stage) ?? -1];
      if (planned?.definition.workspace === 'shared') run.workspaces[planned.labelSet] ??= runner;
      return;
    }
    case 'stage_returned': {
      const stage = endLive(run, plan, event.stage, event.attempt);
      stage.status = 'QUEUED';
      stage.returned = (stage.returned ?? 0) + 1;
      stage.lastReturned = event.attempt;
      // Nothing of it has run yet, however often it was granted.
      if (stage.failures === 0) stage.startedAt = undefined;
      freeUnusedWorkspace(run, plan, event.stage);
      return;
    }
    case 'stage_stopping': {
      const { live } = editNamed(run, plan, event.stage);
      if (live?.attempt !== event.attempt)
        throw new RunInvariantError(
          run.id,
          `stopping attempt ${event.attempt} of '${event.stage}', which does not live`,
        );
      live.stopping = event.reason;
      return;
    }
    case 'stage_retrying': {
      const stage = endLive(run, plan, event.stage, event.attempt);
      stage.status = 'PENDING';
      stage.failures += 1;
      if (!isLoss(event.reason)) stage.failedAttempts = (stage.failedAttempts ?? 0) + 1;
      stage.dueAt = event.dueAt;
      return;
    }
    case 'stage_completed': {
      const stage =
        event.attempt === 0 ? editNamed(run, plan, event.stage) : endLive(run, plan, event.stage, event.attempt);
      endStage(run, stage, event.status, event.at);
      if (event.reason !== undefined) stage.reason = event.reason;
      if (event.exitCode !== undefined) stage.exitCode = event.exitCode;
      if (event.outputs !== undefined) run.stages.publish(stage, event.outputs);
      if (event.artifacts !== undefined) stage.artifacts = event.artifacts;
      if (event.report !== undefined) stage.report = event.report;
      if (event.status === 'FAILED' && isTolerated(run, plan, event.stage)) stage.tolerated = true;
      return;
    }
    case 'stages_added': {
      const before = run.stages.length;
      run.stages.join(planAfter(plan, event));
      run.openStages += run.stages.length - before;
      run.addedBytes = (run.addedBytes ?? 0) + event.bytes;
      return;
    }
    case 'stage_skipped':
      skipStage(run, indexNamed(run, plan, event.stage), event);
      return;
    case 'stages_skipped':
      for (const name of event.stages) skipStage(run, indexNamed(run, plan, name), event);
      return;
    case 'attempt_gone':
      endLive(run, plan, event.stage, event.attempt);
      return;
    case 'workspace_lost':
      for (const [labelSet, runner] of Object.entries(run.workspaces)) {
        if (runner === event.runner && event.labelSets?.includes(labelSet) !== false) delete run.workspaces[labelSet];
      }
      return;
    case 'run_cancelled':
      run.status = 'CANCELLED';
      run.cancelledStages = event.cancelledStages;
      abandonStages(run, event.at, 'CANCELLED');
      return;
    case 'run_completed':
      endRun(run, event.at);
      run.status = event.status;
      if (event.outcome !== undefined) run.outcome = event.outcome;
      if (event.reason !== undefined) run.reason = event.reason;
      return;
    case 'run_quarantined':
      run.status = 'FAILED';
      run.outcome = 'quarantined';
      run.reason = 'quarantined';
      run.cause = event.cause;
      abandonStages(run, event.at, 'CANCELLED');
      return;
    case 'run_stopped':
      if (!isSettled(run)) throw new RunInvariantError(run.id, 'stopped while it goes on or an attempt lives');
      return;
    default:
      assertNever(event);
  }
}

/** Neither its group nor its quota holds it back any more. */
function unqueue(run: RunState): void {
  if (run.status === 'QUEUED') run.status = 'PENDING';
}

/** The event's part in what is counted; `evolve` does it for those that it applies. */
export function countEvent(run: RunState, event: RunEvent): void {
  run.version += 1;
  run.eventBytes += eventBytes(run.stages.plan, event);
}

export function isEnded(status: RunState['status']): boolean {
  return status === 'SUCCESS' || status === 'FAILED' || status === 'SKIPPED' || status === 'CANCELLED';
}

/** Ended and every attempt confirmed gone: its group, its quota and its workspaces are free. */
export function isSettled(run: Pick<RunState, 'status' | 'liveAttempts'>): boolean {
  return isEnded(run.status) && run.liveAttempts === 0;
}

/** Which execution of the stage an attempt is: grants that came to nothing do not count (P12). */
export function numberOf({ attempt, returned = 0 }: Pick<StageState, 'attempt' | 'returned'>): number {
  return attempt - returned;
}

export function stageNamed(run: RunState, plan: Plan, name: string): StagePicture {
  return run.stages.get(indexNamed(run, plan, name)) as StagePicture;
}

function editNamed(run: RunState, plan: Plan, name: string): StageState {
  return run.stages.edit(indexNamed(run, plan, name)) as StageState;
}

function isTolerated(run: RunState, plan: Plan, name: string): boolean {
  const planned = plan.stages[indexNamed(run, plan, name)];
  return planned !== undefined && isFailureTolerated(run, planned.definition);
}

function indexNamed(run: RunState, plan: Plan, name: string): number {
  const index = plan.indexOf.get(name);
  if (index === undefined) throw new RunInvariantError(run.id, `there is no stage '${name}'`);
  return index;
}

/** A runner that has started nothing of the run has no workspace of it (P19): the grant that bound it came to nothing. */
function freeUnusedWorkspace(run: RunState, plan: Plan, name: string): void {
  const labelSet = plan.stages[plan.indexOf.get(name) ?? -1]?.labelSet;
  if (labelSet === undefined) return;
  const isUsed = plan.stages.some(
    (planned) =>
      planned.labelSet === labelSet &&
      planned.definition.workspace === 'shared' &&
      run.stages.get(planned.index)?.startedAt !== undefined,
  );
  if (!isUsed) delete run.workspaces[labelSet];
}

function endLive(run: RunState, plan: Plan, name: string, attempt: number): StageState {
  const stage = editNamed(run, plan, name);
  if (stage.live?.attempt !== attempt)
    throw new RunInvariantError(run.id, `attempt ${attempt} of '${name}' ended, which does not live`);
  stage.live = undefined;
  run.liveAttempts -= 1;
  return stage;
}

function endStage(run: RunState, stage: StageState, status: StageState['status'], at: number): void {
  if (isEnded(stage.status)) throw new RunInvariantError(run.id, `stage '${stage.name}' ends twice`);
  stage.status = status;
  stage.finishedAt = at;
  stage.dueAt = undefined;
  run.openStages -= 1;
}

/** One stage of a skip: who decides applies them one by one, for the next may follow from it, and counts the event once. */
export function skipStage(
  run: RunState,
  index: number,
  { at, reason }: { readonly at: number; readonly reason: SkipReason },
): void {
  const stage = run.stages.edit(index) as StageState;
  endStage(run, stage, 'SKIPPED', at);
  stage.reason = reason;
}

function abandonStages(run: RunState, at: number, status: 'CANCELLED'): void {
  for (let index = 0; index < run.stages.length; index++) {
    if (isEnded(run.stages.statusOf(index) as RunState['status'])) continue;
    const stage = run.stages.edit(index) as StageState;
    endStage(run, stage, status, at);
    if (stage.live !== undefined) stage.live.stopping = 'cancelled';
  }
  endRun(run, at);
}

function endRun(run: RunState, at: number): void {
  if (run.finishedAt !== undefined) throw new RunInvariantError(run.id, 'ends twice');
  run.finishedAt = at;
  run.held = false;
  run.awaitsApproval = undefined;
  run.rested = undefined;
}
