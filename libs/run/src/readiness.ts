/**
 * Whether a stage that waits may begin, and whom it keeps waiting: questions about a run's state, of which nothing is changed.
 * What is done with the answers stands in `decide.ts`.
 */
import { isEnded } from './evolve.ts';
import type { PlannedStage } from './plan.ts';
import { dependenciesOf } from './rerun.ts';
import type { RunState } from './state.ts';
import { isFailureTolerated } from './tolerated.ts';
import { whenHolds } from './when.ts';

/** `dependency`, `when`: it is skipped, for that reason; `quota`: it fails, for its `when` reads too much. */
type Readiness = 'ready' | 'wait' | 'dependency' | 'when' | 'quota';

/**
 * Of a stage to which nothing has happened. `chosen`: found ready in the same decision, by their places. `failures`: of all
 * that have failed, those of the same decision included.
 */
export function readinessOf(
  run: RunState,
  planned: PlannedStage,
  chosen: ReadonlySet<number>,
  failures: Pick<Failures, 'isBefore'> = new Failures(run),
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
    const holds = whenHolds(run, planned, definition.when, allSucceeded, failures);
    if (holds !== true) return holds === undefined ? 'quota' : 'when';
  }
  const { maxParallel } = definition.matrix ?? {};
  return maxParallel !== undefined && busyIn(run, planned, chosen) >= maxParallel ? 'wait' : 'ready';
}

/** One that has not ended yet, and without which nothing becomes of the stage, whatever the others come to. */
export function awaitedBy(run: RunState, planned: PlannedStage): number | undefined {
  if (!planned.definition.runsAfterFailure) return undefined;
  return dependenciesOf(run, planned).findLast((index) => !isEnded(run.stages.statusOf(index) ?? 'PENDING'));
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

/** How many expansions of its matrix have their turn under `max_parallel`: one that is to be retried keeps it. */
function busyIn(run: RunState, { siblings }: PlannedStage, chosen: ReadonlySet<number>): number {
  const busy = siblings.filter((index) => {
    const status = run.stages.statusOf(index);
    return (
      chosen.has(index) ||
      status === 'QUEUED' ||
      status === 'RUNNING' ||
      (status === 'PENDING' && run.stages.get(index)?.dueAt !== undefined)
    );
  });
  return busy.length;
}
