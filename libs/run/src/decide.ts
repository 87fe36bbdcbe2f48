/**
 * The decisions of a run: a command and a state become events and effects. Each event is applied to the state as it is
 * decided, so a later part of one decision sees the earlier ones: a decision writes the state that it was given, in place
 * (`evolve.ts` says why), and nothing else. It has no clock and no randomness; time comes in with the command.
 */
import type { Compared } from '@penstock/pipeline';
import { joinedTo } from './added-stages.ts';
import { isAdopting } from './adoptions.ts';
import type { DecideGateCommand, GrantCommand, ResultCommand, RunCommand } from './commands.ts';
import type { RunEffect } from './effects.ts';
import type { AdoptedStage, LogEnd, RunEvent, StagesAdded, StagesSkipped } from './events.ts';
import { hasRoom } from './document-room.ts';
import { endingOf } from './ending.ts';
import { countEvent, evolve, isEnded, numberOf, skipStage, stageNamed } from './evolve.ts';
import { approvedBy, awaitsOnlyPeople, awaitsRunner } from './gates.ts';
import { Awaited, Failures, isFamilyOver, mayFail, readinessOf, Turns, waitingFor } from './readiness.ts';
import { joiningOf, outputsFit } from './result-bounds.ts';
import { retryCauseOf } from './retry-cause.ts';
import { sharedNames } from './name-lists.ts';
import type { Plan, PlannedStage } from './plan.ts';
import { stagesIn } from './lineage.ts';
import type { StagePicture } from './stages.ts';
import type { StageReason, StageState } from './stage-state.ts';
import type { RunEnd, RunState } from './state.ts';
import {
  nextDeadline,
  retryDelayMs,
  TIMEOUT_BACKSTOP_MS,
  timerOf,
  type RunSettings,
  type StageTimer,
} from './timers.ts';

export class Decision {
  readonly events: RunEvent[] = [];
  readonly effects: RunEffect[] = [];
  readonly command: RunCommand;
  readonly #run: RunState;
  readonly #settings: RunSettings;
  readonly #failures: Failures;
  /** Stages that fall due, but for a `when` that reads too much. */
  readonly #overQuota = new Set<number>();
  #isFailingOverQuota = false;
  readonly #awaited: Awaited;
  readonly #compared: Compared = new WeakMap();

  constructor(run: RunState, settings: RunSettings, command: RunCommand) {
    this.#run = run;
    this.#failures = new Failures(run);
    this.#awaited = new Awaited(run);
    this.#settings = settings;
    this.command = command;
  }

  get #plan(): Plan {
    return this.#run.stages.plan;
  }

  start(at: number, held: 'group' | 'quota' | undefined): void {
    if (held !== undefined) this.#emit({ type: 'run_held', at, reason: held });
    else this.#advanceAll(at);
  }

  /** Somebody lets it go on. */
  approve(command: Extract<RunCommand, { type: 'approve' }>): void {
    const { at, by, runOfMonth, held } = command;
    this.#emit({ type: 'run_approved', at, by, ...(runOfMonth === undefined ? {} : { runOfMonth }) });
    this.start(at, held);
  }

  /** Nobody did. */
  giveUp(at: number): void {
    const stages = this.#run.stages.map(({ name }) => name);
    if (stages.length > 0) this.#emit({ type: 'stages_skipped', at, stages, reason: 'approval' });
    this.endAtOnce(at, { status: 'SKIPPED', reason: 'approval' });
  }

  /** A run without stages that was over before it could begin: nothing matched, or its file could not be had. */
  endAtOnce(at: number, { status, reason }: RunEnd): void {
    if (status === 'CANCELLED') {
      this.cancel(at);
      return;
    }
    this.#emit({ type: 'run_completed', at, status, ...(reason === undefined ? {} : { reason }) });
    this.effects.push({ type: 'settle' });
  }

  /** What it takes over is there, or a part of it; after the last part the run begins. */
  adopt({ at, stages }: Extract<RunCommand, { type: 'adopt' }>): void {
    const wanted = new Set(stagesIn(this.#run.lineage?.adopts));
    let adopted: AdoptedStage[] = [];
    const take = (): void => {
      if (adopted.length > 0) this.#emit({ type: 'stages_adopted', at, adopted });
      adopted = [];
    };
    for (const { added, ...stage } of stages) {
      const index = this.#plan.indexOf.get(stage.stage) ?? -1;
      if (!wanted.has(index) || this.#run.stages.statusOf(index) !== 'PENDING') continue;
      adopted.push(stage);
      if (added === undefined) continue;
      take();
      this.#emit(joinedTo(this.#plan, added, at));
    }
    take();
    if (!isAdopting(this.#run) && !this.#run.held) this.#advanceAll(at);
  }

  /** What it was to take over is nowhere. */
  loseParent(at: number): void {
    const stages = this.#run.stages.filter(({ status }) => !isEnded(status)).map(({ name }) => name);
    if (stages.length > 0) this.#emit({ type: 'stages_skipped', at, stages, reason: 'dependency' });
    this.endAtOnce(at, { status: 'FAILED', reason: 'parent' });
  }

  admit(at: number): void {
    this.#emit({ type: 'run_admitted', at });
    this.#advanceAll(at);
  }

  grant(command: GrantCommand): void {
    const { at, runner, session, credit } = command;
    const stage = stageNamed(this.#run, this.#plan, command.stage);
    const attempt = stage.attempt + 1;
    const again = stage.lastReturned === stage.attempt && stage.attempt > 0 ? { again: true as const } : {};
    const number = numberField({ ...stage, attempt });
    this.#emit({ type: 'stage_started', at, stage: stage.name, attempt, ...number, ...again, runner, session, credit });
    this.effects.push({ type: 'send-grant', stage: stage.name, attempt });
    this.effects.push({ type: 'wake-at', at: at + this.#definitionOf(stage).timeoutMs + TIMEOUT_BACKSTOP_MS });
  }

  returnGrant(at: number, name: string): void {
    const stage = stageNamed(this.#run, this.#plan, name);
    if (stage.live?.stopping === undefined) {
      const bound = Object.keys(this.#run.workspaces).length;
      this.#emit({ type: 'stage_returned', at, stage: name, attempt: stage.attempt });
      // Those that waited for the same runner need not any more.
      const isFree = Object.keys(this.#run.workspaces).length < bound;
      if (!hasRoom(this.#run, this.#plan)) {
        this.#failUnstarted(at, stage, 'quota');
        const waiting = isFree ? this.#waiting() : [];
        if (waiting.length > 0) this.effects.push({ type: 'offer-stages', stages: waiting });
        return;
      }
      this.effects.push({ type: 'offer-stages', stages: isFree ? this.#waiting() : [name] });
    } else {
      this.#completeStopped(at, stage, stage.live.stopping, { logBytes: 0 });
    }
  }

  result(command: ResultCommand): void {
    const stage = stageNamed(this.#run, this.#plan, command.stage);
    const { at, attempt, logBytes } = command;
    if (command.status === 'success') {
      const joining = joiningOf(this.#run, this.#planned(stage.name), command);
      const isQuota = joining === 'quota' || !outputsFit(this.#run, command.outputs);
      const about = { type: 'stage_completed', at, stage: stage.name, attempt, logBytes } as const;
      if (isQuota) this.#complete(at, stage, { ...about, status: 'FAILED', reason: 'quota' });
      else if (joining === 'pipeline_file') this.#fail(at, stage, joining, { logBytes }, undefined, keptOf(command));
      else this.#complete(at, stage, { ...about, status: 'SUCCESS', ...optional(command) }, joining);
      return;
    }
    if (stage.live?.stopping !== undefined) this.#completeStopped(at, stage, stage.live.stopping, { logBytes });
    else this.#fail(at, stage, command.reason ?? 'exit', { logBytes }, command.exitCode, keptOf(command));
  }

  lose(at: number, name: string, log: LogEnd): void {
    const stage = stageNamed(this.#run, this.#plan, name);
    if (stage.live?.stopping !== undefined) this.#completeStopped(at, stage, stage.live.stopping, log);
    else this.#fail(at, stage, 'runner_lost', log, undefined);
  }

  /** Everything whose time has come; then the next time to look. */
  wake(at: number, due: readonly string[] | undefined): void {
    const retried: string[] = [];
    const isDue = due === undefined ? (stage: StagePicture) => this.#isDue(stage, at) : namedIn(due);
    for (const stage of this.#run.stages) {
      const kind = isDue(stage) ? this.#timerOf(stage)?.kind : undefined;
      if (kind === 'retry') retried.push(stage.name);
      else if (kind === 'timeout') this.#stop(at, stage, 'timeout');
      else if (kind === 'queue') this.#failUnstarted(at, stage, 'no_runner');
      else if (kind === 'gate') this.#failUnstarted(at, stage, 'timeout');
      if (isEnded(this.#run.status)) return;
    }
    this.#queue(
      at,
      retried.filter((name) => stageNamed(this.#run, this.#plan, name).status === 'PENDING'),
    );
    const next = nextDeadline(this.#run, this.#plan, this.#settings);
    if (next !== undefined) this.effects.push({ type: 'wake-at', at: next });
  }

  #isDue(stage: StagePicture, at: number): boolean {
    const timer = this.#timerOf(stage);
    return timer !== undefined && timer.since + timer.lengthMs <= at;
  }

  #timerOf(stage: StagePicture): StageTimer | undefined {
    return timerOf(this.#run, stage, this.#definitionOf(stage), this.#settings);
  }

  /** Somebody who may decide it has: saying the same again changes nothing. */
  decideGate({ at, stage: name, person, by, decision, comment }: DecideGateCommand): void {
    const stage = stageNamed(this.#run, this.#plan, name);
    const { approval } = this.#definitionOf(stage);
    const before = stage.approvals ?? [];
    if (approval === undefined || before.findLast((known) => known.person === person)?.decision === decision) return;
    if (!hasRoom(this.#run, this.#plan, comment === undefined ? undefined : { comment })) {
      this.#failUnstarted(at, stage, 'quota');
      return;
    }
    const { quorum } = approval;
    const given = { person, by, decision, ...(comment === undefined ? {} : { comment }) };
    const approved = approvedBy([...before, { ...given, at }]);
    this.#emit({ type: 'gate_decided', at, stage: name, ...given, approved, quorum });
    if (decision === 'rejected') this.#failUnstarted(at, stage, 'rejected');
    else if (approved >= quorum)
      this.#complete(at, stage, {
        type: 'stage_completed',
        at,
        stage: name,
        attempt: 0,
        status: 'SUCCESS',
        logBytes: 0,
      });
  }

  loseWorkspace(at: number, runner: string, labelSets: readonly string[] | undefined): void {
    this.#emit({ type: 'workspace_lost', at, runner, ...(labelSets === undefined ? {} : { labelSets }) });
    const waiting = this.#waiting();
    if (waiting.length > 0) this.effects.push({ type: 'offer-stages', stages: waiting });
  }

  cancel(at: number): void {
    this.#emit({ type: 'run_cancelled', at, cancelledStages: this.#run.openStages });
    this.#stopLive(at);
  }

  quarantine(at: number, cause: string): void {
    this.#emit({ type: 'run_quarantined', at, cause });
    this.#stopLive(at);
  }

  /** An attempt of a run that has ended is gone. How it ended does not matter any more, but its log is told. */
  confirmGone(at: number, stage: string, attempt: number, log: LogEnd): void {
    this.#emit({ type: 'attempt_gone', at, stage, attempt, ...log });
    this.#stopIfGone(at);
  }

  #waiting(): string[] {
    return this.#run.stages.filter(awaitsRunner).map((stage) => stage.name);
  }

  #stopLive(at: number): void {
    for (const stage of this.#run.stages.touched()) {
      if (stage.live !== undefined)
        this.effects.push({
          type: 'stop-attempt',
          stage: stage.name,
          attempt: stage.live.attempt,
          reason: 'cancelled',
        });
    }
    this.#stopIfGone(at);
  }

  #stopIfGone(at: number): void {
    const { status, liveAttempts, cancelledStages } = this.#run;
    if (liveAttempts > 0) return;
    if (status === 'CANCELLED') this.#emit({ type: 'run_stopped', at, status, cancelledStages });
    else this.#emit({ type: 'run_stopped', at, status: 'FAILED' });
    this.effects.push({ type: 'settle' });
  }

  #stop(at: number, stage: StagePicture, reason: 'cancelled' | 'timeout'): void {
    if (stage.live === undefined || stage.live.stopping !== undefined) return;
    const { attempt } = stage.live;
    this.#emit({ type: 'stage_stopping', at, stage: stage.name, attempt, reason });
    this.effects.push({ type: 'stop-attempt', stage: stage.name, attempt, reason });
  }

  #completeStopped(at: number, stage: StagePicture, stopping: 'cancelled' | 'timeout', log: LogEnd): void {
    if (stopping === 'timeout') {
      this.#fail(at, stage, 'timeout', log, undefined);
      return;
    }
    this.#complete(at, stage, {
      type: 'stage_completed',
      at,
      stage: stage.name,
      attempt: stage.attempt,
      status: 'CANCELLED',
      reason: 'cancelled',
      ...log,
    });
  }

  #fail(
    at: number,
    stage: StagePicture,
    reason: StageReason,
    log: LogEnd,
    exitCode: number | undefined,
    kept: Pick<ResultCommand, 'artifacts' | 'report'> = {},
  ): void {
    const { retry } = this.#definitionOf(stage);
    const exit = exitCode === undefined ? {} : { exitCode };
    const { attempt, name } = stage;
    const cause = retryCauseOf(reason);
    const isRetried =
      stage.failures < retry.max &&
      cause !== undefined &&
      retry.on.includes(cause) &&
      !isFamilyOver(this.#run, this.#planned(stage.name));
    if (isRetried && hasRoom(this.#run, this.#plan)) {
      const dueAt = at + retryDelayMs(retry, stage.failures + 1);
      this.#emit({
        type: 'stage_retrying',
        at,
        stage: name,
        attempt,
        ...numberField(stage),
        reason,
        ...exit,
        ...log,
        dueAt,
      });
      this.effects.push({ type: 'wake-at', at: dueAt });
      return;
    }
    this.#complete(at, stage, {
      type: 'stage_completed',
      at,
      stage: name,
      attempt,
      status: 'FAILED',
      reason: isRetried ? 'quota' : reason,
      ...exit,
      ...kept,
      ...log,
    });
  }

  /** It waits for a runner or for people, and is not to any more. */
  #failUnstarted(at: number, stage: StagePicture, reason: 'no_runner' | 'quota' | 'timeout' | 'rejected'): void {
    this.#complete(at, stage, {
      type: 'stage_completed',
      at,
      stage: stage.name,
      attempt: 0,
      status: 'FAILED',
      reason,
      logBytes: 0,
    });
  }

  /** `added`: what it adds to the run, known before anybody is looked at who comes after it. */
  #complete(
    at: number,
    stage: StagePicture,
    event: Extract<RunEvent, { type: 'stage_completed' }>,
    added?: StagesAdded,
  ): void {
    this.#emit(event.attempt === 0 ? event : { ...event, ...numberField(stage) });
    if (added !== undefined) this.#emit(added);
    const planned = this.#planned(stage.name);
    if (event.status === 'FAILED') this.#failures.add(planned.index);
    const matrix = planned.definition.matrix;
    if (event.status === 'FAILED' && matrix?.failFast === true && !mayFail(this.#run, planned.index))
      this.#endFamily(at, planned);
    this.#advance(at, [planned.index]);
  }

  /** `fail_fast`: the other expansions that wait are over, those that run are stopped. */
  #endFamily(at: number, planned: PlannedStage): void {
    const ended: number[] = [];
    for (const sibling of planned.siblings) {
      const stage = this.#run.stages.get(sibling);
      if (stage === undefined || isEnded(stage.status)) continue;
      if (stage.live !== undefined) this.#stop(at, stage, 'cancelled');
      else {
        this.#emit({
          type: 'stage_completed',
          at,
          stage: stage.name,
          attempt: 0,
          status: 'CANCELLED',
          reason: 'cancelled',
          logBytes: 0,
        });
        ended.push(sibling);
      }
    }
    if (ended.length > 0) this.#advance(at, ended);
  }

  #advanceAll(at: number): void {
    if (isAdopting(this.#run)) return;
    this.#consider(
      at,
      this.#plan.stages.map((stage) => stage.index),
    );
  }

  /** These stages have ended: look at who waited for them, by `after` or for their turn under `max_parallel`. */
  #advance(at: number, ended: readonly number[]): void {
    const candidates: number[] = [];
    for (const index of ended) {
      const planned = this.#plan.stages[index];
      if (planned === undefined) continue;
      candidates.push(...waitingFor(this.#run, planned));
      if (planned.definition.matrix?.maxParallel !== undefined) candidates.push(...planned.siblings);
    }
    this.#consider(at, candidates);
  }

  #consider(at: number, first: readonly number[]): void {
    const ready: string[] = [];
    const skips = { dependency: [] as string[], when: [] as string[] };
    const chosen = new Set<number>();
    const turns = new Turns(this.#run);
    let candidates = first;
    while (candidates.length > 0) {
      const skipped: number[] = [];
      for (const index of candidates) {
        const planned = this.#plan.stages[index];
        const stage = this.#run.stages.get(index);
        if (planned === undefined || stage?.status !== 'PENDING' || stage.dueAt !== undefined) continue;
        if (chosen.has(index) || this.#overQuota.has(index) || this.#awaited.isOpen(planned)) continue;
        const verdict = readinessOf(this.#run, planned, turns, this.#failures, this.#compared);
        if (verdict === 'ready') {
          ready.push(stage.name);
          chosen.add(index);
          turns.take(planned);
        } else if (verdict === 'quota') this.#overQuota.add(index);
        else if (verdict !== 'wait') {
          skipStage(this.#run, index, { at, reason: verdict });
          skips[verdict].push(stage.name);
          skipped.push(index);
        }
      }
      candidates = skipped.flatMap((index) => {
        const planned = this.#plan.stages[index];
        return planned === undefined ? [] : waitingFor(this.#run, planned);
      });
    }
    for (const reason of ['dependency', 'when'] as const)
      if (skips[reason].length > 0) this.#count({ type: 'stages_skipped', at, stages: skips[reason], reason });
    this.#fallDue(at, ready);
    this.#failOverQuota(at);
    if (this.#run.openStages === 0 && !isEnded(this.#run.status)) this.#end(at);
    // Those that fail over their quota may have others behind them: who looks at the last of them sees them all.
    else if (!this.#isFailingOverQuota) this.#restIfOnlyGates(at);
  }

  /** One after the other, not one within the other: each may come after another. */
  #failOverQuota(at: number): void {
    if (this.#overQuota.size === 0 || this.#isFailingOverQuota) return;
    this.#isFailingOverQuota = true;
    for (const index of this.#overQuota) {
      this.#overQuota.delete(index);
      const stage = this.#run.stages.get(index);
      if (stage?.status === 'PENDING') this.#failUnstarted(at, stage, 'quota');
    }
    this.#isFailingOverQuota = false;
  }

  /** Gates need no place; what is to run goes on in a run that has one, and makes any other ask for it (P26). */
  #fallDue(at: number, stages: readonly string[]): void {
    if (stages.length === 0) return;
    const gates = this.#plan.gates.length === 0 ? [] : stages.filter((name) => this.#isGate(name));
    this.#queueGates(at, gates);
    const ready = gates.length === 0 ? stages : stages.filter((name) => !this.#isGate(name));
    if (ready.length === 0 || this.#run.held) return;
    if (this.#run.rested === true) {
      this.#emit({ type: 'run_held', at, reason: 'quota' });
      this.effects.push({ type: 'want-place' });
    } else this.#queue(at, ready);
  }

  #isGate(name: string): boolean {
    return this.#planned(name).definition.approval !== undefined;
  }

  #queueGates(at: number, gates: readonly string[]): void {
    const timeoutMsOf = (name: string): number => this.#planned(name).definition.approval?.timeoutMs ?? 0;
    for (const [timeoutMs, stages] of Map.groupBy(gates, timeoutMsOf)) {
      this.#emit({ type: 'gates_queued', at, stages, dueAt: at + timeoutMs });
      this.effects.push({ type: 'wake-at', at: at + timeoutMs });
    }
  }

  /** Nothing of the run can go on but by people: it gives its place back, in this commit (P26). */
  #restIfOnlyGates(at: number): void {
    const { held, rested } = this.#run;
    if (held || rested === true || isEnded(this.#run.status) || !awaitsOnlyPeople(this.#run)) return;
    this.#emit({ type: 'run_rested', at });
    this.effects.push({ type: 'rest' });
  }

  #queue(at: number, names: readonly string[]): void {
    if (names.length === 0) return;
    const stages = sharedNames(this.#plan, names);
    this.#emit({ type: 'stages_queued', at, stages });
    this.effects.push({ type: 'offer-stages', stages });
    this.effects.push({ type: 'wake-at', at: at + this.#settings.queueTimeoutMs });
  }

  #end(at: number): void {
    this.#emit({ type: 'run_completed', at, ...endingOf(this.#run) });
    this.effects.push({ type: 'settle' });
  }

  #definitionOf(stage: StagePicture): PlannedStage['definition'] {
    return this.#planned(stage.name).definition;
  }

  #planned(name: string): PlannedStage {
    const planned = this.#plan.stages[this.#plan.indexOf.get(name) ?? -1];
    if (planned === undefined) throw new RangeError(`there is no stage '${name}'`);
    return planned;
  }

  #emit(event: RunEvent): void {
    evolve(this.#run, event);
    this.events.push(event);
  }

  /** An event whose parts are applied already. */
  #count(event: StagesSkipped): void {
    countEvent(this.#run, event);
    this.events.push(event);
  }
}

/** Of an attempt that is another execution than it is a grant. */
function numberField(stage: Pick<StageState, 'attempt' | 'returned'>): { readonly number?: number } {
  return stage.returned === undefined ? {} : { number: numberOf(stage) };
}

function namedIn(names: readonly string[]): (stage: StagePicture) => boolean {
  const set = new Set(names);
  return ({ name }) => set.has(name);
}

function optional(
  command: ResultCommand,
): Pick<ResultCommand, 'outputs' | 'exitCode' | 'artifacts' | 'report' | 'caches'> {
  return {
    ...(command.outputs === undefined || Object.keys(command.outputs).length === 0 ? {} : { outputs: command.outputs }),
    ...(command.exitCode === undefined ? {} : { exitCode: command.exitCode }),
    ...keptOf(command),
    ...(command.caches === undefined || command.caches.length === 0 ? {} : { caches: command.caches }),
  };
}

function keptOf({ artifacts, report }: ResultCommand): Pick<ResultCommand, 'artifacts' | 'report'> {
  return { ...(artifacts === undefined ? {} : { artifacts }), ...(report === undefined ? {} : { report }) };
}
