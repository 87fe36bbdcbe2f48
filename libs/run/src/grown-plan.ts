/**
 * The stages of a rerun together with those that stages of its parent have added there (P30). A stage that is taken over brings what
 * it has added with it; what that means is known from the parent, and is not read again.
 *
 *  GROWN-1 New stages join in the order in which the stages stand that have added them, whoever grows the plan: `Lineage.adopts` counts
 *    their places.
 *  GROWN-2 A text means in the rerun what it means in its parent, or is not taken over at all.
 */
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import { fitsDecision, joinedTo, NotAdded, planAfter } from './added-stages.ts';
import type { RunEvent, StagesAdded } from './events.ts';
import type { Plan, PlannedStage } from './plan.ts';
import type { RunState } from './state.ts';

/** A run that another repeats: as it stands after so many of its events, and these. */
export interface RepeatedRun {
  readonly state: RunState;
  readonly events: readonly RunEvent[];
}

export interface GrownPlan {
  readonly plan: Plan;
  /** By the stage that brings it: what it adds, as it joins this plan. */
  readonly added: ReadonlyMap<string, StagesAdded>;
  /** Stages of the plan that have added others to the parent, and do not bring them. */
  readonly without: ReadonlySet<string>;
}

/** With all that stages of the parent have added, where it means the same and has room. `fileBytes`: what the file takes in the journal. */
export function withAllAdded(parent: RepeatedRun, plan: Plan, fileBytes: number): GrownPlan {
  const { stages } = parent.state;
  let left = PIPELINE_LIMITS.runTextsBytesMax - fileBytes;
  const readsAlike = hasSameGeneration(stages.plan, plan);
  const grown = grownPlan(parent, plan, ({ definition: { name } }, before, { bytes }) => {
    if (bytes > left || !readsAlike || !isReadAlike(stages.plan, before, name)) return false;
    left -= bytes;
    return true;
  });
  const outputsOf = (name: string): Readonly<Record<string, string>> | undefined =>
    stages.get(stages.plan.indexOf.get(name) ?? -1)?.outputs;
  // All that falls due may follow from the last of what is taken over, in its commit.
  const tooLarge = [...grown.added].filter(([name, event]) => !fitsDecision(grown.plan, event, outputsOf(name)));
  return { ...grown, without: new Set([...grown.without, ...tooLarge.map(([name]) => name)]) };
}

/** With what the stages have added that are taken over. */
export function withAdopted(parent: RepeatedRun, plan: Plan, isAdopted: (stage: PlannedStage) => boolean): GrownPlan {
  return grownPlan(parent, plan, isAdopted);
}

/** GROWN-1. */
function grownPlan(
  { events }: RepeatedRun,
  plan: Plan,
  brings: (stage: PlannedStage, before: Plan, event: StagesAdded) => boolean,
): GrownPlan {
  const texts = new Map(
    events.flatMap((event) => (event.type === 'stages_added' ? [[event.stage, event] as const] : [])),
  );
  const added = new Map<string, StagesAdded>();
  const without = new Set<string>();
  let grown = plan;
  for (let index = 0; texts.size > 0 && index < grown.stages.length; index++) {
    const stage = grown.stages[index] as PlannedStage;
    const { name } = stage.definition;
    const event = texts.get(name);
    if (event === undefined) continue;
    const joined = brings(stage, grown, event) ? joinedWhereRoom(grown, event) : undefined;
    if (joined === undefined) without.add(name);
    else {
      grown = planAfter(grown, joined);
      added.set(name, joined);
    }
  }
  return { plan: grown, added, without };
}

/** Undefined: an edited file leaves no room for it. */
function joinedWhereRoom(plan: Plan, event: StagesAdded): StagesAdded | undefined {
  try {
    return joinedTo(plan, event, event.at);
  } catch (error) {
    if (error instanceof NotAdded) return undefined;
    throw error;
  }
}

/**
 * GROWN-2, of all texts at once: what each is read with, its stage left aside. It has the manifests of all extensions, and there may be
 * a thousand stages that have added others.
 */
function hasSameGeneration({ definition: old }: Plan, { definition }: Plan): boolean {
  if (old === definition) return true;
  const readWith = ({ generation, inputs = [] }: Plan['definition']): object => ({ generation, inputs });
  return isSame(readWith(old), readWith(definition));
}

/** GROWN-2, of the text of one stage: the place and the rights of that are the same. */
function isReadAlike(old: Plan, plan: Plan, name: string): boolean {
  return old.definition === plan.definition || isSame(rightsOf(old, name), rightsOf(plan, name));
}

function rightsOf({ stages, indexOf }: Plan, name: string): object | undefined {
  const { definition, depth } = stages[indexOf.get(name) ?? -1] ?? {};
  return definition?.generates && { depth, ceiling: definition.generates };
}

export function isSame(a: unknown, b: unknown): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
