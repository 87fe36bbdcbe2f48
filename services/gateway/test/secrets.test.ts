/** Who may set, list and delete the secrets of which tenant; auth is asked for all of it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { answerCalls } from '@penstock/service';
import type { BusSubscription } from '@penstock/bus';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, makeWorld, type World } from './harness.ts';

const SET =
  'mutation ($name: String, $value: String, $repository: String, $pipeline: String, $refs: [String]) { setSecret(name: $name, value: $value, repository: $repository, pipeline: $pipeline, refs: $refs) { name refs } }';
const DELETE = 'mutation { deleteSecret(name: "A") }';
const LIST = '{ secrets { name repository pipeline refs createdAt updatedAt lastUsedAt } }';
const INFO = {
  name: 'A',
  repository: null,
  pipeline: null,
  refs: ['main'],
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: '2026-01-01T00:00:00.000Z',
  lastUsedAt: null,
};

let world: World;
let ada: TestUser;
let answering: BusSubscription;
const asked: { readonly verb: string; readonly request: Record<string, unknown> }[] = [];
beforeAll(async () => {
  world = await makeWorld();
  ada = await world.auth.login('ada');
});
beforeEach(async () => {
  asked.length = 0;
  const answer =
    (verb: string, value: unknown) =>
    (request: never): unknown => {
      asked.push({ verb, request });
      return value;
    };
  answering = answerCalls(world.bus, 'auth', {
    'secrets.set': answer('secrets.set', INFO),
    'secrets.delete': answer('secrets.delete', { deleted: true }),
    'secrets.list': answer('secrets.list', { secrets: [INFO] }),
  });
  await world.bus.flush();
});
afterEach(async () => {
  answering.stop();
  await world.reset();
});
afterAll(() => world.close());

describe('secrets', () => {
  it('of a user are those of its tenant, those of the API key those of the service', async () => {
    const app = await world.gateway();
    const variables = { name: 'A', value: ' with blanks \n', repository: 'git_host_a/a/b', refs: ['main'] };
    expect((await graphql(app, SET, { token: ada.token, variables })).data).toEqual({
      setSecret: { name: 'A', refs: ['main'] },
    });
    expect(asked.at(-1)).toEqual({
      verb: 'secrets.set',
      request: { ...variables, tenant: 'user/ada', actor: 'user/ada', ip: expect.any(String) },
    });
    expect((await graphql(app, LIST, { token: API_KEY })).data).toEqual({ secrets: [INFO] });
    expect(asked.at(-1)).toEqual({ verb: 'secrets.list', request: { tenant: 'service' } });
    expect((await graphql(app, DELETE, { token: API_KEY })).data).toEqual({ deleteSecret: true });
    expect(asked.at(-1)?.request).toMatchObject({ tenant: 'service', name: 'A', actor: 'api-key' });
  });

  it('take a personal token with the scope secrets, and no other', async () => {
    const app = await world.gateway();
    const without = world.auth.personalToken('ada', 'read', 'trigger', 'publish');
    const having = world.auth.personalToken('ada', 'secrets');
    for (const query of [LIST, DELETE, 'mutation { setSecret(name: "A", value: "abcd") { name } }']) {
      const refused = await graphql(app, query, { token: without });
      expect(refused.errors.map(({ extensions }) => extensions['code'])).toEqual(['FORBIDDEN']);
      const anonymous = await graphql(app, query, { token: null });
      expect(anonymous.errors.map(({ extensions }) => extensions['code'])).toEqual(['UNAUTHENTICATED']);
    }
    expect(asked).toEqual([]);
    expect((await graphql(app, LIST, { token: having })).errors).toEqual([]);
    expect(asked).toEqual([{ verb: 'secrets.list', request: { tenant: 'user/ada' } }]);
  });

  it('need a name and a value', async () => {
    const app = await world.gateway();
    for (const variables of [{ name: 'A' }, { value: 'abcd' }]) {
      const { errors } = await graphql(app, SET, { token: ada.token, variables });
      expect(errors.map(({ extensions }) => extensions['code'])).toEqual(['BAD_USER_INPUT']);
    }
    expect(asked).toEqual([]);
  });
});
