/** What follows from a definition alone, computed once for all runs that share it: positions and who waits for whom. */
import { wantedBy, type PipelineDefinition, type StageDefinition, type Wanted } from '@penstock/pipeline';

export interface Plan {
  readonly definition: PipelineDefinition;
  readonly stages: readonly PlannedStage[];
  readonly indexOf: ReadonlyMap<string, number>;
  /** The stages that wait for people. */
  readonly gates: readonly number[];
}

export interface PlannedStage {
  readonly definition: StageDefinition;
  readonly index: number;
  readonly dependencies: readonly number[];
  readonly dependents: readonly number[];
  /** The other expansions of the same matrix, in order; this one included. Empty for a plain stage. */
  readonly siblings: readonly number[];
  /** `runs_on` joined: stages with equal labels of one run share a workspace. */
  readonly labelSet: string;
  /** What it asks of its runner, by the trust of its run; those that share a workspace ask for the same. */
  readonly wanted: { readonly trusted: Wanted; readonly untrusted: Wanted };
  /** What it comes after, in few words: a whole matrix by its name. Absent where the run has more of them than AFTER_NAMES_MAX. */
  readonly after: readonly string[] | undefined;
}

/** Every state and every view of a run carries them: a file of few lines can mean millions. */
const AFTER_NAMES_MAX = 4_096;

const plans = new WeakMap<PipelineDefinition, Plan>();

export function planOf(definition: PipelineDefinition): Plan {
  let plan = plans.get(definition);
  if (plan === undefined) {
    plan = makePlan(definition);
    plans.set(definition, plan);
  }
  return plan;
}

function makePlan(definition: PipelineDefinition): Plan {
  const indexOf = new Map(definition.stages.map((stage, index) => [stage.name, index]));
  const dependents: number[][] = definition.stages.map(() => []);
  const families = new Map<string, number[]>();
  const dependencies = definition.stages.map((stage, index) => {
    if (stage.matrix !== undefined) {
      const family = families.get(stage.matrix.of);
      if (family === undefined) families.set(stage.matrix.of, [index]);
      else family.push(index);
    }
    return stage.after.map((name) => {
      const dependency = indexOf.get(name);
      if (dependency === undefined)
        throw new RangeError(`stage '${stage.name}' comes after '${name}', which does not exist`);
      dependents[dependency]?.push(index);
      return dependency;
    });
  });
  const after = dependencies.map((indexes) => namesOf(indexes, definition, families));
  const isAfterTold = after.reduce((count, names) => count + names.length, 0) <= AFTER_NAMES_MAX;
  const wanted = wantedOf(definition);
  const stages = definition.stages.map((stage, index): PlannedStage => ({
    definition: stage,
    index,
    dependencies: dependencies[index] ?? [],
    dependents: dependents[index] ?? [],
    siblings: stage.matrix === undefined ? [] : (families.get(stage.matrix.of) ?? []),
    labelSet: stage.runsOn.join(','),
    wanted: wanted[index] as PlannedStage['wanted'],
    after: isAfterTold ? after[index] : undefined,
  }));
  const gates = stages.filter((stage) => stage.definition.approval !== undefined).map(({ index }) => index);
  return { definition, stages, indexOf, gates };
}

/** Stages that share a workspace go to one runner, which must be able to take them all. */
function wantedOf({ stages }: PipelineDefinition): PlannedStage['wanted'][] {
  const sharing = Map.groupBy(stages, ({ workspace, runsOn }) =>
    workspace === 'shared' ? runsOn.join(',') : undefined,
  );
  const made = new Map<string, PlannedStage['wanted']>();
  // Most stages of a file ask for the same: they share what is made of it.
  const make = (group: readonly StageDefinition[]): PlannedStage['wanted'] => {
    const wanted = { trusted: wantedBy(group, true), untrusted: wantedBy(group, false) };
    const id = `${wanted.trusted.set}\n${wanted.untrusted.set}`;
    const known = made.get(id);
    if (known === undefined) made.set(id, wanted);
    return known ?? wanted;
  };
  const ofGroup = new Map([...sharing].map(([labelSet, group]) => [labelSet, make(group)]));
  return stages.map((stage) =>
    stage.workspace === 'shared' ? (ofGroup.get(stage.runsOn.join(',')) ?? make([stage])) : make([stage]),
  );
}

function namesOf(
  indexes: readonly number[],
  { stages }: PipelineDefinition,
  families: ReadonlyMap<string, readonly number[]>,
): string[] {
  const all = new Set(indexes);
  const whole = new Set(
    [...families].filter(([, family]) => family.every((index) => all.has(index))).map(([name]) => name),
  );
  const names = indexes.flatMap((index) => {
    const stage = stages[index];
    if (stage === undefined) return [];
    return [stage.matrix !== undefined && whole.has(stage.matrix.of) ? stage.matrix.of : stage.name];
  });
  return [...new Set(names)];
}

/** All stages that come before this one, directly or not. */
export function ancestorsOf(plan: Plan, index: number): ReadonlySet<number> {
  const seen = new Set<number>();
  const waiting = [...(plan.stages[index]?.dependencies ?? [])];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    waiting.push(...(plan.stages[next]?.dependencies ?? []));
  }
  return seen;
}
