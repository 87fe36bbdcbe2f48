/** What a stage that has succeeded may leave in its run: outputs, and stages that it adds. What goes beyond fails it with reason `quota`. */
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import { fitsDecision, NotAdded, planWith } from './added-stages.ts';
import type { ResultCommand } from './commands.ts';
import { hasRoom } from './document-room.ts';
import type { StagesAdded } from './events.ts';
import type { PlannedStage } from './plan.ts';
import { sizeOfOutputs } from './stages.ts';
import type { RunState } from './state.ts';

/** Outputs of one stage, keys and values in UTF-16 units, of which JSON makes six bytes at most: a decision fits its commit (P1). */
export const STAGE_OUTPUTS_MAX = 64 * 1024;

/** Outputs of a whole run, keys and values in UTF-16 units. */
export const RUN_OUTPUTS_MAX = 1024 * 1024;

export function outputsFit(run: RunState, outputs: ResultCommand['outputs']): boolean {
  if (outputs === undefined || Object.keys(outputs).length === 0) return true;
  if (!hasRoom(run, run.stages.plan, outputs)) return false;
  const size = sizeOfOutputs(outputs);
  return size <= STAGE_OUTPUTS_MAX && size + run.stages.outputsSize <= RUN_OUTPUTS_MAX;
}

/** The stages that the result adds; why they cannot join; undefined: it adds none. */
export function joiningOf(
  run: RunState,
  { definition }: PlannedStage,
  { at, added, outputs }: ResultCommand,
): StagesAdded | NotAdded['reason'] | undefined {
  if (added === undefined || definition.generates === undefined) return undefined;
  const { text, bytes, fileBytes, meaning } = added;
  if (text === undefined || meaning === undefined) return 'pipeline_file';
  if (meaning.stages.length === 0) return undefined;
  if ((run.addedBytes ?? 0) + fileBytes + bytes > PIPELINE_LIMITS.runTextsBytesMax) return 'quota';
  const names = meaning.stages.map(({ name }) => name);
  const event: StagesAdded = { type: 'stages_added', at, stage: definition.name, text, bytes, stages: names };
  try {
    const plan = planWith(run.stages.plan, event, meaning);
    return fitsDecision(plan, event, outputs) && hasRoom(run, plan, { ...outputs, text }) ? event : 'quota';
  } catch (error) {
    if (error instanceof NotAdded) return error.reason;
    throw error;
  }
}
