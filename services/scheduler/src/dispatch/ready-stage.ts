/**
 * A run's stages as the dispatch sees them: what they need, and which of them still wait. Those that need the same stand in one
 * queue as one: a run may have thousands.
 */
import type { Least, Wanted } from '@penstock/pipeline';
import { awaitsRunner, type StageState } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';

export interface Credit {
  readonly runner: string;
  readonly session: string;
  readonly credit: number;
}

/** Stages of one run that go to the same runners; each is granted by itself, in their order. */
export interface ReadyStages {
  readonly key: string;
  /** Whose they are. Absent: nobody's; no runner of a tenant gets them. */
  readonly tenant?: string | undefined;
  readonly priority: number;
  readonly labels: readonly string[];
  /** Names the labels and what else it asks for. */
  readonly labelSet: string;
  readonly least?: Least | undefined;
  /** How many slots the key may have while others wait, where its tier says so. */
  readonly keySlots?: number | undefined;
  readonly count: number;
  /** Whose they are, and what each is called: for who asks where they stand. */
  readonly run?: object | undefined;
  readonly runId?: string | undefined;
  nameAt?(index: number): string;
  /** Whether this one still waits: it may have been granted, cancelled or taken away with its partition. */
  waits(index: number): boolean;
  /** Since when this one waits, milliseconds since 1970. */
  since(index: number): number | undefined;
  /** The runner that they must go to, as of now. */
  boundTo(): string | undefined;
  /** Tells the stage's run, whichever partition it is of; false where the run did not take the credit. */
  grant(index: number, credit: Credit): boolean;
  /** Those from this one on. */
  rest(from: number): ReadyStages;
}

export interface ReadyStageHost {
  /** Whether the run is still this partition's to grant. */
  has(run: LiveRun): boolean;
  /** Tells the run; false where it did not take the credit. */
  grant(run: LiveRun, stage: string, credit: Credit): boolean;
}

/** As few as stages of the same needs are, in their order. */
export function readyStagesOf(run: LiveRun, stages: readonly string[], host: ReadyStageHost): ReadyStages[] {
  const [first] = stages;
  if (first === undefined) return [];
  if (stages.every((stage) => areAlike(run, first, stage))) return [new WaitingStages(run, stages, host)];
  const ready: ReadyStages[] = [];
  for (const sameLabels of Map.groupBy(stages, (stage) => plannedOf(run, stage)?.labelSet).values()) {
    for (let from = 0, end = 0; from < sameLabels.length; from = end) {
      const like = sameLabels[from] as string;
      // Each may ask for another size: no look at one begins at the first of them.
      for (end = from + 1; end < sameLabels.length && areAlike(run, like, sameLabels[end] as string);) end += 1;
      ready.push(new WaitingStages(run, sameLabels.slice(from, end), host));
    }
  }
  return ready;
}

class WaitingStages implements ReadyStages {
  readonly run: LiveRun;
  readonly #stages: readonly string[];
  readonly #host: ReadyStageHost;
  readonly #from: number;

  constructor(run: LiveRun, stages: readonly string[], host: ReadyStageHost, from = 0) {
    this.run = run;
    this.#stages = stages;
    this.#host = host;
    this.#from = from;
  }

  get runId(): string {
    return this.run.id;
  }

  get key(): string {
    return this.run.state.key;
  }

  get tenant(): string {
    return this.run.state.tenant;
  }

  get priority(): number {
    return this.run.state.priority;
  }

  get labels(): readonly string[] {
    return this.#wanted?.labels ?? [];
  }

  get labelSet(): string {
    return this.#wanted?.set ?? '';
  }

  get least(): Least | undefined {
    return this.#wanted?.least;
  }

  get #wanted(): Wanted | undefined {
    return wantedOf(this.run, this.nameAt(0));
  }

  get keySlots(): number | undefined {
    const [created] = this.run.events;
    return created?.type === 'run_created' ? created.keySlots : undefined;
  }

  get count(): number {
    return this.#stages.length - this.#from;
  }

  since(index: number): number | undefined {
    return this.#stateAt(index)?.queuedAt;
  }

  waits(index: number): boolean {
    const stage = this.#stateAt(index);
    return this.#host.has(this.run) && stage !== undefined && awaitsRunner(stage);
  }

  boundTo(): string | undefined {
    const planned = plannedOf(this.run, this.nameAt(0));
    return planned?.definition.workspace === 'shared' ? this.run.state.workspaces[planned.labelSet] : undefined;
  }

  grant(index: number, credit: Credit): boolean {
    return this.#host.grant(this.run, this.nameAt(index), credit);
  }

  rest(from: number): ReadyStages {
    return new WaitingStages(this.run, this.#stages, this.#host, this.#from + from);
  }

  #stateAt(index: number): Readonly<StageState> | undefined {
    return this.run.state.stages.get(this.run.plan.indexOf.get(this.nameAt(index)) ?? -1);
  }

  nameAt(index: number): string {
    return this.#stages[this.#from + index] ?? '';
  }
}

function plannedOf(run: LiveRun, stage: string): LiveRun['plan']['stages'][number] | undefined {
  return run.plan.stages[run.plan.indexOf.get(stage) ?? -1];
}

/** By the trust of the run. */
function wantedOf(run: LiveRun, stage: string): Wanted | undefined {
  const wanted = plannedOf(run, stage)?.wanted;
  return run.state.origin.trusted === false ? wanted?.untrusted : wanted?.trusted;
}

/** Whether they go to the same runners. */
function areAlike(run: LiveRun, stage: string, other: string): boolean {
  const [a, b] = [plannedOf(run, stage), plannedOf(run, other)];
  return (
    a === b ||
    (a?.labelSet === b?.labelSet && a?.definition.workspace === b?.definition.workspace && a?.wanted === b?.wanted)
  );
}
