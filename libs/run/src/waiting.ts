/**
 * What a run and its stages wait for, as its owner knows it. What follows from the run itself stands here: stages that come before,
 * `max_parallel`, gates, retries. What depends on others (turns, places, runners) is asked of the owner. Pure.
 *
 *  WAITING-1 While a run goes on, each of its stages that has not ended and is not executed has at least one entry, and so has the
 *     run where it has such a stage; what has ended has none.
 */
import type { RunId, Version } from './brands.ts';
import { isEnded } from './evolve.ts';
import { approvedBy, awaitsRunner, isOpenGate } from './gates.ts';
import type { Plan, PlannedStage } from './plan.ts';
import { dependenciesOf } from './rerun.ts';
import type { StagePicture } from './stages.ts';
import type { RunState } from './state.ts';
import { retryDelayMs } from './timers.ts';

type WaitKind =
  | 'dependency'
  | 'quota'
  | 'concurrency'
  | 'runner'
  | 'no_runner'
  | 'approval'
  | 'backoff'
  | 'paused'
  | 'store'
  | 'broker';

export interface Wait {
  readonly kind: WaitKind;
  /** The id of the run, or the name of the stage of the same run, that is waited for. */
  readonly holder?: string | undefined;
  /** Among those that wait for the same, from 1. */
  readonly position?: number | undefined;
  /** Milliseconds since 1970. */
  readonly since?: number | undefined;
  /** From now; absent: not known. */
  readonly etaMs?: number | undefined;
  /** A sentence for a person. */
  readonly message: string;
}

export interface RunWaits {
  readonly id: RunId;
  readonly version: Version;
  readonly waits: readonly Wait[];
  /** By stage, those that wait; absent: each that has not ended waits as the run does. */
  readonly stages?: readonly (readonly [name: string, waits: readonly Wait[]])[] | undefined;
  /** Not all of the stages that wait stand here: they are too many for a message. */
  readonly isCut?: true | undefined;
}

/** What the owner knows of a run beside its state. */
export interface WaitSource {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** What stands in the way of all that would go on: the journal is full, the owner is about to give the partition away. */
  readonly inTheWay: readonly Wait[];
  /** Of a held run: what it waits for. */
  turn(): Wait;
  /** Of a stage that waits for a runner. */
  runner(stage: StagePicture): Wait;
  /** How long the stage still takes that has been executed for so long, as earlier runs tell; undefined: none has. */
  remainingOf(stage: string, ageMs: number): number | undefined;
}

/** Of a run, beside those of its stages. */
const RUN_WAITS_MAX = 20;
/** Edges looked at for one answer: a file of few lines can mean millions. */
const EDGES_MAX = 200_000;
/** Characters of an answer, about: one message takes a MiB. */
const CHARACTERS_MAX = 400_000;
/** Of an entry in JSON, beside its texts. */
const ENTRY_CHARACTERS = 90;
const NAMES_MAX = 5;

export function waitsOf(run: RunState, source: WaitSource): RunWaits {
  const { id, version, stages } = run;
  if (isEnded(run.status)) return { id, version, waits: [], stages: [] };
  if (run.awaitsApproval === true) return { id, version, waits: [runApproval(run)] };
  if (run.adoptionsLeft !== undefined) return { id, version, waits: [adoption(run, run.adoptionsLeft)] };
  const waiting = new StageWaits(run, source);
  if (run.held && !hasBegun(run)) return { id, version, waits: waiting.held() };
  const told: (readonly [string, readonly Wait[]])[] = [];
  let characters = 0;
  let isCut = false;
  const ofRun = new RunWaitsPicked();
  for (const planned of stages.plan.stages) {
    const waits = waiting.of(planned);
    if (waits.length === 0) continue;
    ofRun.add(waits);
    characters += planned.definition.name.length;
    for (const { holder = '', message } of waits) characters += ENTRY_CHARACTERS + holder.length + message.length;
    if (characters > CHARACTERS_MAX) isCut = true;
    else told.push([planned.definition.name, waits]);
  }
  return { id, version, waits: ofRun.picked(), stages: told, ...(isCut ? { isCut } : {}) };
}

function hasBegun({ status }: RunState): boolean {
  return status === 'RUNNING';
}

function runApproval(run: RunState): Wait {
  return {
    kind: 'approval',
    since: run.createdAt,
    message: 'The run of a pull request waits until somebody who may cancel it approves it.',
  };
}

/** Nothing of a rerun goes on before all that it takes over is there. */
function adoption(run: RunState, left: number): Wait {
  return {
    kind: 'store',
    since: run.createdAt,
    message: `What it takes over of the run that it repeats is being read: ${left === 1 ? 'one stage is' : `${left} stages are`} not there yet.`,
  };
}

/** What a run says of its stages: what stands in their way from outside, each once; only else that they come one after the other. */
class RunWaitsPicked {
  readonly #all = new Map<string, Wait>();
  #dependency: Wait | undefined;

  add(waits: readonly Wait[]): void {
    for (const wait of waits) {
      if (wait.kind === 'dependency') this.#dependency ??= wait;
      else if (this.#all.size < RUN_WAITS_MAX) {
        const name = `${wait.kind} ${wait.holder ?? ''} ${wait.kind === 'runner' ? '' : wait.message}`;
        const known = this.#all.get(name);
        if (known === undefined || (wait.position ?? Infinity) < (known.position ?? Infinity))
          this.#all.set(name, wait);
      }
    }
  }

  picked(): Wait[] {
    if (this.#all.size === 0) return this.#dependency === undefined ? [] : [this.#dependency];
    return [...this.#all.values()];
  }
}

class StageWaits {
  readonly #run: RunState;
  readonly #plan: Plan;
  readonly #source: WaitSource;
  /** By stage, how long until it has ended; null: not known. */
  readonly #ends = new Map<number, number | null>();
  /** Stages that were looked at for what comes before them. */
  readonly #opened = new Set<number>();
  readonly #families = new Map<
    string,
    { readonly busy: readonly number[]; readonly waiting: ReadonlyMap<number, number> }
  >();
  #held: readonly Wait[] | undefined;
  #edges = EDGES_MAX;

  constructor(run: RunState, source: WaitSource) {
    this.#run = run;
    this.#plan = run.stages.plan;
    this.#source = source;
  }

  held(): readonly Wait[] {
    return (this.#held ??= [...this.#source.inTheWay, this.#source.turn()]);
  }

  of({ index }: PlannedStage): readonly Wait[] {
    const stage = this.#run.stages.get(index);
    if (stage === undefined || (stage.status !== 'PENDING' && stage.status !== 'QUEUED')) return [];
    if (isOpenGate(stage)) return [this.#gate(stage, index)];
    if (awaitsRunner(stage))
      return this.#run.held ? this.held() : [...this.#source.inTheWay, this.#source.runner(stage)];
    const planned = this.#plan.stages[index] as PlannedStage;
    if (stage.dueAt !== undefined) return [this.#backoff(stage, stage.dueAt, planned)];
    const before = dependenciesOf(this.#run, planned);
    const dependency = this.#dependency(planned, before);
    if (dependency !== undefined) return [dependency];
    if (planned.definition.matrix?.maxParallel !== undefined) {
      const turn = this.#maxParallel(planned, planned.definition.matrix.maxParallel, before);
      if (turn !== undefined) return [turn];
    }
    if (this.#run.held) return this.held();
    return [{ kind: 'broker', message: 'It is about to go on: what decides it is being stored.' }];
  }

  #gate(stage: StagePicture, index: number): Wait {
    const approval = this.#plan.stages[index]?.definition.approval;
    const approvers = approval?.approvers?.slice(0, NAMES_MAX).join(', ') ?? 'whoever may cancel the run';
    const more = (approval?.approvers?.length ?? 0) > NAMES_MAX ? ' and others' : '';
    const count = `${approvedBy(stage.approvals ?? [])} of ${approval?.quorum ?? 1}`;
    const until = stage.gateDueAt === undefined ? '' : `, until ${new Date(stage.gateDueAt).toISOString()}`;
    return {
      kind: 'approval',
      since: stage.queuedAt ?? this.#run.createdAt,
      message: `It waits for the approval of ${approvers}${more} (${count} so far)${until}.`,
    };
  }

  #backoff(stage: StagePicture, dueAt: number, { definition }: PlannedStage): Wait {
    return {
      kind: 'backoff',
      since: dueAt - retryDelayMs(definition.retry, stage.failures),
      etaMs: Math.max(0, dueAt - this.#source.now),
      message: `Its attempt ${stage.attempt - (stage.returned ?? 0)} failed; the next one may begin at ${new Date(dueAt).toISOString()}.`,
    };
  }

  #dependency(planned: PlannedStage, before: readonly number[]): Wait | undefined {
    let [open, first] = [0, -1];
    for (const index of before) {
      if ((this.#edges -= 1) < 0 && first >= 0) break;
      const status = this.#run.stages.statusOf(index);
      if (status === undefined || isEnded(status)) continue;
      open += 1;
      // What runs is what it waits for; of those that wait themselves, the first.
      if (first === -1 || (status === 'RUNNING' && this.#run.stages.statusOf(first) !== 'RUNNING')) first = index;
    }
    if (open === 0) return undefined;
    const holder = this.#plan.stages[first]?.definition.name ?? '';
    const others = open === 1 ? '' : ` and ${open - 1} more`;
    const endMs = this.#startMs(planned);
    return {
      kind: 'dependency',
      holder,
      since: this.#run.createdAt,
      ...(endMs === null ? {} : { etaMs: endMs }),
      message: `It comes after '${holder}'${others}.`,
    };
  }

  #maxParallel({ index, siblings }: PlannedStage, max: number, before: readonly number[]): Wait | undefined {
    const { busy, waiting } = this.#familyOf(siblings);
    const position = waiting.get(index);
    const [first] = busy;
    if (position === undefined || first === undefined) return undefined;
    const holder = this.#plan.stages[first]?.definition.name ?? '';
    return {
      kind: 'concurrency',
      holder,
      position,
      since: this.#freeSince(before),
      message: `No more than ${max} of its matrix go at a time; it is number ${position} of those that wait, for '${holder}' among others.`,
    };
  }

  #familyOf(siblings: readonly number[]) {
    const name = String(siblings[0]);
    let family = this.#families.get(name);
    if (family === undefined) {
      const busy: number[] = [];
      const waiting = new Map<number, number>();
      for (const index of siblings) {
        const stage = this.#run.stages.get(index);
        if (stage === undefined || isEnded(stage.status)) continue;
        if (stage.status === 'PENDING' && stage.dueAt === undefined) {
          if (!this.#hasOpenDependency(index)) waiting.set(index, waiting.size + 1);
        } else busy.push(index);
      }
      this.#families.set(name, (family = { busy, waiting }));
    }
    return family;
  }

  /** Since when nothing that comes before a stage stands in its way, nor its run's turn. */
  #freeSince(before: readonly number[]): number {
    const { createdAt, approvedAt = createdAt, admittedAt = createdAt } = this.#run;
    let latest = Math.max(approvedAt, admittedAt);
    for (const index of before) {
      if ((this.#edges -= 1) < 0) break;
      latest = Math.max(latest, this.#run.stages.get(index)?.finishedAt ?? 0);
    }
    return latest;
  }

  #hasOpenDependency(index: number): boolean {
    const planned = this.#plan.stages[index];
    for (const before of planned === undefined ? [] : dependenciesOf(this.#run, planned)) {
      if ((this.#edges -= 1) < 0) return false;
      const status = this.#run.stages.statusOf(before);
      if (status !== undefined && !isEnded(status)) return true;
    }
    return false;
  }

  /** How long until all that it comes after has ended; null: not known. */
  #startMs(planned: PlannedStage): number | null {
    let latest = 0;
    for (const index of dependenciesOf(this.#run, planned)) {
      if ((this.#edges -= 1) < 0) return null;
      const endMs = this.#endMs(index);
      if (endMs === null) return null;
      latest = Math.max(latest, endMs);
    }
    return latest;
  }

  /** Not by recursion: a chain of thousands must not cost the stack. */
  #endMs(index: number): number | null {
    const open = [index];
    for (let next = open.at(-1); next !== undefined; next = open.at(-1)) {
      const unknown = this.#ends.has(next) ? [] : this.#unknownBefore(next);
      for (const before of unknown) open.push(before);
      if (unknown.length > 0) continue;
      if (!this.#ends.has(next)) this.#ends.set(next, this.#computeEndMs(next));
      open.pop();
    }
    return this.#ends.get(index) ?? null;
  }

  /** Stages whose ends say when this one begins, and are not known yet; asked again, none. */
  #unknownBefore(index: number): readonly number[] {
    const planned = this.#plan.stages[index];
    if (planned === undefined || this.#edges < 0 || this.#opened.has(index)) return [];
    this.#opened.add(index);
    if (this.#run.stages.statusOf(index) !== 'PENDING' || planned.definition.approval !== undefined) return [];
    if (this.#source.remainingOf(planned.definition.name, 0) === undefined) return [];
    return dependenciesOf(this.#run, planned).filter((before) => !this.#ends.has(before));
  }

  #computeEndMs(index: number): number | null {
    const stage = this.#run.stages.get(index);
    const planned = this.#plan.stages[index];
    if (stage === undefined || planned === undefined || isEnded(stage.status)) return 0;
    if (planned.definition.approval !== undefined) return null;
    const ageMs = stage.live === undefined ? 0 : Math.max(0, this.#source.now - stage.live.startedAt);
    const lengthMs = this.#source.remainingOf(stage.name, ageMs);
    if (lengthMs === undefined) return null;
    if (stage.live !== undefined) return lengthMs;
    const beginMs = awaitsRunner(stage)
      ? (this.#source.runner(stage).etaMs ?? null)
      : Math.max(this.#startMs(planned) ?? Number.NaN, (stage.dueAt ?? 0) - this.#source.now, 0);
    return beginMs === null || Number.isNaN(beginMs) ? null : beginMs + lengthMs;
  }
}
