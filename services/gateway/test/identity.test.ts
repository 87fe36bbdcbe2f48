import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { loadTiers } from '@penstock/config';
import { newPersonalToken } from '@penstock/identity';
import { answerCalls } from '@penstock/service';
import { AuditRepository } from '@penstock/store';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, makeWorld, runIdFor, YAML, type World } from './harness.ts';

let world: World;
let ada: TestUser;
let bob: TestUser;
let admin: TestUser;
beforeAll(async () => {
  world = await makeWorld();
  [ada, bob, admin] = await Promise.all([
    world.auth.login('ada'),
    world.auth.login('bob', { tier: 'enterprise' }),
    world.auth.login('root', { isAdmin: true }),
  ]);
});
afterEach(() => world.reset());
afterAll(() => world.close());

const ME =
  '{ me { id email tier isAdmin pipelineRunLimit maxConcurrent canUsePrivateExtensions canPublishExtensions } }';
const UNLIMITED = 2_147_483_647;
const TRIGGER = `mutation ($yaml: String) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }`;
const JWT_REQUIRED: Readonly<Record<string, string>> = {
  me: '{ me { id } }',
  usage: '{ usage { metric } }',
  apiTokens: '{ apiTokens { id } }',
  createApiToken: 'mutation { createApiToken(name: "x", scopes: ["read"]) { id } }',
  revokeApiToken: 'mutation { revokeApiToken(id: "x") }',
};

/** What auth was asked, but for the times that are reported to it in batches. */
function asked(): string[] {
  return world.auth.asked.filter((verb) => verb !== 'token.used');
}

function codes(answer: { readonly errors: readonly { readonly extensions: Record<string, unknown> }[] }): unknown[] {
  return answer.errors.map(({ extensions }) => extensions['code']);
}

describe('me', () => {
  it('is the profile of the token, with the limits of its tier', async () => {
    const app = await world.gateway();
    expect((await graphql(app, ME, { token: ada.token })).data).toEqual({
      me: {
        id: 'ada',
        email: 'ada@example.com',
        tier: 'free',
        isAdmin: false,
        pipelineRunLimit: 500,
        maxConcurrent: 3,
        canUsePrivateExtensions: false,
        canPublishExtensions: false,
      },
    });
    expect((await graphql(app, ME, { token: bob.token })).data).toEqual({
      me: {
        id: 'bob',
        email: 'bob@example.com',
        tier: 'enterprise',
        isAdmin: false,
        pipelineRunLimit: UNLIMITED,
        maxConcurrent: UNLIMITED,
        canUsePrivateExtensions: true,
        canPublishExtensions: true,
      },
    });
    expect((await graphql(app, ME, { token: admin.token })).data).toMatchObject({
      me: { tier: 'free', isAdmin: true, canUsePrivateExtensions: true, canPublishExtensions: true },
    });
  });

  it('where a JWT is required, no token, the API key and a personal token of any scope are UNAUTHENTICATED with data null', async () => {
    const app = await world.gateway();
    const personal = world.auth.personalToken('ada', 'read', 'trigger', 'publish');
    for (const [name, query] of Object.entries(JWT_REQUIRED)) {
      for (const token of [null, API_KEY, personal]) {
        const answer = await graphql(app, query, { token });
        expect([name, answer.status, answer.data, codes(answer)]).toEqual([name, 200, null, ['UNAUTHENTICATED']]);
        expect(answer.errors[0]?.message).toMatch(/valid access token is required/u);
      }
    }
  });
});

describe('usage', () => {
  beforeAll(() => {
    answerCalls(world.bus, 'registry', {
      'artifact.usage': ({ key }: { key: string }) => ({ bytes: key === 'user/ada' ? 2_100_000 : 0 }),
    });
  });

  it("is this month's, of the caller's own runs, with the tier's limits", async () => {
    const asked: unknown[] = [];
    const runs = Object.assign(Object.create(world.runs) as typeof world.runs, {
      usage: async (options: unknown) => {
        asked.push(options);
        return { pipelineRuns: 400, concurrentRuns: 3, stageSeconds: 61 };
      },
    });
    const answer = await graphql(
      await world.gateway({ runs }),
      '{ usage { metric total limit percentage status periodStart periodEnd } }',
      { token: ada.token },
    );
    const rows = (answer.data?.['usage'] ?? []) as Record<string, unknown>[];
    expect(rows.map(({ periodStart: _from, periodEnd: _to, ...row }) => row)).toEqual([
      { metric: 'pipeline_runs', total: 400, limit: 500, percentage: 80, status: 'warning' },
      { metric: 'concurrent_runs', total: 3, limit: 3, percentage: 100, status: 'exceeded' },
      { metric: 'stage_minutes', total: 2, limit: UNLIMITED, percentage: 0, status: 'ok' },
      { metric: 'artifact_storage_mb', total: 3, limit: 500, percentage: 0.6, status: 'ok' },
    ]);
    const [row] = rows;
    expect(row?.['periodStart']).toMatch(/^\d{4}-\d\d-01T00:00:00\.000Z$/u);
    expect(Date.parse(String(row?.['periodEnd']))).toBeGreaterThan(Date.now());
    expect(asked).toEqual([{ tenant: 'user/ada', month: String(row?.['periodStart']).slice(0, 7) }]);
  });

  it('of a tenant that has done nothing is zero', async () => {
    const answer = await graphql(await world.gateway(), '{ usage { metric total status } }', { token: bob.token });
    expect(answer.data?.['usage']).toEqual(
      ['pipeline_runs', 'concurrent_runs', 'stage_minutes', 'artifact_storage_mb'].map((metric) => ({
        metric,
        total: 0,
        status: 'ok',
      })),
    );
  });
});

describe('personal tokens', () => {
  const CREATE =
    'mutation ($name: String!, $scopes: [String!]!) { createApiToken(name: $name, scopes: $scopes) { id name token scopes createdAt } }';
  const LIST = '{ apiTokens { id name scopes createdAt lastUsedAt } }';

  it('one is made, used with its scopes, listed without its text, and revoked', async () => {
    world.auth.tokens.clear();
    const app = await world.gateway();
    const made = (
      await graphql(app, CREATE, { token: ada.token, variables: { name: ' ci ', scopes: ['read', 'read'] } })
    ).data?.['createApiToken'] as { id: string; token: string };
    expect(made).toEqual({
      id: expect.any(String),
      name: 'ci',
      token: expect.stringMatching(/^svc_/u),
      scopes: ['read'],
      createdAt: expect.any(String),
    });
    expect((await graphql(app, '{ runs { id } }', { token: made.token })).errors).toEqual([]);
    expect((await graphql(app, LIST, { token: ada.token })).data?.['apiTokens']).toEqual([
      { id: made.id, name: 'ci', scopes: ['read'], createdAt: expect.any(String), lastUsedAt: expect.any(String) },
    ]);
    expect((await graphql(app, LIST, { token: bob.token })).data).toEqual({ apiTokens: [] });

    // Of somebody else's and of an unknown one the answer is the same.
    const foreign = await graphql(app, 'mutation ($id: String!) { revokeApiToken(id: $id) }', {
      token: bob.token,
      variables: { id: made.id },
    });
    const unknown = await graphql(app, 'mutation ($id: String!) { revokeApiToken(id: $id) }', {
      token: bob.token,
      variables: { id: made.id.replace(/./u, (digit) => (digit === '0' ? '1' : '0')) },
    });
    expect(codes(foreign)).toEqual(['NOT_FOUND']);
    expect(foreign).toEqual(unknown);

    expect(
      (
        await graphql(app, 'mutation ($id: String!) { revokeApiToken(id: $id) }', {
          token: ada.token,
          variables: { id: made.id },
        })
      ).data,
    ).toEqual({ revokeApiToken: true });
    expect(codes(await graphql(app, '{ runs { id } }', { token: made.token }))).toEqual(['UNAUTHENTICATED']);
    expect(
      codes(
        await graphql(app, 'mutation ($id: String!) { revokeApiToken(id: $id) }', {
          token: ada.token,
          variables: { id: made.id },
        }),
      ),
    ).toEqual(['NOT_FOUND']);
  });

  it('when it was used last shows in the next list, also right after other tokens were used', async () => {
    world.auth.tokens.clear();
    const app = await world.gateway();
    const made = [];
    for (const name of ['one', 'two', 'three']) {
      const answer = await graphql(app, CREATE, { token: ada.token, variables: { name, scopes: ['trigger', 'read'] } });
      made.push(answer.data?.['createApiToken'] as { token: string; scopes: string[] });
    }
    expect(made.map(({ scopes }) => scopes)).toEqual(Array.from({ length: 3 }, () => ['trigger', 'read']));
    for (const { token } of made.slice(0, 2))
      expect((await graphql(app, '{ runs { id } }', { token })).errors).toEqual([]);
    const lists = await Promise.all(
      [1, 2].map(
        async () => (await graphql(app, '{ apiTokens { lastUsedAt } }', { token: ada.token })).data?.['apiTokens'],
      ),
    );
    expect(lists).toEqual(
      [1, 2].map(() => [{ lastUsedAt: expect.any(String) }, { lastUsedAt: expect.any(String) }, { lastUsedAt: null }]),
    );
  });

  it('an unknown scope, none, an empty name or a missing one is BAD_USER_INPUT, and nobody is asked', async () => {
    const app = await world.gateway();
    const before = asked();
    for (const variables of [
      { name: 'x', scopes: ['write'] },
      { name: 'x', scopes: [] },
      { name: '', scopes: ['read'] },
      { name: ' \t', scopes: ['read'] },
      { name: 'x', scopes: ['read', ''] },
    ]) {
      expect([variables, codes(await graphql(app, CREATE, { token: ada.token, variables }))]).toEqual([
        variables,
        ['BAD_USER_INPUT'],
      ]);
    }
    expect(codes(await graphql(app, 'mutation { createApiToken { id } }', { token: ada.token }))).toEqual([
      'BAD_USER_INPUT',
    ]);
    expect(codes(await graphql(app, 'mutation { revokeApiToken }', { token: ada.token }))).toEqual(['BAD_USER_INPUT']);
    expect(asked()).toEqual(before);
  });

  it('with a wrong checksum it is UNAUTHENTICATED without asking; unknown to auth, after asking once a request', async () => {
    const app = await world.gateway();
    const before = asked().length;
    const token = newPersonalToken();
    expect(codes(await graphql(app, '{ health }', { token: `${token}0` }))).toEqual(['UNAUTHENTICATED']);
    expect(asked().length).toBe(before);
    expect(codes(await graphql(app, '{ health }', { token }))).toEqual(['UNAUTHENTICATED']);
    expect(asked().slice(before)).toEqual(['token']);
  });

  it('with auth away one that is not known here is UNAVAILABLE with retryAfter, others go on', async () => {
    const app = await world.gateway();
    const known = world.auth.personalToken('ada', 'read');
    await graphql(app, '{ health }', { token: known });
    await world.auth.leave();
    expect(await graphql(app, '{ health }', { token: newPersonalToken() })).toMatchObject({
      status: 200,
      data: null,
      errors: [{ extensions: { code: 'UNAVAILABLE', retryAfter: expect.any(Number) } }],
    });
    for (const token of [known, ada.token, API_KEY])
      expect((await graphql(app, '{ health }', { token })).data).toEqual({ health: 'ok' });
    await world.auth.open();
  });
});

describe('what operators see', () => {
  const CONFIG = '{ serverConfig { version mode logLevel apiAuthenticated } }';

  it('serverConfig is for the API key and for an admin who is logged in', async () => {
    const app = await world.gateway({ mode: 'production', logLevel: 'warn' });
    const config = { serverConfig: { version: '0.6.0', mode: 'production', logLevel: 'warn', apiAuthenticated: true } };
    for (const token of [API_KEY, admin.token]) expect((await graphql(app, CONFIG, { token })).data).toEqual(config);
    expect(codes(await graphql(app, CONFIG, { token: null }))).toEqual(['UNAUTHENTICATED']);
    expect(codes(await graphql(app, CONFIG, { token: ada.token }))).toEqual(['FORBIDDEN']);
    expect(
      codes(await graphql(app, CONFIG, { token: world.auth.personalToken('root', 'read', 'trigger', 'publish') })),
    ).toEqual(['UNAUTHENTICATED']);
  });

  it('the audit log has cancels and refusals, no secret, and is for admins', async () => {
    const audit = new AuditRepository(world.store, { log: { warn: () => {} } });
    const app = await world.gateway({ audit });
    const id = runIdFor('user/ada');
    world.owner.adopt(id, YAML, 'user/ada');
    const readToken = world.auth.personalToken('ada', 'read');
    await graphql(app, 'mutation ($id: String) { cancelPipeline(id: $id) { cancelledStages } }', {
      token: ada.token,
      variables: { id },
    });
    await graphql(app, TRIGGER, { token: readToken, variables: { yaml: YAML } });
    await graphql(app, '{ me { id } }', { token: readToken });
    await graphql(app, '{ health }', { token: 'CANARY-not-a-token' });
    await app.inject({ url: `/pipeline/${id}/logs?token=CANARY-not-a-token` });
    await graphql(app, '{ auditLog { at } }', { token: ada.token });
    await audit.close();
    const answer = await graphql(app, '{ auditLog(limit: 6) { at actor action target outcome ip } }', {
      token: admin.token,
    });
    const rows = answer.data?.['auditLog'] as Record<string, unknown>[];
    const tokenId = [...world.auth.tokens.values()].at(-1)?.id;
    expect(rows.map(({ actor, action, target, outcome }) => [actor, action, target, outcome])).toEqual([
      ['user/ada', 'auditLog', '', 'FORBIDDEN'],
      ['unknown', 'authenticate', 'GET /pipeline/:id/logs', 'UNAUTHENTICATED'],
      ['unknown', 'authenticate', 'POST /graphql', 'UNAUTHENTICATED'],
      [`token/${tokenId} of user/ada`, 'me', '', 'UNAUTHENTICATED'],
      [`token/${tokenId} of user/ada`, 'triggerPipeline', '', 'FORBIDDEN'],
      ['user/ada', 'run.cancel', id, 'ok'],
    ]);
    expect(JSON.stringify(rows)).not.toMatch(/CANARY|svc_|eyJ/u);
    expect(rows.every(({ ip, at }) => ip === '127.0.0.1' && typeof at === 'string')).toBe(true);
    for (const token of [null, API_KEY, readToken])
      expect(codes(await graphql(app, '{ auditLog { at } }', { token }))).toEqual(['UNAUTHENTICATED']);
  });

  it('names who was refused by a route of another service on the same server', async () => {
    const recorded: object[] = [];
    const audit = { record: (entry: object) => void recorded.push(entry), newest: async () => [] };
    const refuse = (app: FastifyInstance): void => {
      app.put('/elsewhere', async (request, reply) => {
        request.actor = 'user/ada';
        return await reply.code(403).send({ error: 'forbidden' });
      });
    };
    const app = await world.gateway({ audit, routes: [refuse] });
    await app.inject({ method: 'PUT', url: '/elsewhere', headers: { authorization: `Bearer ${ada.token}` } });
    expect(recorded).toEqual([
      expect.objectContaining({ actor: 'user/ada', target: 'PUT /elsewhere', outcome: 'FORBIDDEN' }),
    ]);
  });

  it('one address cannot fill the audit log, and a burst over its rate is one record', async () => {
    const recorded: { action: string; outcome: string }[] = [];
    const audit = {
      record: (entry: { action: string; outcome: string }) => void recorded.push(entry),
      newest: async () => [],
    };
    const app = await world.gateway({ audit, rateLimits: { read: 50, api: 50, webhook: 50 } });
    for (let request = 0; request < 100; request++) await graphql(app, '{ health }', { token: 'wrong' });
    expect(recorded.filter(({ outcome }) => outcome === 'UNAUTHENTICATED')).toHaveLength(20);
    expect(recorded.filter(({ outcome }) => outcome === 'RATE_LIMITED')).toEqual([
      expect.objectContaining({ action: 'rate-limit', target: 'POST /graphql', ip: '127.0.0.1' }),
    ]);
  });
});

describe('what a user triggers', () => {
  it("belongs to the user's tenant and key, with the limits of its tier", async () => {
    const app = await world.gateway({ tiers: loadTiers() });
    const personal = world.auth.personalToken('ada', 'trigger');
    for (const token of [ada.token, personal, bob.token, admin.token, API_KEY])
      expect((await graphql(app, TRIGGER, { token, variables: { yaml: YAML } })).errors).toEqual([]);
    const limits = { pipelineRunLimit: 500, maxConcurrent: 3, artifactBytes: 500_000_000 };
    expect(world.owner.created.map(({ tenant, key, limits: given }) => ({ tenant, key, limits: given }))).toEqual([
      { tenant: 'user/ada', key: 'user/ada', limits },
      { tenant: 'user/ada', key: 'user/ada', limits },
      { tenant: 'user/bob', key: 'user/bob', limits: undefined },
      { tenant: 'user/root', key: 'user/root', limits },
      { tenant: 'service', key: 'service/demo', limits: undefined },
    ]);
  });

  it('SERVICE_TENANT_TIER gives the tenant service the limits of a tier', async () => {
    const app = await world.gateway({ tenantTier: 'pro' });
    await graphql(app, TRIGGER, { variables: { yaml: YAML } });
    expect(world.owner.created[0]?.limits).toEqual({
      pipelineRunLimit: 5_000,
      maxConcurrent: 20,
      artifactBytes: 10_000_000_000,
    });
  });

  it('over the month it is refused QUOTA_EXCEEDED', async () => {
    const app = await world.gateway();
    world.owner.refusals.set('create', { code: 'QUOTA_EXCEEDED', message: 'The 500 runs of this month are used up.' });
    expect(codes(await graphql(app, TRIGGER, { token: ada.token, variables: { yaml: YAML } }))).toEqual([
      'QUOTA_EXCEEDED',
    ]);
  });

  it('is not to be taken up by another user with its runId', async () => {
    const app = await world.gateway();
    const runId = runIdFor('user/ada');
    const query =
      'mutation ($yaml: String, $runId: String) { triggerPipeline(yaml: $yaml, runId: $runId, waitSeconds: 0) { run { id } } }';
    expect((await graphql(app, query, { token: ada.token, variables: { yaml: YAML, runId } })).data).toEqual({
      triggerPipeline: { run: { id: runId } },
    });
    expect(codes(await graphql(app, query, { token: bob.token, variables: { yaml: YAML, runId } }))).toEqual([
      'BAD_USER_INPUT',
    ]);
  });
});
