/** Who may make, list and revoke runner tokens; auth is asked for all of it. */
import type { BusSubscription } from '@penstock/bus';
import { answerCalls } from '@penstock/service';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, makeWorld, type World } from './harness.ts';

const CREATE =
  'mutation { createRunnerToken(labels: ["gpu"], expires: "90d", name: "rack") { id token labels untrusted expiresAt } }';
const LIST =
  '{ runnerTokens { id name labels untrusted tenant createdAt expiresAt runners { id name admittedUntil } } }';
const REVOKE = 'mutation { revokeRunnerToken(id: "t1") }';
const ADMIN_KEY = 'test-admin-key-of-forty-characters-at-least';
const AT = '2026-01-01T00:00:00.000Z';
const INFO = {
  id: 't1',
  name: 'rack',
  labels: ['gpu'],
  untrusted: false,
  tenant: null,
  createdAt: AT,
  expiresAt: null,
};
const LISTED = { ...INFO, runners: [{ id: 'fr_1', name: 'box', admittedUntil: AT }] };

let world: World;
let boss: TestUser;
let ada: TestUser;
let answering: BusSubscription;
const asked: { readonly verb: string; readonly request: unknown }[] = [];

beforeAll(async () => {
  world = await makeWorld();
  boss = await world.auth.login('boss', { isAdmin: true });
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
    'runner-tokens.create': answer('create', { ...INFO, token: 'rt_x' }),
    'runner-tokens.list': answer('list', { tokens: [LISTED] }),
    'runner-tokens.revoke': answer('revoke', { revoked: true }),
  });
  await world.bus.flush();
});
afterEach(async () => {
  answering.stop();
  await world.reset();
});
afterAll(() => world.close());

describe('runner tokens', { timeout: 60_000 }, () => {
  it('are made, listed and revoked by an admin who is logged in', async () => {
    const app = await world.gateway({ mode: 'production' });
    expect((await graphql(app, CREATE, { token: boss.token })).data).toEqual({
      createRunnerToken: { id: 't1', token: 'rt_x', labels: ['gpu'], untrusted: false, expiresAt: null },
    });
    expect(asked.at(-1)?.request).toEqual({
      name: 'rack',
      labels: ['gpu'],
      untrusted: false,
      expires: '90d',
      actor: 'user/boss',
      ip: expect.any(String),
    });
    expect((await graphql(app, LIST, { token: boss.token })).data).toEqual({ runnerTokens: [LISTED] });
    expect((await graphql(app, REVOKE, { token: boss.token })).data).toEqual({ revokeRunnerToken: true });
    expect(asked.at(-1)?.request).toMatchObject({ id: 't1', actor: 'user/boss' });
  });

  it('are refused to who is not logged in, to the API key in production mode too, and to every personal token', async () => {
    const app = await world.gateway({ mode: 'production' });
    const personal = world.auth.personalToken('boss', 'read', 'trigger', 'publish', 'secrets');
    const adas = world.auth.personalToken('ada', 'read', 'trigger', 'publish', 'secrets');
    for (const query of [CREATE, LIST, REVOKE])
      for (const [token, code] of [
        [API_KEY, 'UNAUTHENTICATED'],
        [personal, 'UNAUTHENTICATED'],
        [adas, 'UNAUTHENTICATED'],
        [null, 'UNAUTHENTICATED'],
      ] as const) {
        const { errors } = await graphql(app, query, { token });
        expect(errors.map(({ extensions }) => extensions['code'])).toEqual([code]);
      }
    expect(asked).toEqual([]);
  });

  it.each([
    ['the API key in development mode', { mode: 'development' }, API_KEY],
    ['the administration key', { mode: 'production', adminKey: ADMIN_KEY }, ADMIN_KEY],
  ] as const)('are given to %s', async (_who, options, token) => {
    const app = await world.gateway(options);
    for (const query of [CREATE, LIST, REVOKE]) expect((await graphql(app, query, { token })).errors).toEqual([]);
    expect(asked.map(({ verb }) => verb)).toEqual(['create', 'list', 'revoke']);
  });

  it("are a user's own: made, listed and revoked for its own runs alone", async () => {
    const app = await world.gateway({ mode: 'production' });
    for (const query of [CREATE, LIST, REVOKE])
      expect((await graphql(app, query, { token: ada.token })).errors).toEqual([]);
    expect(asked.map(({ verb, request }) => [verb, (request as { tenant?: string }).tenant])).toEqual([
      ['create', 'user/ada'],
      ['list', 'user/ada'],
      ['revoke', 'user/ada'],
    ]);
  });

  it("are made for another's runs, or for everybody's, by administrators only", async () => {
    const app = await world.gateway({ mode: 'production' });
    const create = (tenant: string) => `mutation { createRunnerToken(tenant: "${tenant}") { id tenant } }`;
    expect((await graphql(app, create('user/ada'), { token: ada.token })).errors).toEqual([]);
    for (const tenant of ['user/boss', 'service', 'user/', '']) {
      const { errors } = await graphql(app, create(tenant), { token: ada.token });
      expect(errors.map(({ extensions }) => extensions['code'])).toEqual(['FORBIDDEN']);
    }
    expect((await graphql(app, create('user/ada'), { token: boss.token })).errors).toEqual([]);
    expect((await graphql(app, CREATE, { token: boss.token })).errors).toEqual([]);
    expect(asked.map(({ request }) => (request as { tenant?: string }).tenant)).toEqual([
      'user/ada',
      'user/ada',
      undefined,
    ]);
  });
});
