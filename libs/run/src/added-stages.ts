/**
 * Stages that a stage adds to its run (P29). The text stands in `stages_added`; what it means follows from it and from what the run
 * has begun with, so it is made anew wherever the event is applied. A plan does not change: with new stages there is a new one.
 *
 *  ADDED-1 New stages stand behind all others, whose places stay what they were.
 *  ADDED-2 What comes after the adding stage comes after each of the new ones too, and fails or is skipped as they do.
 *  ADDED-3 The whole run keeps the bounds of a file, which are looked at before anything is made of the new stages.
 */
import {
  definitionBytes,
  diagnosticLine,
  parsePipeline,
  PIPELINE_LIMITS,
  type ParseResult,
  type PipelineDefinition,
  type StageDefinition,
} from '@penstock/pipeline';
import { TaggedError } from '@penstock/errors';
import type { RunEvent, StagesAdded } from './events.ts';
import { placesAfter } from './named-places.ts';
import { rememberSums, sumsOf, sumsWith, wantedOf, type PlanSums } from './plan-sums.ts';
import { partsOf, planOf, type Plan, type PlannedStage } from './plan.ts';

/** Of the names of all stages of a run, as JSON: an event that names all of them fits half a commit. */
const NAMES_BYTES_MAX = 440 * 1024;

/** Of what follows from one result, its small events left out of account. */
const DECISION_BYTES_MAX = 860 * 1024;

/** As the parser takes them. */
export type AddedTextOptions = NonNullable<Parameters<typeof parsePipeline>[1]>;

/** Stages that cannot join their run. */
export class NotAdded extends TaggedError {
  readonly tag = 'NotAdded';
  readonly reason: 'pipeline_file' | 'quota';

  constructor(reason: 'pipeline_file' | 'quota', message: string) {
    super(message);
    this.reason = reason;
  }
}

/** How a text that the stage adds is read; undefined: it adds none. */
export function addedTextOptions(plan: Plan, stage: string): AddedTextOptions | undefined {
  const planned = plan.stages[plan.indexOf.get(stage) ?? -1];
  const { generation, inputs = [] } = plan.definition;
  const ceiling = planned?.definition.generates;
  if (planned === undefined || ceiling === undefined || generation === undefined) return undefined;
  const { env, extensions } = generation;
  const taken = plan.stages.map(({ definition }) => definition.name).filter((name) => name.startsWith(`${stage}/`));
  const names = taken.length === 0 ? {} : { taken };
  return { extensions, added: { stage, depth: planned.depth + 1, ceiling, env, inputs, ...names } };
}

interface Meaning {
  readonly before: Plan;
  readonly after: Plan;
}

/** By event: whoever folds a run again finds what its texts mean. */
const meanings = new WeakMap<StagesAdded, Meaning>();

/** The plan with the stages of the event. Reads its text, unless that has been read. Throws NotAdded. */
export function planAfter(plan: Plan, event: StagesAdded): Plan {
  const known = meanings.get(event);
  if (known?.before === plan) return known.after;
  const options = addedTextOptions(plan, event.stage);
  // Of a run that cannot be restored there are the stages that its events name, and nothing is known of what they do.
  if (options === undefined) return plan;
  const parsed = parsePipeline(event.text, { ...options, standing: true });
  if (!parsed.ok) throw new NotAdded('pipeline_file', parsed.diagnostics.map(diagnosticLine).join('\n'));
  return planWith(plan, event, parsed.definition);
}

/** The same where the text has been read with `addedTextOptions`. */
export function planWith(plan: Plan, event: StagesAdded, added: PipelineDefinition): Plan {
  const after = grow(plan, event.stage, added);
  meanings.set(event, { before: plan, after });
  return after;
}

/**
 * Reads what a run's texts mean, in their order, where it holds up nobody: it is known from here on to whoever folds these very
 * events, as long as the plan of `definition` is in memory. Throws NotAdded.
 */
export async function readAdded(
  definition: PipelineDefinition,
  events: readonly RunEvent[],
  read: (text: string, options: AddedTextOptions) => Promise<ParseResult>,
): Promise<void> {
  let plan = planOf(definition);
  for (const event of events) {
    const options = event.type === 'stages_added' ? addedTextOptions(plan, event.stage) : undefined;
    if (event.type !== 'stages_added' || options === undefined) continue;
    const parsed = await read(event.text, { ...options, standing: true });
    if (!parsed.ok) throw new NotAdded('pipeline_file', parsed.diagnostics.map(diagnosticLine).join('\n'));
    plan = planWith(plan, event, parsed.definition);
  }
}

/** The same event with the names of its stages: one that comes out of the journal has none. What it means has to be known. */
export function withNames(event: StagesAdded): StagesAdded {
  const known = meanings.get(event);
  if (known === undefined) return { ...event, stages: event.stages ?? [] };
  const added = known.after.stages.slice(known.before.stages.length);
  const named = { ...event, stages: added.map(({ definition }) => definition.name) };
  meanings.set(named, known);
  return named;
}

/** The same event at another time and in another run, which stands at `plan`: what it means is known, and not read again. Throws NotAdded. */
export function joinedTo(plan: Plan, event: StagesAdded, at: number): StagesAdded {
  const known = meanings.get(event);
  const joined = { ...event, at };
  if (known?.before === plan) meanings.set(joined, known);
  else if (known === undefined) planAfter(plan, joined);
  else {
    const stages = known.after.stages.slice(known.before.stages.length).map(({ definition }) => definition);
    planWith(plan, joined, { name: event.stage, schedule: [], stages });
  }
  return joined;
}

/** The plan with these stages, which that one has added. Throws NotAdded. */
function grow(plan: Plan, stage: string, { stages: added }: PipelineDefinition): Plan {
  const generator = plan.stages[plan.indexOf.get(stage) ?? -1];
  if (generator === undefined) throw new NotAdded('pipeline_file', `there is no stage '${stage}'`);
  const addedBytes = plan.addedBytes + definitionBytes({ name: '', schedule: [], stages: added });
  const entering = added.reduce((sum, { after }) => sum + after.length, 0);
  const waits = new Set(generator.dependents);
  const sums = sumsWith(sumsOf(plan), added, entering + waits.size * added.length);
  checkBounds(plan, generator, added, { sums, addedBytes });
  const first = plan.stages.length;
  const parts = partsOf(added, (name) => plan.indexOf.get(name), first);
  const stages = [...plan.stages];
  for (const [offset, definition] of added.entries()) {
    const { dependencies = [], siblings = [], after } = parts[offset] ?? {};
    stages.push({
      definition,
      index: first + offset,
      dependencies,
      dependents: [...generator.dependents, ...(parts[offset]?.dependents ?? [])],
      siblings,
      labelSet: definition.runsOn.join(','),
      wanted: wantedIn(sums, definition),
      after,
      depth: generator.depth + 1,
    });
  }
  const places = added.map((_, offset) => first + offset);
  const entries = places.filter((place) => stages[place]?.dependencies.includes(generator.index));
  stages[generator.index] = { ...generator, dependents: [...generator.dependents, ...entries] };
  for (const index of waits) {
    const waiting = stages[index];
    if (waiting !== undefined) stages[index] = { ...waiting, dependencies: [...waiting.dependencies, ...places] };
  }
  const indexOf = placesAfter(
    plan.indexOf,
    () => plan.stages.map(({ definition: { name } }) => name),
    added.map(({ name }) => name),
  );
  const gates = places.filter((place) => stages[place]?.definition.approval !== undefined);
  const after = { definition: plan.definition, stages, indexOf, gates: [...plan.gates, ...gates], addedBytes };
  rememberSums(after, sums);
  return after;
}

/** Before anything is made: what the whole run would come to. */
function checkBounds(
  plan: Plan,
  generator: PlannedStage,
  added: readonly StageDefinition[],
  { sums, addedBytes }: { readonly sums: PlanSums; readonly addedBytes: number },
): void {
  const { stagesMax, dependenciesMax, gatesMax, labelSetsMax, labelSetsTextMax, definitionTextMax } = PIPELINE_LIMITS;
  const refuse = (isOver: boolean, what: string): void => {
    if (isOver)
      throw new NotAdded('quota', `with the stages that '${generator.definition.name}' adds the run has ${what}`);
  };
  refuse(plan.stages.length + added.length > stagesMax, `more than ${stagesMax} stages`);
  for (const { name } of added)
    if (plan.indexOf.has(name)) throw new NotAdded('pipeline_file', `there is a stage '${name}' already`);
  refuse(sums.dependencies > dependenciesMax, `more than ${dependenciesMax} dependencies`);
  const gates = plan.gates.length + added.filter(({ approval }) => approval !== undefined).length;
  refuse(gates > gatesMax, `more than ${gatesMax} stages with 'approval'`);
  const labelsText = [...sums.labelSets].reduce((sum, { length }) => sum + length, 0);
  refuse(sums.labelSets.size > labelSetsMax + 1 || labelsText > labelSetsTextMax, 'too many different sets of labels');
  refuse(addedBytes > definitionTextMax, `more than ${definitionTextMax / 1024 / 1024} MiB of added stages`);
  refuse(sums.names > NAMES_BYTES_MAX, 'names that are too long');
}

/** Of a new stage: one that shares a workspace goes to the runner that has it, which must be able to take all that share it. */
function wantedIn(sums: PlanSums, definition: StageDefinition): PlannedStage['wanted'] {
  const shared = definition.workspace === 'shared' ? sums.shared.get(definition.runsOn.join(',')) : undefined;
  return shared?.wanted ?? wantedOf([definition]);
}

/** Whether the result, its text and all that may fall due by it fit one commit (P1). */
export function fitsDecision(
  plan: Plan,
  { bytes }: Pick<StagesAdded, 'bytes'>,
  outputs: Readonly<Record<string, string>> = {},
): boolean {
  return sumsOf(plan).names + bytes + Buffer.byteLength(JSON.stringify(outputs)) <= DECISION_BYTES_MAX;
}
