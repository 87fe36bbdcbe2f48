/**
 * Whether a stage that waits may begin, and whom it keeps waiting: questions about a run's state, of which nothing is changed.
 * What is done with the answers stands in `decide.ts`.
 */
import { evaluate, truthy } from '@penstock/pipeline';
import { isEnded } from './evolve.ts';
import { ancestorsOf, type PlannedStage } from './plan.ts';
import { dependenciesOf } from './rerun.ts';
import { environmentOf, scopeOf } from './scope.ts';
import type { RunState } from './state.ts';
import { isFailureTolerated } from './tolerated.ts';

/** `dependency`, `when`: it is skipped, for that reason. */
type Readiness = 'ready' | 'wait' | 'dependency' | 'when';

/** Of a stage to which nothing has happened. `chosen`: found ready in the same decision, by their places. */
export function readinessOf(run: RunState, planned: PlannedStage, chosen: ReadonlySet<number>): Readiness {
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
  if (definition.when !== undefined && !whenHolds(run, planned, allSucceeded)) return 'when';
  const { maxParallel } = definition.matrix ?? {};
  return maxParallel !== undefined && busyIn(run, planned, chosen) >= maxParallel ? 'wait' : 'ready';
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

function whenHolds(run: RunState, planned: PlannedStage, success: boolean): boolean {
  const { definition } = planned;
  const { plan } = run.stages;
  if (definition.when === undefined) return success;
  const failure = [...ancestorsOf(plan, planned.index)].some(
    (index) => run.stages.statusOf(index) === 'FAILED' && !hasSucceeded(run, index),
  );
  const verdicts = { success, failure };
  const env = environmentOf(run, plan, planned.index, verdicts);
  return truthy(evaluate(definition.when, scopeOf(run, plan, planned.index, verdicts, env)));
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
