/** Stages that stages have added (P29): those of the attempt that has succeeded, once, and of no other. */
import type { RunEvent } from '@penstock/run';
import { executions } from '../executions.ts';
import type { JournaledRun } from '../journal.ts';
import { addedBy, type ChaosPipeline, type ChaosStage } from '../pipelines.ts';
import type { Report } from '../violations.ts';

/** All stages that the run is to have: those of its file, and those that were added. */
export function stagesOf(
  run: JournaledRun,
  pipeline: ChaosPipeline,
  runs: ReadonlyMap<string, JournaledRun>,
): readonly ChaosStage[] {
  const added = new Map(
    pipeline.stages.flatMap((stage) => {
      const attempt = stage.adds === undefined ? undefined : attemptThatAdded(run, stage.name, runs);
      return attempt === undefined ? [] : [[stage.name, addedBy(stage, attempt)] as const];
    }),
  );
  if (added.size === 0) return pipeline.stages;
  const all = pipeline.stages.map((stage) => ({
    ...stage,
    after: stage.after.flatMap((name) => [name, ...(added.get(name) ?? []).map((one) => one.name)]),
  }));
  return [...all, ...[...added.values()].flat()];
}

/** As the stage itself counts; in the run that has executed it. */
function attemptThatAdded(
  run: JournaledRun,
  stage: string,
  runs: ReadonlyMap<string, JournaledRun>,
): number | undefined {
  const [first] = run.events;
  for (const event of executions(run.events)) {
    if (event.type === 'stage_completed' && event.stage === stage && event.status === 'SUCCESS') return event.attempt;
    if (event.type !== 'stages_adopted' || !event.adopted.some((one) => one.stage === stage)) continue;
    const parent = first?.type === 'run_created' ? runs.get(first.lineage?.parent ?? '') : undefined;
    return parent === undefined ? undefined : attemptThatAdded(parent, stage, runs);
  }
  return undefined;
}

export function checkAdded(
  events: readonly RunEvent[],
  stages: readonly ChaosStage[],
  executed: ReadonlySet<string>,
  report: Report,
): void {
  for (const { name, adds } of stages) {
    if (adds === undefined) continue;
    const texts = events.filter((event) => event.type === 'stages_added' && event.stage === name);
    const hasSucceeded = stages.some((stage) => stage.name.startsWith(`${name}/`));
    if (texts.length > 1) report('doubled', `${name} added stages ${texts.length} times`);
    if (hasSucceeded && texts.length === 0) report('lost', `the stages that ${name} has added`);
    if (!hasSucceeded && texts.length > 0) report('untrue', `${name} added stages, and never succeeded`);
  }
  const known = new Set(stages.map(({ name }) => name));
  for (const name of executed) if (!known.has(name)) report('doubled', `${name} ran, and is no stage of the run`);
}
