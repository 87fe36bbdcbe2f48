/** `deleteRun` (P34). */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AuditRepository } from '@penstock/store';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, makeWorld, runIdFor, type World } from './harness.ts';

let world: World;
let ada: TestUser;
let bob: TestUser;
beforeAll(async () => {
  world = await makeWorld();
  [ada, bob] = await Promise.all([world.auth.login('ada'), world.auth.login('bob')]);
});
afterEach(() => world.reset());
afterAll(() => world.close());

const YAML = 'pipeline: {name: p}\nstages: {a: {run: "true"}}\n';

function seed(tenant = 'service', isEnded = true): string {
  const id = runIdFor(`${tenant}/demo`);
  world.owner.adopt(id, YAML, tenant);
  if (isEnded) world.owner.commit(id, [{ type: 'run_completed', at: Date.now(), status: 'SKIPPED' }]);
  return id;
}

async function stored(tenant = 'service'): Promise<string> {
  const id = seed(tenant);
  await world.owner.project(id);
  return id;
}

type App = Parameters<typeof graphql>[0];

async function remove(app: App, id: string | undefined, token: string | null = API_KEY): Promise<unknown> {
  const document = 'mutation ($id: String) { deleteRun(id: $id) }';
  const { data, errors } = await graphql(app, document, { token, variables: { id } });
  return errors.length === 0 ? data?.['deleteRun'] : errors.map(({ extensions }) => extensions['code']).join();
}

describe('P34: deleteRun', () => {
  it('leaves nothing of the run in any answer, remembered ones included', async () => {
    const app = await world.gateway();
    const [id, other] = [await stored(), await stored()];
    const asked = async (): Promise<unknown> =>
      (await graphql(app, `{ run(id: "${id}") { status } runs(limit: 100) { id } }`, { token: API_KEY })).data;
    const alone = async (): Promise<unknown> =>
      (await graphql(app, `{ run(id: "${id}") { status } }`, { token: API_KEY })).data;
    for (let count = 0; count < 3; count++) {
      expect(await asked()).toMatchObject({ run: { status: 'SKIPPED' } });
      expect(await alone()).toEqual({ run: { status: 'SKIPPED' } });
    }
    expect(await remove(app, id)).toBe(true);
    expect(await asked()).toEqual({ run: null, runs: [{ id: other }] });
    expect(await alone()).toEqual({ run: null });
    const stream = await app.inject({ url: `/pipeline/${id}/logs`, headers: { authorization: `Bearer ${API_KEY}` } });
    expect(stream.statusCode).toBe(404);
    expect(await remove(app, id)).toBe('NOT_FOUND');
  });

  it('is for whoever may cancel the run, and knows no run of another tenant', async () => {
    const app = await world.gateway();
    const own = await stored('user/ada');
    expect(await remove(app, own, null)).toBe('UNAUTHENTICATED');
    expect(await remove(app, own, bob.token)).toBe('NOT_FOUND');
    expect(await remove(app, own)).toBe('NOT_FOUND');
    expect(await remove(app, own, world.auth.personalToken('ada', 'read'))).toBe('FORBIDDEN');
    // Everybody reads the runs of `service`; to delete them they are another tenant's.
    expect(await remove(app, await stored(), ada.token)).toBe('NOT_FOUND');
    expect(world.owner.asked).not.toContain('delete');
    expect(await remove(app, own, world.auth.personalToken('ada', 'read', 'trigger'))).toBe(true);
  });

  it('names what is wrong with what it is asked', async () => {
    const app = await world.gateway();
    expect(await remove(app, undefined)).toBe('BAD_USER_INPUT');
    expect(await remove(app, 'nothing')).toBe('NOT_FOUND');
    expect(await remove(app, runIdFor('service'))).toBe('NOT_FOUND');
    expect(await remove(app, seed('service', false))).toBe('CONFLICT');
  });

  it('asks the owner of one that has not ended by its document: where that is damaged, it never will', async () => {
    const app = await world.gateway();
    const id = seed('service', false);
    expect(await remove(app, id)).toBe('CONFLICT');
    await world.owner.project(id);
    expect(await remove(app, id)).toBe(true);
  });

  it('says what its owner says, and is recorded', async () => {
    const audit = new AuditRepository(world.store, { log: { warn: () => {} } });
    const app = await world.gateway({ audit });
    const id = await stored();
    world.owner.refusals.set('delete', { code: 'UNAVAILABLE', message: 'too many runs are being deleted' });
    expect(await remove(app, id)).toBe('UNAVAILABLE');
    world.owner.refusals.clear();
    expect(await remove(app, id)).toBe(true);
    await audit.close();
    const reader = new AuditRepository(world.store, { log: { warn: () => {} } });
    const entries = await reader.newest(1);
    await reader.close();
    expect(entries).toMatchObject([{ action: 'run.delete', target: id, outcome: 'ok', actor: 'api-key' }]);
  });
});
