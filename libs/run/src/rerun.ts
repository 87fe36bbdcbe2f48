/**
 * Runs that begin from another run (P30): which of its stages a rerun takes over, and what of them. Pure, and decided once, by the
 * owner that creates the rerun: from then on `run_created` says it.
 *
 *  RERUN-1 Only a stage that has succeeded is taken over; every other one is decided anew, skipped ones too.
 *  RERUN-2 A gate before anything that executes is decided anew, and what executes waits for it, whatever stands between them.
 *  RERUN-3 With another file a stage is taken over only where its definition and those of all before it are the same.
 *  RERUN-4 A stage that has added others is taken over with them, unless something that it comes after executes: what they are may
 *    follow from that.
 */
import type { StageDefinition } from '@penstock/pipeline';
import { isSame, withAdopted, withAllAdded, type GrownPlan, type RepeatedRun } from './grown-plan.ts';
import type { Plan, PlannedStage } from './plan.ts';
import type { RunState } from './state.ts';

/** What of the parent is to run again; neither: all of it. */
export interface RerunWish {
  /** These and all that comes after them; the name of a matrix, of an extension or of a stage that has added others means all of it. */
  readonly from?: readonly string[] | undefined;
  /** What has not succeeded, and all that comes after it. */
  readonly onlyFailed?: boolean | undefined;
}

/** Who began its runs are all asked at a gate with `prevent_self`: more different people than this do not rerun each other's runs. */
export const LINEAGE_ACTORS_MAX = 100;

/** Of one lineage: each of them names all that go on before it. */
export const LINEAGE_LIVE_MAX = 100;

export type Adoption =
  /** `grown`: the plan of their places, which says what they have added; it need not be made again for `adoptionsOf`. */
  | { readonly ok: true; readonly stages: readonly number[]; readonly grown: GrownPlan }
  | { readonly ok: false; readonly code: 'BAD_USER_INPUT' | 'CONFLICT'; readonly message: string };

/**
 * Which stages a rerun takes over from its parent as it stands: `plan` has those of its file, and behind them stand those that its
 * adopted stages have added (GROWN-1). `fileBytes`: what a file that is not the parent's takes in the journal.
 */
export function adoptionOf(parent: RepeatedRun, plan: Plan, wish: RerunWish, fileBytes = 0): Adoption {
  if (wish.from !== undefined && wish.from.length > 0 && wish.onlyFailed === true)
    return { ok: false, code: 'BAD_USER_INPUT', message: "'from' and 'onlyFailed' exclude each other" };
  const isAll = (wish.from ?? []).length === 0 && wish.onlyFailed !== true;
  if (isAll && plan.stages.length > 0) return { ok: true, stages: [], grown: withAdopted(parent, plan, () => false) };
  const whole = withAllAdded(parent, plan, fileBytes);
  const named = namedIn(wish.from ?? [], whole, parent.state.stages.plan);
  if (!named.ok) return named;
  const hasSucceeded = successOf(parent);
  const { stages } = whole.plan;
  const first = stages.filter(
    (stage) => whole.without.has(stage.definition.name) || (wish.onlyFailed === true && !hasSucceeded(stage)),
  );
  const again = reachedFrom([...first, ...named.stages], whole.plan);
  const unchanged = unchangedIn(parent.state.stages.plan, whole.plan);
  const adopted = new Set(
    stages.filter((stage) => hasSucceeded(stage) && !again.has(stage.index) && unchanged?.has(stage.index) !== false),
  );
  runGeneratorsAgain(adopted, whole.plan);
  askAgain(adopted, whole.plan);
  if (adopted.size === stages.length)
    return {
      ok: false,
      code: 'CONFLICT',
      message: 'there is nothing to run again: every stage of the run has succeeded',
    };
  const names = new Set([...adopted].map(({ definition }) => definition.name));
  const hasAll = [...whole.added.keys()].every((name) => names.has(name));
  const grown = hasAll ? whole : withAdopted(parent, plan, ({ definition }) => names.has(definition.name));
  const places = [...names].map((name) => grown.plan.indexOf.get(name) ?? -1);
  return { ok: true, stages: places.toSorted((a, b) => a - b), grown };
}

/** Of a run without stages. */
export function adoptsNothing(plan: Plan): Extract<Adoption, { ok: true }> {
  return { ok: true, stages: [], grown: { plan, added: new Map(), without: new Set() } };
}

/** Whether the stage of this name has succeeded there. */
function successOf({ state: { stages } }: RepeatedRun): (stage: PlannedStage) => boolean {
  return ({ definition }) => stages.statusOf(stages.plan.indexOf.get(definition.name) ?? -1) === 'SUCCESS';
}

/** Gates do not: people decide them, and what they have said may stand. */
function executing(adopted: ReadonlySet<PlannedStage>, { stages }: Plan): PlannedStage[] {
  return stages.filter((stage) => !adopted.has(stage) && stage.definition.approval === undefined);
}

/** RERUN-4. */
function runGeneratorsAgain(adopted: Set<PlannedStage>, plan: Plan): void {
  const after = reachedFrom(executing(adopted, plan), plan);
  const generators = [...adopted].filter(
    ({ index, definition }) => definition.generates !== undefined && after.has(index),
  );
  const again = reachedFrom(generators, plan);
  for (const stage of adopted) if (again.has(stage.index)) adopted.delete(stage);
}

/** RERUN-2. */
function askAgain(adopted: Set<PlannedStage>, plan: Plan): void {
  const before = reachedFrom(executing(adopted, plan), plan, (stage) => stage.dependencies);
  for (const gate of plan.gates) {
    const stage = plan.stages[gate];
    if (stage !== undefined && before.has(gate)) adopted.delete(stage);
  }
}

function namedIn(
  from: readonly string[],
  { plan, without }: GrownPlan,
  old: Plan,
): Extract<Adoption, { ok: false }> | { readonly ok: true; readonly stages: readonly PlannedStage[] } {
  const byName = from.length === 0 ? new Map<string, PlannedStage[]>() : stagesByName(plan);
  const stages: PlannedStage[] = [];
  for (const name of new Set(from)) {
    const named = byName.get(name);
    if (named === undefined)
      return { ok: false, code: 'BAD_USER_INPUT', message: `'from': ${noSuchStage(name, plan, without, old)}` };
    stages.push(...named);
  }
  return { ok: true, stages };
}

/** Says more of a name under that of a stage that adds others. */
function noSuchStage(name: string, plan: Plan, without: ReadonlySet<string>, old: Plan): string {
  const shown = `'${name.slice(0, 200)}'`;
  const by = namesOf(name).findLast((before) => {
    return before !== name && plan.stages[plan.indexOf.get(before) ?? -1]?.definition.generates !== undefined;
  });
  if (by === undefined) return `the pipeline has no stage ${shown}`;
  if (without.has(by) && old.indexOf.has(name))
    return `${shown} was added by '${by}', which has to run again with this file: name '${by}'`;
  return `'${by}' has added no stage ${shown} to the run: name '${by}' to run it again`;
}

/** By its own name, by that of its matrix, and by those of the stages in whose place it stands. */
function stagesByName({ stages }: Plan): Map<string, PlannedStage[]> {
  const byName = new Map<string, PlannedStage[]>();
  for (const stage of stages) {
    const { name, matrix } = stage.definition;
    for (const known of new Set([name, matrix?.of ?? name].flatMap(namesOf))) {
      const same = byName.get(known);
      if (same === undefined) byName.set(known, [stage]);
      else same.push(stage);
    }
  }
  return byName;
}

/** The name, and what stands before each slash in it. */
function namesOf(name: string): string[] {
  return [name, ...[...name.matchAll(/\//g)].map(({ index }) => name.slice(0, index))];
}

/** These, and all that comes after them; or before them, as `next` says. */
function reachedFrom(
  first: readonly PlannedStage[],
  plan: Plan,
  next: (stage: PlannedStage) => readonly number[] = ({ dependents }) => dependents,
): ReadonlySet<number> {
  const seen = new Set(first.map(({ index }) => index));
  const waiting = [...seen];
  for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
    const stage = plan.stages[index];
    for (const other of stage === undefined ? [] : next(stage)) {
      if (seen.has(other)) continue;
      seen.add(other);
      waiting.push(other);
    }
  }
  return seen;
}

/** RERUN-3. Undefined: all are. */
function unchangedIn(old: Plan, plan: Plan): ReadonlySet<number> | undefined {
  if (old.definition === plan.definition) return undefined;
  const isUnchanged = comparison();
  const changed = plan.stages.filter(
    ({ definition }) => !isUnchanged(old.stages[old.indexOf.get(definition.name) ?? -1]?.definition, definition),
  );
  const touched = reachedFrom(changed, plan);
  return new Set(plan.stages.map(({ index }) => index).filter((index) => !touched.has(index)));
}

/** Of stages of two files. What the expansions of a matrix share, hundreds of commands maybe, is compared once for all of them. */
function comparison(): (old: StageDefinition | undefined, definition: StageDefinition) => boolean {
  const known = new WeakMap<object, WeakMap<object, boolean>>();
  const isSamePart = (a: unknown, b: unknown): boolean => {
    if (a === b) return true;
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
    let others = known.get(a);
    if (others === undefined) known.set(a, (others = new WeakMap()));
    const same = others.get(b) ?? isSame(a, b);
    others.set(b, same);
    return same;
  };
  return (old, definition) => {
    if (old === undefined || old === definition) return old === definition;
    const keys = new Set([...Object.keys(old), ...Object.keys(definition)]) as Set<keyof StageDefinition>;
    return [...keys].every((key) => isSamePart(old[key], definition[key]));
  };
}

const before = new WeakMap<Plan, readonly Uint32Array[]>();

/** RERUN-2: the gates before a stage, whatever stands between them. */
export function gatesBefore(plan: Plan, index: number): readonly number[] {
  let known = before.get(plan);
  if (known === undefined) before.set(plan, (known = gateSets(plan)));
  const set = known[index];
  return plan.gates.filter((_, bit) => ((set?.[bit >> 5] ?? 0) & (1 << (bit & 31))) !== 0);
}

/** What has to have ended before the stage is decided: what it comes after, and in a rerun the gates before it (RERUN-2). */
export function dependenciesOf(run: RunState, { index, dependencies }: PlannedStage): readonly number[] {
  const { plan } = run.stages;
  if (plan.gates.length === 0 || run.lineage?.adopts === undefined) return dependencies;
  return [...dependencies, ...gatesBefore(plan, index)];
}

/** By stage, a bit for each gate: a file of few lines may mean millions of dependencies, and each is looked at once. */
function gateSets({ stages, gates }: Plan): readonly Uint32Array[] {
  const bitOf = new Map(gates.map((gate, bit) => [gate, bit]));
  const sets = stages.map(() => new Uint32Array(Math.ceil(gates.length / 32)));
  const left = stages.map(({ dependencies }) => dependencies.length);
  const ready = stages.filter(({ dependencies }) => dependencies.length === 0).map(({ index }) => index);
  for (const index of ready) {
    const own = sets[index] ?? new Uint32Array();
    const bit = bitOf.get(index);
    for (const dependent of stages[index]?.dependents ?? []) {
      const set = sets[dependent] ?? new Uint32Array();
      for (const [word, bits] of own.entries()) set[word] = (set[word] ?? 0) | bits;
      if (bit !== undefined) set[bit >> 5] = (set[bit >> 5] ?? 0) | (1 << (bit & 31));
      left[dependent] = (left[dependent] ?? 0) - 1;
      if (left[dependent] === 0) ready.push(dependent);
    }
  }
  return sets;
}
