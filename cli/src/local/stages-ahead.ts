/**
 * Stages of a local run that are prepared before they are granted: what is likely to come next is put together while the ones before it
 * run, and when one of these has ended a helper that has no stage forks its process while it is decided (ADR 80).
 *
 * AHEAD-1. Only plain stages: what they are given is known from the definition alone, so nothing that runs before them changes it. They run
 *     nothing of their own before they are granted.
 * AHEAD-2. Of the slots only those without a stage are used. Where all others have one nothing is prepared: there is no processor to spare.
 */
import type { StagePreparation, StageSpec } from '@penstock/executor';
import type { StageDefinition } from '@penstock/pipeline';
import type { Plan, RunState } from '@penstock/run';

export interface PlannedStart {
  readonly spec: StageSpec;
  readonly outputFile: string;
}

export interface Ahead extends PlannedStart {
  readonly preparation: StagePreparation;
  hasBegun: boolean;
}

export interface StagesAheadOptions {
  readonly slots: number;
  /** What a stage would be started with at its first attempt. */
  readonly plan: (stage: string) => PlannedStart;
  readonly prepare: (spec: StageSpec) => StagePreparation | undefined;
}

/** So many are looked at of what comes after a stage, and none that comes after more: else each end of a stage would look at all of them. */
const LOOKED_AT_MAX = 16;

export class StagesAhead {
  readonly #options: StagesAheadOptions;
  readonly #ahead = new Map<string, Ahead>();
  /** Those that nothing is to be gained for. */
  readonly #never = new Set<string>();

  constructor(options: StagesAheadOptions) {
    this.#options = options;
  }

  /** Puts together what is likely to come; those that are not any more are given up. */
  plan(likely: readonly string[]): void {
    for (const stage of this.#ahead.keys()) if (!likely.includes(stage)) this.#discard(stage);
    for (const stage of likely) {
      if (this.#ahead.size >= this.#options.slots) return;
      if (this.#ahead.has(stage) || this.#never.has(stage)) continue;
      const ahead = this.#prepare(stage);
      if (ahead === undefined) this.#never.add(stage);
      else this.#ahead.set(stage, ahead);
    }
  }

  /** Undefined also for what cannot be started: its own start says why. */
  #prepare(stage: string): Ahead | undefined {
    try {
      const planned = this.#options.plan(stage);
      const preparation = this.#options.prepare(planned.spec);
      return preparation && { ...planned, preparation, hasBegun: false };
    } catch {
      return undefined;
    }
  }

  /** Begins as many as there are slots without a stage. `busy`: how many have one. */
  begin(busy: number): void {
    let free = this.#options.slots - busy;
    if (free === 1 && this.#options.slots > 1) return;
    for (const ahead of this.#ahead.values()) {
      if (free <= 0) return;
      free -= 1;
      ahead.hasBegun ||= ahead.preparation.begin();
      if (!ahead.hasBegun) return;
    }
  }

  /** What was made for this stage, which is to start now. */
  take(stage: string, attempt: number): Ahead | undefined {
    if (attempt !== 1) this.#discard(stage);
    const ahead = this.#ahead.get(stage);
    this.#ahead.delete(stage);
    return ahead;
  }

  /** Before a stage starts that was not prepared: it needs a helper. */
  makeRoom(busy: number): void {
    const begun = [...this.#ahead].filter(([, { hasBegun }]) => hasBegun).map(([stage]) => stage);
    for (const stage of begun.slice(Math.max(0, this.#options.slots - busy))) this.#discard(stage);
  }

  close(): void {
    for (const stage of this.#ahead.keys()) this.#discard(stage);
  }

  #discard(stage: string): void {
    const ahead = this.#ahead.get(stage);
    this.#ahead.delete(stage);
    ahead?.preparation.discard();
  }
}

/**
 * What comes next where nothing fails, the first first: what is ready, then what waits for nothing but what runs. AHEAD-1.
 */
export function likelyNext(
  ready: readonly string[],
  running: Iterable<string>,
  { plan, run }: { readonly plan: Plan; readonly run: RunState },
  max: number,
): string[] {
  const live = new Set([...running].map((name) => plan.indexOf.get(name) ?? -1));
  const isDone = (index: number): boolean => live.has(index) || run.stages.get(index)?.status === 'SUCCESS';
  const found = new Set(ready.filter((name) => isPlain(plan.stages[plan.indexOf.get(name) ?? -1]?.definition)));
  for (const index of live) {
    if (found.size >= max) break;
    for (const dependent of plan.stages[index]?.dependents.slice(0, LOOKED_AT_MAX) ?? []) {
      const next = plan.stages[dependent];
      if (next === undefined || next.dependencies.length > LOOKED_AT_MAX || !isPlain(next.definition)) continue;
      if (run.stages.get(dependent)?.status !== 'PENDING' || !next.dependencies.every(isDone)) continue;
      found.add(next.definition.name);
    }
  }
  return [...found].slice(0, max);
}

function isPlain(stage: StageDefinition | undefined): boolean {
  if (stage === undefined || stage.workspace !== 'shared' || stage.outputs.length > 0) return false;
  const { secrets, idTokens, place, artifacts, reports, caches, generates, approval, extension, when } = stage;
  const asked = [secrets, idTokens, place, artifacts, reports, caches, generates, approval, extension, when];
  if (asked.some((each) => each !== undefined)) return false;
  const templates = [...Object.values(stage.env), ...(stage.workdir === undefined ? [] : [stage.workdir])];
  return (
    templates.every((template) => template.every((part) => typeof part === 'string')) &&
    stage.commands.every(({ bindings }) => Object.keys(bindings).length === 0)
  );
}
