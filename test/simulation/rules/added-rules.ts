/** Stages that stages add (P29), by a run's file, its committed events and what attempts have left: an account apart from the machine's. */
import { parsePipeline } from '@penstock/pipeline';
import { addedTextOptions, isEnded, type RunEvent } from '@penstock/run';
import type { RunTruth } from './run-truth.ts';

/**
 * `run` is as it was before the event, `next` what stands behind that in the same commit, `textOf` what an attempt has left to be
 * added.
 */
export function checkAdded(
  run: RunTruth,
  event: RunEvent,
  next: RunEvent | undefined,
  textOf: (stage: string, attempt: number) => string | undefined,
  fail: (message: string) => void,
  mark: (name: string) => void,
): void {
  if (event.type === 'stage_completed') {
    const added = next?.type === 'stages_added' && next.stage === event.stage ? next : undefined;
    checkCompleted(run, event, added, textOf, fail, mark);
    return;
  }
  if (event.type === 'stages_added') {
    const before = run.events.at(-1);
    const isTakenOver = before?.type === 'stages_adopted' && before.adopted.at(-1)?.stage === event.stage;
    if (
      !isTakenOver &&
      (before?.type !== 'stage_completed' || before.stage !== event.stage || before.status !== 'SUCCESS')
    )
      fail(`stages are added by ${event.stage}, behind ${before?.type ?? 'nothing'}`);
    if (run.state.stages.plan.indexOf.has(`${event.stage}/x0`)) fail(`${event.stage} adds stages twice`);
    return;
  }
  checkWaits(run, event, fail);
}

function checkCompleted(
  run: RunTruth,
  event: Extract<RunEvent, { type: 'stage_completed' }>,
  added: Extract<RunEvent, { type: 'stages_added' }> | undefined,
  textOf: (stage: string, attempt: number) => string | undefined,
  fail: (message: string) => void,
  mark: (name: string) => void,
): void {
  const options = addedTextOptions(run.state.stages.plan, event.stage);
  const text = event.attempt === 0 ? undefined : textOf(event.stage, event.attempt);
  const parsed = options === undefined || text === undefined ? undefined : parsePipeline(text, options);
  if (event.status !== 'SUCCESS') {
    if (added !== undefined) fail(`${event.stage} has not succeeded, and adds stages`);
    if (event.reason === 'pipeline_file') {
      mark('added stages refused');
      if (parsed === undefined || parsed.ok) fail(`${event.stage} adds good stages, and fails for them`);
    }
    return;
  }
  if (parsed !== undefined && !parsed.ok) fail(`${event.stage} succeeds though what it adds is refused`);
  const names = parsed?.ok === true ? parsed.definition.stages.map(({ name }) => name) : [];
  if ((added === undefined) !== (names.length === 0))
    fail(
      `${event.stage} succeeds and adds ${added === undefined ? 'nothing' : 'stages'}, and has left ${names.join(', ')}`,
    );
  if (added === undefined) return;
  mark('stages added');
  if (event.stage.includes('/')) mark('stages added by one that was added');
  if (added.text !== text) fail(`what ${event.stage} adds is not what its attempt ${event.attempt} has left`);
}

/** What comes after a stage starts when all is over that this one has added, by their names alone. */
function checkWaits(run: RunTruth, event: RunEvent, fail: (message: string) => void): void {
  if (event.type !== 'stage_started') return;
  const { plan } = run.state.stages;
  const { after = [] } = plan.stages[plan.indexOf.get(event.stage) ?? -1]?.definition ?? {};
  for (const name of after) {
    if (event.stage.startsWith(`${name}/`)) continue;
    for (const stage of run.state.stages)
      if (stage.name.startsWith(`${name}/`) && !isEnded(stage.status))
        fail(`${event.stage} comes after ${name}, and starts before ${stage.name} has ended`);
  }
}
