/**
 * The stages of a run's state, packed: a stage that has nothing but its place in the plan, and at most the time since which it
 * waits for a runner, takes eight bytes; one to which more has happened has a record of its own. A run of 2,000 waiting stages
 * would otherwise be most of a MiB in its owner's memory.
 *
 *  STAGES-1 What is read of a stage without a record is a picture of it as it is now; `edit` is the one way to change a stage.
 *  STAGES-2 As JSON they are an array of their stages, whatever they are kept as.
 */
import type { Plan } from './plan.ts';
import type {
  LiveAttempt,
  RunStatus,
  StageApproval,
  StageArtifacts,
  StageReason,
  StageReport,
  StageState,
} from './stage-state.ts';

export type StagePicture = Readonly<StageState>;

export class Stages implements Iterable<StagePicture> {
  #plan: Plan;
  /** By stage, since when it waits; not a number: it does not. Of stages without a record only. Absent: none waits. */
  #queuedAt: number[] | undefined;
  #records: (StageRecord | undefined)[] | undefined;
  /** Undefined: nobody has asked yet. */
  #outputsSize: number | undefined;

  /** As a new run has them. */
  constructor(plan: Plan) {
    this.#plan = plan;
  }

  /** What it is made of: what stages have added to the run included. */
  get plan(): Plan {
    return this.#plan;
  }

  /** There are new stages, behind those that there were. */
  join(plan: Plan): void {
    const more = plan.stages.length - this.#plan.stages.length;
    this.#plan = plan;
    for (let count = 0; count < more; count++) {
      this.#queuedAt?.push(Number.NaN);
      this.#records?.push(undefined);
    }
  }

  get length(): number {
    return this.#plan.stages.length;
  }

  get(index: number): StagePicture | undefined {
    return this.#records?.[index] ?? this.#picture(index);
  }

  /** The same as `get(index)?.status`, at no cost. */
  statusOf(index: number): RunStatus | undefined {
    const record = this.#records?.[index];
    if (record !== undefined) return record.status;
    if (this.#plan.stages[index] === undefined) return undefined;
    return this.#isQueued(index) ? 'QUEUED' : 'PENDING';
  }

  /** The stage, to be changed; undefined: there is none. */
  edit(index: number): StageState | undefined {
    const known = this.#records?.[index];
    if (known !== undefined) return known;
    const record = this.#picture(index);
    if (record === undefined) return undefined;
    this.#records ??= Array.from({ length: this.length }, () => undefined);
    this.#records[index] = record;
    return record;
  }

  /** The stage waits for a runner since then. */
  queue(index: number, at: number): void {
    const record = this.#records?.[index];
    if (record === undefined) {
      this.#queuedAt ??= Array.from({ length: this.length }, () => Number.NaN);
      this.#queuedAt[index] = at;
      return;
    }
    record.status = 'QUEUED';
    record.queuedAt = at;
    record.dueAt = undefined;
  }

  /** Characters of what all stages have published; counted once, for each of thousands of stages asks. */
  get outputsSize(): number {
    if (this.#outputsSize === undefined) {
      this.#outputsSize = 0;
      for (const { outputs } of this.touched()) if (outputs !== undefined) this.#outputsSize += sizeOfOutputs(outputs);
    }
    return this.#outputsSize;
  }

  /** Of a stage that has published nothing. */
  publish(stage: StageState, outputs: Readonly<Record<string, string>>): void {
    stage.outputs = outputs;
    if (this.#outputsSize !== undefined) this.#outputsSize += sizeOfOutputs(outputs);
  }

  *[Symbol.iterator](): IterableIterator<StagePicture> {
    for (let index = 0; index < this.length; index++) yield this.get(index) as StagePicture;
  }

  map<T>(of: (stage: StagePicture, index: number) => T): T[] {
    return Array.from(this.#plan.stages, (_, index) => of(this.get(index) as StagePicture, index));
  }

  filter(isWanted: (stage: StagePicture, index: number) => boolean): StagePicture[] {
    const found: StagePicture[] = [];
    for (let index = 0; index < this.length; index++) {
      const stage = this.get(index) as StagePicture;
      if (isWanted(stage, index)) found.push(stage);
    }
    return found;
  }

  some(isWanted: (stage: StagePicture) => boolean): boolean {
    return this.find(isWanted) !== undefined;
  }

  find(isWanted: (stage: StagePicture) => boolean): StagePicture | undefined {
    for (const stage of this) if (isWanted(stage)) return stage;
    return undefined;
  }

  /** Only those to which something has happened beside waiting for a runner for the first time. */
  *touched(): IterableIterator<StagePicture> {
    for (const record of this.#records ?? []) if (record !== undefined) yield record;
  }

  toJSON(): StagePicture[] {
    return [...this];
  }

  #isQueued(index: number): boolean {
    return this.#queuedAt !== undefined && !Number.isNaN(this.#queuedAt[index]);
  }

  #picture(index: number): StageRecord | undefined {
    const planned = this.#plan.stages[index];
    if (planned === undefined) return undefined;
    const { definition, after } = planned;
    return new StageRecord(definition.name, after, this.#isQueued(index) ? this.#queuedAt?.[index] : undefined);
  }
}

export function sizeOfOutputs(outputs: Readonly<Record<string, string>>): number {
  let size = 0;
  for (const key in outputs) size += key.length + (outputs[key]?.length ?? 0);
  return size;
}

/** All fields there from the beginning: an object that gains and loses them takes several times as much. */
class StageRecord implements StageState {
  readonly name: string;
  readonly after: readonly string[] | undefined;
  status: RunStatus;
  attempt = 0;
  returned: number | undefined = undefined;
  lastReturned: number | undefined = undefined;
  failures = 0;
  failedAttempts: number | undefined = undefined;
  queuedAt: number | undefined;
  startedAt: number | undefined = undefined;
  finishedAt: number | undefined = undefined;
  reason: StageReason | undefined = undefined;
  exitCode: number | undefined = undefined;
  outputs: Readonly<Record<string, string>> | undefined = undefined;
  artifacts: StageArtifacts | undefined = undefined;
  report: StageReport | undefined = undefined;
  tolerated: true | undefined = undefined;
  adopted: true | undefined = undefined;
  dueAt: number | undefined = undefined;
  gateDueAt: number | undefined = undefined;
  approvals: readonly StageApproval[] | undefined = undefined;
  live: LiveAttempt | undefined = undefined;

  constructor(name: string, after: readonly string[] | undefined, queuedAt: number | undefined) {
    this.name = name;
    this.after = after;
    this.status = queuedAt === undefined ? 'PENDING' : 'QUEUED';
    this.queuedAt = queuedAt;
  }
}
