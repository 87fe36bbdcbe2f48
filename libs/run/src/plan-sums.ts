/**
 * What is looked at for each text that joins a plan: summed up of a file's stages once, and from then on of the new ones only, for
 * a thousand texts may join two thousand stages.
 */
import { wantedBy, type StageDefinition } from '@penstock/pipeline';
import type { Plan, PlannedStage } from './plan.ts';

export interface PlanSums {
  /** Bytes of all names as JSON, in a list. */
  readonly names: number;
  readonly dependencies: number;
  /** Different `runs_on`, joined. */
  readonly labelSets: ReadonlySet<string>;
  /** By these: what those ask for that share a workspace, which goes to the runner that has it. */
  readonly shared: ReadonlyMap<string, Shared>;
}

interface Shared {
  readonly places: ReadonlySet<StageDefinition['place']>;
  readonly wanted: PlannedStage['wanted'];
}

const NONE: PlanSums = { names: 0, dependencies: 0, labelSets: new Set(), shared: new Map() };
const sums = new WeakMap<Plan, PlanSums>();

export function sumsOf(plan: Plan): PlanSums {
  let known = sums.get(plan);
  if (known === undefined) {
    const dependencies = plan.stages.reduce((sum, each) => sum + each.dependencies.length, 0);
    known = sumsWith(
      NONE,
      plan.stages.map(({ definition }) => definition),
      dependencies,
    );
    sums.set(plan, known);
  }
  return known;
}

export function rememberSums(plan: Plan, known: PlanSums): void {
  sums.set(plan, known);
}

/** `dependencies`: how many more there are. */
export function sumsWith(before: PlanSums, added: readonly StageDefinition[], dependencies: number): PlanSums {
  const labelsOf = ({ runsOn }: StageDefinition): string => runsOn.join(',');
  const shared = new Map(before.shared);
  const sharing = Map.groupBy(
    added.filter(({ workspace }) => workspace === 'shared'),
    labelsOf,
  );
  for (const [labels, stages] of sharing) {
    const known = before.shared.get(labels);
    const places = withAll(
      known?.places ?? new Set<StageDefinition['place']>(),
      stages.map(({ place }) => place),
    );
    const runsOn = stages[0]?.runsOn ?? [];
    if (places !== known?.places)
      shared.set(labels, { places, wanted: wantedOf([...places].map((place) => ({ runsOn, place }))) });
  }
  return {
    names: before.names + namesBytes(added),
    dependencies: before.dependencies + dependencies,
    labelSets: withAll(before.labelSets, added.map(labelsOf)),
    shared,
  };
}

export function wantedOf(stages: readonly Pick<StageDefinition, 'runsOn' | 'place'>[]): PlannedStage['wanted'] {
  return { trusted: wantedBy(stages, true), untrusted: wantedBy(stages, false) };
}

/** The same set where it has them all. */
function withAll<T>(set: ReadonlySet<T>, more: readonly T[]): ReadonlySet<T> {
  return more.every((each) => set.has(each)) ? set : new Set([...set, ...more]);
}

function namesBytes(stages: readonly Pick<StageDefinition, 'name'>[]): number {
  return stages.reduce((sum, { name }) => sum + Buffer.byteLength(JSON.stringify(name)) + 1, 0);
}
