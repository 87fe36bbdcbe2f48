/** What changes a run is in the audit log, also where nobody can tell whether it was done. */
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { AuditEntry } from '@penstock/store';
import { API_KEY, graphql, makeWorld, runIdFor, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const YAML = 'pipeline: {name: p}\nstages:\n  gate: {approval: {}}\n  ship: {run: x, after: gate}\n';

async function seed(isEnded: boolean): Promise<string> {
  const id = runIdFor();
  world.owner.adopt(id, YAML, 'service');
  world.owner.commit(id, [{ type: 'gates_queued', at: Date.now(), stages: ['gate'], dueAt: Date.now() + 60_000 }]);
  if (isEnded) world.owner.commit(id, [{ type: 'run_completed', at: Date.now(), status: 'SKIPPED' }]);
  if (isEnded) await world.owner.project(id);
  return id;
}

it.each([
  ['run.cancel', 'cancel', 'cancelPipeline(id: $id) { run { id } }', false, (id: string) => id],
  ['run.approve', 'approve', 'approveRun(id: $id) { id }', false, (id: string) => id],
  ['run.delete', 'delete', 'deleteRun(id: $id)', true, (id: string) => id],
  ['stage.approve', 'decide', 'approveStage(runId: $id, stage: "gate") { name }', false, (id: string) => `${id} gate`],
  ['stage.reject', 'decide', 'rejectStage(runId: $id, stage: "gate") { name }', false, (id: string) => `${id} gate`],
])('%s that its owner does not answer for may have been done all the same', async (...row) => {
  const [action, verb, field, isEnded, targetOf] = row;
  const entries: AuditEntry[] = [];
  const app = await world.gateway({ audit: { record: (entry) => void entries.push(entry), newest: async () => [] } });
  const id = await seed(isEnded);
  world.owner.refusals.set(verb, { code: 'UNAVAILABLE', message: 'it moves' });
  const { errors } = await graphql(app, `mutation ($id: String) { ${field} }`, { token: API_KEY, variables: { id } });
  expect(errors.map(({ extensions }) => extensions['code'])).toEqual(['UNAVAILABLE']);
  expect(entries).toMatchObject([{ actor: 'api-key', action, target: targetOf(id), outcome: 'UNAVAILABLE' }]);
});

it('what is refused is no change, and is not recorded as one', async () => {
  const entries: AuditEntry[] = [];
  const app = await world.gateway({ audit: { record: (entry) => void entries.push(entry), newest: async () => [] } });
  const id = await seed(true);
  const cancel = 'mutation ($id: String) { cancelPipeline(id: $id) { run { id } } }';
  const { errors } = await graphql(app, cancel, { token: API_KEY, variables: { id } });
  expect(errors.map(({ extensions }) => extensions['code'])).toEqual(['CONFLICT']);
  expect(entries).toEqual([]);
});
