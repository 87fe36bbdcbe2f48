/** What follows from a definition alone, computed once for all runs that share it: positions and who waits for whom. */
import { wantedBy, type PipelineDefinition, type StageDefinition, type Wanted } from '@penstock/pipeline';
import type { NamedPlaces } from './named-places.ts';

export interface Plan {
  readonly definition: PipelineDefinition;
  readonly stages: readonly PlannedStage[];
  readonly indexOf: NamedPlaces;
  /** The stages that wait for people. */
  readonly gates: readonly number[];
  /** What stages have added to the run takes, about, as JSON; 0: these are the stages of the file. */
  readonly addedBytes: number;
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
  /** 0: it stands in the file. Else it was added, by a stage that is one less deep. */
  readonly depth: number;
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
  const parts = partsOf(definition.stages, () => undefined, 0);
  const wanted = wantedOf(definition);
  const stages = definition.stages.map((stage, index): PlannedStage => ({
    definition: stage,
    index,
    dependencies: parts[index]?.dependencies ?? [],
    dependents: parts[index]?.dependents ?? [],
    siblings: parts[index]?.siblings ?? [],
    labelSet: stage.runsOn.join(','),
    wanted: wanted[index] as PlannedStage['wanted'],
    after: parts[index]?.after,
    depth: 0,
  }));
  const gates = stages.filter((stage) => stage.definition.approval !== undefined).map(({ index }) => index);
  return { definition, stages, indexOf, gates, addedBytes: 0 };
}

export interface PlanParts extends Pick<PlannedStage, 'dependencies' | 'siblings' | 'after'> {
  readonly dependents: number[];
}

/** Who waits for whom among these stages, which are to stand from `first` on. `known`: where others stand that they come after. */
export function partsOf(
  stages: readonly StageDefinition[],
  known: (name: string) => number | undefined,
  first: number,
): PlanParts[] {
  const own = new Map(stages.map((stage, offset) => [stage.name, first + offset]));
  const dependents: number[][] = stages.map(() => []);
  const families = new Map<string, number[]>();
  const dependencies = stages.map((stage, offset) => {
    if (stage.matrix !== undefined) {
      const family = families.get(stage.matrix.of);
      if (family === undefined) families.set(stage.matrix.of, [first + offset]);
      else family.push(first + offset);
    }
    return stage.after.map((name) => {
      const dependency = own.get(name) ?? known(name);
      if (dependency === undefined)
        throw new RangeError(`stage '${stage.name}' comes after '${name}', which does not exist`);
      dependents[dependency - first]?.push(first + offset);
      return dependency;
    });
  });
  const after = stages.map((stage) => namesOf(stage.after, own, first, stages, families));
  const isAfterTold = after.reduce((count, names) => count + names.length, 0) <= AFTER_NAMES_MAX;
  return stages.map((stage, offset) => ({
    dependencies: dependencies[offset] ?? [],
    dependents: dependents[offset] ?? [],
    siblings: stage.matrix === undefined ? [] : (families.get(stage.matrix.of) ?? []),
    after: isAfterTold ? after[offset] : undefined,
  }));
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

/** What a stage comes after, a whole matrix by its name. Only matrices that are named are looked at: there may be thousands. */
function namesOf(
  after: readonly string[],
  own: ReadonlyMap<string, number>,
  first: number,
  stages: readonly StageDefinition[],
  families: ReadonlyMap<string, readonly number[]>,
): string[] {
  const familyOf = (name: string): string | undefined => stages[(own.get(name) ?? -1) - first]?.matrix?.of;
  const named = new Map<string, number>();
  for (const name of new Set(after)) {
    const family = familyOf(name);
    if (family !== undefined) named.set(family, (named.get(family) ?? 0) + 1);
  }
  const names = after.map((name) => {
    const family = familyOf(name);
    return family !== undefined && named.get(family) === families.get(family)?.length ? family : name;
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

const ranks = new WeakMap<Plan, readonly number[]>();

/** Where each stage stands among all: as in the file, but after all that it comes after. */
export function ranksOf(plan: Plan): readonly number[] {
  let found = ranks.get(plan);
  if (found === undefined) ranks.set(plan, (found = ranked(plan)));
  return found;
}

function ranked({ stages }: Plan): number[] {
  const rankOf = stages.map(() => -1);
  let next = 0;
  for (const root of stages.keys()) {
    // Not by recursion: a chain of thousands must not cost the stack.
    const waiting = [root];
    for (let index = waiting.at(-1); index !== undefined; index = waiting.at(-1)) {
      const before = rankOf[index] === -1 ? (stages[index]?.dependencies ?? []) : [];
      const missing = before.filter((each) => rankOf[each] === -1).toSorted((a, b) => b - a);
      if (missing.length > 0) {
        for (const each of missing) waiting.push(each);
        continue;
      }
      if (rankOf[index] === -1) rankOf[index] = next++;
      waiting.pop();
    }
  }
  return rankOf;
}
