/** A gateway whose runs cost much to read. */
import type { StageView } from '@penstock/run';
import { makeWorld, runIdFor, YAML, type World } from './harness.ts';

export const STAGES = 2_000;
export const RUNS = 40;

export const FULL =
  'id pipelineName status startedAt finishedAt stages { name status startedAt finishedAt outputs { key value } }';

/** `ids` are those of its runs, the oldest first. */
export async function makeCostlyWorld(): Promise<{ readonly world: World; readonly ids: readonly string[] }> {
  const world = await makeWorld();
  const ids: string[] = [];
  const stages = Array.from({ length: STAGES }, (_, index): StageView => ({
    name: `test (shard=${index})`,
    status: 'SUCCESS',
    startedAt: '2026-11-21T12:00:00.001Z',
    finishedAt: '2026-11-21T12:00:10.001Z',
    outputs: [{ key: 'report', value: `reports/${index}.xml` }],
    reason: null,
    exitCode: 0,
    attempt: 1,
  }));
  for (let count = 0; count < RUNS; count++) {
    const id = runIdFor();
    ids.push(id);
    world.owner.adopt(id, YAML);
    const document = world.owner.document(id);
    const view = { ...document.view, status: 'SUCCESS', stages } as const;
    await world.runs.saveBatch([{ ...document, state: { ...document.state, status: 'SUCCESS' }, view }]);
  }
  await world.reset();
  return { world, ids };
}
