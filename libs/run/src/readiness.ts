/**
 * Whether a stage that waits may begin, and whom it keeps waiting: questions about a run's state, of which nothing is changed.
 * What is done with the answers stands in `decide.ts`.
 */
import type { Compared } from '@penstock/pipeline';
import { isEnded } from './evolve.ts';
import type { PlannedStage } from './plan.ts';
import { dependenciesOf } from './rerun.ts';
import type { RunState } from './state.ts';
import { isFailureTolerated } from './tolerated.ts';
import { whenHolds } from './when.ts';

/** `dependency`, `when`: it is skipped, for that reason; `quota`: it fails, for its `when` reads too much. */
type Readiness = 'ready' | 'wait' | 'dependency' | 'when' | 'quota';

/**
 * Of a stage to which nothing has happened. `turns`: of those found ready in the same decision, too. `failures`: of all that have
 * failed, those of the same decision included. `compared`: what the conditions of the same decision have compared.
 */
export function readinessOf(
  run: RunState,
  planned: PlannedStage,
  turns: Turns = new Turns(run),
  failures: Pick<Failures, 'isBefore'> = new Failures(run),
  compared?: Compared,
): Readiness {
  const { definition } = planned;
  let allEnded = true;
  let allSucceeded = true;
  for (const index of dependenciesOf(run, planned)) {
    const status = run.stages.statusOf(index);
    if (status === undefined || !isEnded(status)) allEnded = false;
    else if (!hasSucceeded(run, index)) allSucceeded = false;
  }
  if (!allSucceeded && !definition.runsAfterFailure) return 'dependency';
  if (!allEnded) return 'wait';
  if (definition.when !== undefined) {
    const holds = whenHolds(run, planned, definition.when, allSucceeded, failures, compared);
    if (holds !== true) return holds === undefined ? 'quota' : 'when';
  }
  return turns.isThere(planned) ? 'ready' : 'wait';
}

/**
 * What must have ended before a stage that runs after failures is looked at, whatever it comes to. What has ended stays so: each
 * is looked at once, however many of them end in one decision.
 */
export class Awaited {
  readonly #run: RunState;
  readonly #left = new Map<number, { readonly before: readonly number[]; count: number }>();

  constructor(run: RunState) {
    this.#run = run;
  }

  isOpen(planned: PlannedStage): boolean {
    if (!planned.definition.runsAfterFailure) return false;
    let left = this.#left.get(planned.index);
    if (left === undefined) {
      const before = dependenciesOf(this.#run, planned);
      this.#left.set(planned.index, (left = { before, count: before.length }));
    }
    while (left.count > 0 && isEnded(this.#run.stages.statusOf(left.before[left.count - 1] ?? -1) ?? 'PENDING'))
      left.count -= 1;
    return left.count > 0;
  }
}

/** Its failure fails nothing, neither its run nor the stages after it. */
export function mayFail(run: RunState, index: number): boolean {
  const definition = run.stages.plan.stages[index]?.definition;
  return definition !== undefined && isFailureTolerated(run, definition);
}

/** A sibling's failure has ended the matrix: an attempt that was being stopped for its timeout then has no successor. */
export function isFamilyOver(run: RunState, { definition, siblings, index }: PlannedStage): boolean {
  if (definition.matrix?.failFast !== true || mayFail(run, index)) return false;
  return siblings.some((sibling) => run.stages.statusOf(sibling) === 'FAILED');
}

/**
 * Who is to be looked at once it has ended. Behind a gate others may wait than those that come after it alone: what stands between
 * was taken over (RERUN-2).
 */
export function waitingFor(run: RunState, { definition, dependents }: PlannedStage): readonly number[] {
  if (definition.approval === undefined || run.lineage?.adopts === undefined) return dependents;
  return run.stages.plan.stages.map(({ index }) => index);
}

function hasSucceeded(run: RunState, index: number): boolean {
  const status = run.stages.statusOf(index);
  return status === 'SUCCESS' || (status === 'FAILED' && mayFail(run, index));
}

/**
 * Which stages come after one whose failure counts. A decision asks for thousands, and what comes before each of them may be nearly
 * all of the run, so each of its dependencies is followed once.
 */
export class Failures {
  readonly #run: RunState;
  #after: Set<number> | undefined;

  constructor(run: RunState) {
    this.#run = run;
  }

  /** Of a stage that has not ended. */
  isBefore(index: number): boolean {
    if (this.#after === undefined) {
      this.#after = new Set();
      for (const failed of this.#run.stages.plan.stages)
        if (this.#run.stages.statusOf(failed.index) === 'FAILED') this.add(failed.index);
    }
    return this.#after.has(index);
  }

  /** One more has failed. */
  add(index: number): void {
    if (this.#after === undefined || this.#after.has(index) || hasSucceeded(this.#run, index)) return;
    const { stages } = this.#run.stages.plan;
    const waiting = [index];
    this.#after.add(index);
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      for (const dependent of stages[next]?.dependents ?? []) {
        if (this.#after.has(dependent)) continue;
        this.#after.add(dependent);
        waiting.push(dependent);
      }
    }
  }
}

/** Who of a matrix has its turn under `max_parallel`: counted once for all that ask in one look at them. */
export class Turns {
  readonly #run: RunState;
  /** By the first of the family. */
  readonly #taken = new Map<number, number>();

  constructor(run: RunState) {
    this.#run = run;
  }

  isThere(planned: PlannedStage): boolean {
    const { maxParallel } = planned.definition.matrix ?? {};
    return maxParallel === undefined || this.#takenIn(planned) < maxParallel;
  }

  take(planned: PlannedStage): void {
    const [first] = planned.siblings;
    if (first !== undefined && planned.definition.matrix?.maxParallel !== undefined)
      this.#taken.set(first, this.#takenIn(planned) + 1);
  }

  #takenIn({ siblings }: PlannedStage): number {
    const first = siblings[0] ?? -1;
    let taken = this.#taken.get(first);
    if (taken === undefined)
      this.#taken.set(first, (taken = siblings.filter((index) => hasTurn(this.#run, index)).length));
    return taken;
  }
}

/** One that is to be retried keeps it. */
function hasTurn({ stages }: RunState, index: number): boolean {
  const status = stages.statusOf(index);
  return (
    status === 'QUEUED' || status === 'RUNNING' || (status === 'PENDING' && stages.get(index)?.dueAt !== undefined)
  );
}
