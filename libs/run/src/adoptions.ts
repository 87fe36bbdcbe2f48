/** What a rerun takes over from its parent (P30), stage by stage, and whether it has all of it. Pure. */
import type { AdoptedStage, StagesAdded } from './events.ts';
import { isEnded } from './evolve.ts';
import { withAdopted, type GrownPlan, type RepeatedRun } from './grown-plan.ts';
import { stagesIn } from './lineage.ts';
import { planOf } from './plan.ts';
import type { RunState } from './state.ts';

/** Outputs and texts of one commit, as it holds them (P30): what falls due may follow from it there. */
const ADOPTION_BYTES_MAX = 420 * 1024;

/** A stage that is taken over, and what it has added to the parent. */
export interface TakenStage extends AdoptedStage {
  readonly added?: StagesAdded | undefined;
}

/**
 * What is still to be taken over of the parent, which stands as its rerun has read it: a list for each commit. Undefined: it is not the
 * run that was read.
 */
export function adoptionsOf(
  parent: RepeatedRun,
  run: RunState,
  { plan, added } = grownAs(parent, run),
): TakenStage[][] | undefined {
  const { stages } = parent.state;
  const lists: TakenStage[][] = [];
  let room = 0;
  for (const index of stagesIn(run.lineage?.adopts)) {
    const name = plan.stages[index]?.definition.name ?? '';
    if (run.stages.get(run.stages.plan.indexOf.get(name) ?? -1)?.adopted === true) continue;
    const found = stages.get(stages.plan.indexOf.get(name) ?? -1);
    if (found?.status !== 'SUCCESS') return undefined;
    const { outputs, artifacts } = found;
    const adopted = {
      stage: name,
      ...(outputs === undefined ? {} : { outputs }),
      ...(artifacts === undefined ? {} : { artifacts: { ...artifacts, run: artifacts.run ?? parent.state.id } }),
    };
    const text = added.get(name);
    const bytes = Buffer.byteLength(JSON.stringify(adopted)) + 1 + (text?.bytes ?? 0);
    if (lists.length === 0 || bytes > room) {
      lists.push([]);
      room = ADOPTION_BYTES_MAX;
    }
    lists.at(-1)?.push(text === undefined ? adopted : { ...adopted, added: text });
    room -= bytes;
  }
  return lists;
}

/** As it was when the places of the stages that it takes over were written down. */
function grownAs(parent: RepeatedRun, { lineage, stages }: RunState): GrownPlan {
  const wanted = new Set(stagesIn(lineage?.adopts));
  return withAdopted(parent, planOf(stages.plan.definition), ({ index }) => wanted.has(index));
}

/** Nothing of the run goes on before all that it takes over is there. */
export function isAdopting({ status, adoptionsLeft = 0 }: Pick<RunState, 'status' | 'adoptionsLeft'>): boolean {
  return adoptionsLeft > 0 && !isEnded(status);
}
