/**
 * Runs that repeat others (P30): what they take over has succeeded in their parent, is just what the wish leaves, says the same, and
 * never runs again; it stands before anything is granted. The parent is what it was, and each names the other.
 */
import type { RunEvent } from '@penstock/run';
import type { JournaledRun } from '../journal.ts';
import type { Mark } from '../marks.ts';
import { INPUT, type ChaosPipeline } from '../pipelines.ts';
import type { Report } from '../violations.ts';
import type { Rerun, ShownLineage } from '../steered.ts';

export interface LineageEvidence {
  readonly runs: ReadonlyMap<string, JournaledRun>;
  /** Of this run, by stage. */
  readonly marks: ReadonlyMap<string, readonly Mark[]>;
  /** By run; those that were asked for. */
  readonly shown: ReadonlyMap<string, ShownLineage | null>;
}

type Outputs = Readonly<Record<string, string>>;

export function checkRerun(
  run: JournaledRun,
  { parent: parentId, wish }: Rerun,
  pipeline: ChaosPipeline,
  { runs, marks, shown }: LineageEvidence,
  report: Report,
): void {
  const [first] = run.events;
  const parent = runs.get(parentId);
  if (first?.type !== 'run_created' || parent === undefined) return report('lost', `its parent ${parentId}`);
  const { lineage } = first;
  if (lineage === undefined) return report('untrue', `it repeats ${parentId}, and names no parent`);
  const root = rootOf(parent);
  if (lineage.parent !== parentId) report('untrue', `it repeats ${parentId}, and names ${lineage.parent}`);
  if (lineage.root !== root) report('untrue', `its lineage began with ${root}, and it names ${lineage.root}`);
  if (wish.edited !== undefined && lineage.edited !== true)
    report('untrue', 'it has another file, and does not say so');
  for (const { key, value } of wish.inputs ?? [])
    if (first.inputs?.[key] !== value) report('untrue', `its input '${key}' is ${first.inputs?.[key] ?? 'none'}`);
  if (wish.inputs === undefined && first.inputs !== undefined && first.inputs[INPUT.name] !== inputOf(parent))
    report('untrue', `its input '${INPUT.name}' is not its parent's`);
  checkShown(run.id, parentId, root, shown, report);
  const before = succeededIn(parent.events.slice(0, lineage.version));
  const adopted = adoptedIn(run.events);
  checkAdopted(run.events, adopted, before, marks, report);
  const names = new Set(adopted.map(({ stage }) => stage));
  const wanted = wantedOf(pipeline, before, wish);
  for (const name of names) {
    const [generator = name] = name.split('/');
    if (!wanted.has(generator)) report('untrue', `it has taken over ${name}, which was to run again`);
  }
  const addsStages = pipeline.stages.some(({ adds }) => adds !== undefined);
  // It may have been refused, cancelled, or have failed before it could take over anything.
  if (addsStages || !run.events.some(({ type }) => type === 'stage_started')) return;
  for (const name of wanted) if (!names.has(name)) report('untrue', `it has not taken over ${name}`);
}

function checkShown(id: string, parentId: string, root: string, shown: LineageEvidence['shown'], report: Report): void {
  const own = shown.get(id);
  if (own !== undefined && (own?.parentRunId !== parentId || own.rootRunId !== root))
    report('answer', `it repeats ${parentId} of ${root}, and a client is shown ${JSON.stringify(own)}`);
  const ofParent = shown.get(parentId);
  if (ofParent !== undefined && ofParent?.children.includes(id) !== true)
    report('answer', `${parentId} does not show it among those that repeat it`);
}

/** Once each, with what the parent's say, before anything is granted; and none of them runs. */
function checkAdopted(
  events: readonly RunEvent[],
  adopted: readonly { readonly stage: string; readonly outputs?: Outputs | undefined }[],
  before: ReadonlyMap<string, Outputs | undefined>,
  marks: LineageEvidence['marks'],
  report: Report,
): void {
  const firstGrant = events.findIndex(({ type }) => type === 'stage_started');
  const lastAdoption = events.findLastIndex(({ type }) => type === 'stages_adopted');
  if (firstGrant >= 0 && lastAdoption > firstGrant) report('order', 'it took over stages after the first had started');
  for (const [name, all] of Map.groupBy(adopted, ({ stage }) => stage)) {
    if (all.length > 1) report('doubled', `${name} was taken over ${all.length} times`);
    if (!before.has(name)) report('untrue', `${name} was taken over, and had not succeeded`);
    else if (textOf(all[0]?.outputs) !== textOf(before.get(name)))
      report('untrue', `${name} was taken over with ${textOf(all[0]?.outputs)}, not ${textOf(before.get(name))}`);
    const runs = marks.has(name) || events.some((event) => event.type === 'stage_started' && event.stage === name);
    if (runs) report('doubled', `${name} was taken over, and ran`);
  }
}

/** What is left by the wish of what has succeeded: RERUN-1 to 3 of libs/run, made again from the files alone. */
function wantedOf(
  { stages }: ChaosPipeline,
  before: ReadonlyMap<string, Outputs | undefined>,
  { from = [], onlyFailed = false, edited }: Rerun['wish'],
): ReadonlySet<string> {
  if (from.length === 0 && !onlyFailed) return new Set();
  const again = new Set([...from, ...(edited === undefined ? [] : [edited])]);
  // In the order of the file nothing stands before what it comes after.
  for (const { name, after } of stages)
    if ((onlyFailed && !before.has(name)) || after.some((one) => again.has(one))) again.add(name);
  const wanted = new Set(stages.flatMap(({ name }) => (before.has(name) && !again.has(name) ? [name] : [])));
  // A gate before anything that executes is asked again.
  const executing = new Set(
    stages.flatMap(({ name, gate }) => (gate === undefined && !wanted.has(name) ? [name] : [])),
  );
  for (const stage of stages.toReversed()) {
    if (!executing.has(stage.name)) continue;
    for (const name of stage.after) executing.add(name);
  }
  for (const { name, gate } of stages) if (gate !== undefined && executing.has(name)) wanted.delete(name);
  return wanted;
}

/** By name: what each stage has published that has succeeded, or was taken over. */
export function succeededIn(events: readonly RunEvent[]): ReadonlyMap<string, Outputs | undefined> {
  const succeeded = new Map<string, Outputs | undefined>();
  for (const event of events) {
    if (event.type === 'stage_completed' && event.status === 'SUCCESS') succeeded.set(event.stage, event.outputs);
    if (event.type === 'stages_adopted') for (const { stage, outputs } of event.adopted) succeeded.set(stage, outputs);
  }
  return succeeded;
}

export function adoptedIn(
  events: readonly RunEvent[],
): readonly { readonly stage: string; readonly outputs?: Outputs | undefined }[] {
  return events.flatMap((event) => (event.type === 'stages_adopted' ? event.adopted : []));
}

function rootOf(parent: JournaledRun): string {
  const [first] = parent.events;
  return (first?.type === 'run_created' ? first.lineage?.root : undefined) ?? parent.id;
}

function inputOf(parent: JournaledRun): string | undefined {
  const [first] = parent.events;
  return first?.type === 'run_created' ? first.inputs?.[INPUT.name] : undefined;
}

function textOf(outputs: Outputs | undefined): string {
  return JSON.stringify(Object.entries(outputs ?? {}).toSorted());
}
