/**
 * Runs that begin from another run (P30): which of its stages a rerun takes over, and what of them. Pure, and decided once, by the
 * owner that creates the rerun: from then on `run_created` says it.
 *
 *  RERUN-1 Only a stage that has succeeded is taken over; every other one is decided anew, skipped ones too.
 *  RERUN-2 A gate before anything that executes is decided anew, and what executes waits for it, whatever stands between them.
 *  RERUN-3 With another file a stage is taken over only where its definition and those of all before it are the same.
 */
import type { AdoptedStage } from './events.ts';
import { isEnded } from './evolve.ts';
import { stagesIn } from './lineage.ts';
import type { Plan, PlannedStage } from './plan.ts';
import type { RunState } from './state.ts';

/** What of the parent is to run again; neither: all of it. */
export interface RerunWish {
  /** These and all that comes after them; the name of a matrix or of an extension means all of it. */
  readonly from?: readonly string[] | undefined;
  /** What has not succeeded, and all that comes after it. */
  readonly onlyFailed?: boolean | undefined;
}

/** Who began its runs are all asked at a gate with `prevent_self`: more different people than this do not rerun each other's runs. */
export const LINEAGE_ACTORS_MAX = 100;

/** An event's part of a commit, as JSON (P30). */
const ADOPTION_BYTES_MAX = 500 * 1024;

export type Adoption =
  | { readonly ok: true; readonly stages: readonly number[] }
  | { readonly ok: false; readonly code: 'BAD_USER_INPUT' | 'CONFLICT'; readonly message: string };

/** Which stages of `plan` a rerun takes over from its parent as it stands. */
export function adoptionOf(parent: RunState, plan: Plan, wish: RerunWish): Adoption {
  const old = parent.stages.plan;
  const again = namesAgain(parent, plan, wish);
  if (!again.ok) return again;
  const unchanged = old.definition === plan.definition ? undefined : unchangedIn(old, plan);
  const adopted = new Set<number>();
  for (const { index, definition } of plan.stages) {
    const isThere = parent.stages.statusOf(old.indexOf.get(definition.name) ?? -1) === 'SUCCESS';
    if (isThere && !again.stages.has(index) && unchanged?.has(index) !== false) adopted.add(index);
  }
  const executing = plan.stages.filter(
    ({ index, definition }) => !adopted.has(index) && definition.approval === undefined,
  );
  const before = reachedFrom(executing, (stage) => stage.dependencies, plan);
  for (const gate of plan.gates) if (before.has(gate)) adopted.delete(gate);
  if (adopted.size === plan.stages.length)
    return {
      ok: false,
      code: 'CONFLICT',
      message: 'there is nothing to run again: every stage of the run has succeeded',
    };
  return { ok: true, stages: [...adopted].toSorted((a, b) => a - b) };
}

function namesAgain(
  parent: RunState,
  plan: Plan,
  { from = [], onlyFailed }: RerunWish,
): Extract<Adoption, { ok: false }> | { readonly ok: true; readonly stages: ReadonlySet<number> } {
  if (from.length > 0 && onlyFailed === true)
    return { ok: false, code: 'BAD_USER_INPUT', message: "'from' and 'onlyFailed' exclude each other" };
  const first: PlannedStage[] = [];
  const byName = from.length === 0 ? new Map<string, PlannedStage[]>() : stagesByName(plan);
  for (const name of new Set(from)) {
    const named = byName.get(name);
    if (named === undefined)
      return {
        ok: false,
        code: 'BAD_USER_INPUT',
        message: `'from': the pipeline has no stage '${name.slice(0, 200)}'`,
      };
    first.push(...named);
  }
  const { stages } = parent;
  const hasSucceeded = ({ definition }: PlannedStage): boolean =>
    stages.statusOf(stages.plan.indexOf.get(definition.name) ?? -1) === 'SUCCESS';
  if (from.length === 0) first.push(...plan.stages.filter((stage) => onlyFailed !== true || !hasSucceeded(stage)));
  // What stages have added to the parent was read there: they run again, and so does all that comes after them.
  first.push(...plan.stages.filter(({ definition }) => definition.generates !== undefined));
  return { ok: true, stages: reachedFrom(first, (stage) => stage.dependents, plan) };
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

/** These, and all that can be reached from them. */
function reachedFrom(
  first: readonly PlannedStage[],
  next: (stage: PlannedStage) => readonly number[],
  plan: Plan,
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

/** RERUN-3. */
function unchangedIn(old: Plan, plan: Plan): ReadonlySet<number> {
  const changed = plan.stages.filter(({ definition }) => {
    const before = old.stages[old.indexOf.get(definition.name) ?? -1]?.definition;
    return before === undefined || (before !== definition && JSON.stringify(before) !== JSON.stringify(definition));
  });
  const touched = reachedFrom(changed, (stage) => stage.dependents, plan);
  return new Set(plan.stages.map(({ index }) => index).filter((index) => !touched.has(index)));
}

/**
 * What is still to be taken over of the parent, which stands as its rerun has read it: a list for each event. Undefined: it is not the
 * run that was read.
 */
export function adoptionsOf(parent: RunState, run: RunState): AdoptedStage[][] | undefined {
  const { plan } = run.stages;
  const lists: AdoptedStage[][] = [];
  let room = 0;
  for (const index of stagesIn(run.lineage?.adopts)) {
    if (run.stages.get(index)?.adopted === true) continue;
    const name = plan.stages[index]?.definition.name ?? '';
    const found = parent.stages.get(parent.stages.plan.indexOf.get(name) ?? -1);
    if (found?.status !== 'SUCCESS') return undefined;
    const { outputs, artifacts } = found;
    const adopted = {
      stage: name,
      ...(outputs === undefined ? {} : { outputs }),
      ...(artifacts === undefined ? {} : { artifacts: { ...artifacts, run: artifacts.run ?? parent.id } }),
    };
    const bytes = Buffer.byteLength(JSON.stringify(adopted)) + 1;
    if (lists.length === 0 || bytes > room) {
      lists.push([]);
      room = ADOPTION_BYTES_MAX;
    }
    lists.at(-1)?.push(adopted);
    room -= bytes;
  }
  return lists;
}

/** Nothing of the run goes on before all that it takes over is there. */
export function isAdopting({ status, adoptionsLeft = 0 }: Pick<RunState, 'status' | 'adoptionsLeft'>): boolean {
  return adoptionsLeft > 0 && !isEnded(status);
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
