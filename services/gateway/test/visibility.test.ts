/** Who sees which runs, by every query, mutation and stream: decisions.md, "Who sees which runs", as a table. */
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunsReader } from '@penstock/store';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';

let world: World;
const tokens: Record<string, string | null> = {};
let users: Record<string, TestUser>;
beforeAll(async () => {
  world = await makeWorld();
  users = {
    ada: await world.auth.login('ada'),
    bob: await world.auth.login('bob'),
    root: await world.auth.login('root', { isAdmin: true }),
  };
  Object.assign(tokens, {
    anonymous: null,
    'API key': API_KEY,
    ada: users['ada']?.token,
    bob: users['bob']?.token,
    admin: users['root']?.token,
    "ada's read token": world.auth.personalToken('ada', 'read'),
    "ada's trigger token": world.auth.personalToken('ada', 'trigger'),
    "ada's full token": world.auth.personalToken('ada', 'read', 'trigger', 'publish'),
    "admin's full token": world.auth.personalToken('root', 'read', 'trigger', 'publish'),
  });
});
afterEach(() => world.reset());
afterAll(() => world.close());

type Tenant = 'service' | 'user/ada' | 'user/bob' | 'user/root';
const TENANTS: readonly Tenant[] = ['service', 'user/ada', 'user/bob', 'user/root'];
type Refused = 'UNAUTHENTICATED' | 'FORBIDDEN';

interface Expected {
  /** Whose runs it sees while reading is public, and while it is not. */
  readonly open: readonly Tenant[] | Refused;
  readonly closed: readonly Tenant[] | Refused;
  /** Which count as its own. */
  readonly own: Tenant | null;
  /** Whose runs it may cancel. */
  readonly cancels: readonly Tenant[] | Refused;
}

const TABLE: Record<string, Expected> = {
  anonymous: { open: ['service'], closed: 'UNAUTHENTICATED', own: 'service', cancels: 'UNAUTHENTICATED' },
  'API key': { open: ['service'], closed: ['service'], own: 'service', cancels: ['service'] },
  ada: { open: ['service', 'user/ada'], closed: ['user/ada'], own: 'user/ada', cancels: ['user/ada'] },
  bob: { open: ['service', 'user/bob'], closed: ['user/bob'], own: 'user/bob', cancels: ['user/bob'] },
  admin: {
    open: ['service', 'user/root'],
    closed: ['service', 'user/root'],
    own: 'user/root',
    cancels: ['service', 'user/root'],
  },
  "ada's read token": { open: ['service', 'user/ada'], closed: ['user/ada'], own: 'user/ada', cancels: 'FORBIDDEN' },
  "ada's trigger token": { open: 'FORBIDDEN', closed: 'FORBIDDEN', own: null, cancels: ['user/ada'] },
  "ada's full token": { open: ['service', 'user/ada'], closed: ['user/ada'], own: 'user/ada', cancels: ['user/ada'] },
  "admin's full token": {
    open: ['service', 'user/root'],
    closed: ['service', 'user/root'],
    own: 'user/root',
    cancels: ['service', 'user/root'],
  },
};

type Runs = Readonly<Record<Tenant, { readonly live: string; readonly ended: string }>>;

/** Of each tenant a run that its owner has in memory, and one that is in the store only. */
async function makeRuns(): Promise<Runs> {
  const made = await Promise.all(
    TENANTS.map(async (tenant) => {
      const key = tenant === 'service' ? 'service/demo' : tenant;
      const [live, ended] = [runIdFor(key), runIdFor(key)];
      for (const id of [live, ended]) {
        world.owner.adopt(id, YAML, tenant);
        world.owner.commit(id, [
          happened.queued('build'),
          happened.started('build'),
          happened.completed('build', 0, { outputs: { of: tenant } }),
        ]);
      }
      world.owner.commit(ended, [
        happened.queued('test'),
        happened.started('test'),
        happened.completed('test'),
        happened.runCompleted(),
      ]);
      await world.owner.project(ended);
      return [tenant, { live, ended }] as const;
    }),
  );
  return Object.fromEntries(made) as Runs;
}

async function ask(
  app: FastifyInstance,
  caller: string,
  query: string,
  id?: string,
): Promise<{ readonly code: unknown; readonly data: Record<string, unknown> | null }> {
  const answer = await graphql(app, query, {
    token: tokens[caller] ?? null,
    ...(id === undefined ? {} : { variables: { id } }),
  });
  return { code: answer.errors[0]?.extensions['code'] ?? null, data: answer.data };
}

const RUN = 'query ($id: String) { run(id: $id) { id } }';
const ARTIFACTS = 'query ($id: String) { artifacts(run_id: $id) { value } }';
const CANCEL = 'mutation ($id: String) { cancelPipeline(id: $id) { run { id status } } }';
const TICKET = 'mutation ($id: String) { createStreamTicket(runId: $id) }';

describe('who sees which runs', () => {
  for (const [caller, expected] of Object.entries(TABLE)) {
    it(`${caller} sees what the table says, with reading public and not`, async () => {
      const runs = await makeRuns();
      for (const publicRead of [true, false]) {
        const app = await world.gateway({ publicRead });
        const sees = publicRead ? expected.open : expected.closed;
        const where = { caller, publicRead };
        await (typeof sees === 'string'
          ? expectNoSight(app, where, sees, runs)
          : expectSight(app, where, sees, runs, expected.own));
        await expectStreams(app, where, sees, runs);
      }
    });

    it(`${caller}: what it may cancel, and watch by a ticket`, async () => {
      const runs = await makeRuns();
      const app = await world.gateway();
      for (const tenant of TENANTS) {
        const { live, ended } = runs[tenant];
        const may = typeof expected.cancels !== 'string' && expected.cancels.includes(tenant);
        // Another tenant's run is not found, also where it may be read.
        const refusal = typeof expected.cancels === 'string' ? expected.cancels : 'NOT_FOUND';
        const ticket =
          caller === 'anonymous'
            ? 'UNAUTHENTICATED'
            : typeof expected.open === 'string'
              ? expected.open
              : expected.open.includes(tenant)
                ? null
                : 'NOT_FOUND';
        expect([tenant, (await ask(app, caller, TICKET, live)).code]).toEqual([tenant, ticket]);
        expect([tenant, (await ask(app, caller, CANCEL, ended)).code]).toEqual([tenant, may ? 'CONFLICT' : refusal]);
        expect({ tenant, ...(await ask(app, caller, CANCEL, live)) }).toEqual({
          tenant,
          code: may ? null : refusal,
          data: may ? { cancelPipeline: { run: { id: live, status: 'CANCELLED' } } } : null,
        });
      }
    });
  }

  it('two users and the API key at once, by every query: nothing of one is ever in an answer to another', async () => {
    const runs = await makeRuns();
    const app = await world.gateway({ publicRead: false });
    const query = `query ($id: String) { runs(limit: 100) { id stages { outputs { value } } } run(id: $id) { id } artifacts(run_id: $id) { value } pipelineHealth(pipelineName: "demo") { totalRuns } }`;
    const allowed: Record<string, Tenant> = { ada: 'user/ada', bob: 'user/bob', 'API key': 'service' };
    const ids = TENANTS.flatMap((tenant) => [runs[tenant].live, runs[tenant].ended]);
    await Promise.all(
      Object.entries(allowed).flatMap(([caller, own]) =>
        ids.map(async (id) => {
          const text = JSON.stringify((await ask(app, caller, query, id)).data);
          for (const tenant of TENANTS) {
            if (tenant === own) continue;
            expect(text).not.toContain(`"${tenant}"`);
            expect(text).not.toContain(runs[tenant].live);
            expect(text).not.toContain(runs[tenant].ended);
          }
          expect(text).toContain(runs[own].live);
          expect(text).toContain('"totalRuns":2');
        }),
      ),
    );
  });
});

async function expectNoSight(
  app: FastifyInstance,
  where: { readonly caller: string },
  code: Refused,
  runs: Runs,
): Promise<void> {
  for (const [query, id] of [
    [RUN, runs.service.live],
    [ARTIFACTS, runs.service.ended],
    ['{ runs { id } }'],
    ['{ pipelineHealth(pipelineName: "demo") { totalRuns } }'],
  ] as const) {
    expect({ ...where, query, ...(await ask(app, where.caller, query, id)) }).toEqual({
      ...where,
      query,
      code,
      data: null,
    });
  }
}

async function expectSight(
  app: FastifyInstance,
  where: { readonly caller: string },
  sees: readonly Tenant[],
  runs: Runs,
  own: Tenant | null,
): Promise<void> {
  const { caller } = where;
  for (const tenant of TENANTS) {
    for (const id of Object.values(runs[tenant])) {
      const visible = sees.includes(tenant);
      expect({ ...where, tenant, ...(await ask(app, caller, RUN, id)) }).toEqual({
        ...where,
        tenant,
        code: null,
        data: { run: visible ? { id } : null },
      });
      expect({ ...where, tenant, ...(await ask(app, caller, ARTIFACTS, id)) }).toEqual({
        ...where,
        tenant,
        code: null,
        data: { artifacts: visible ? [{ value: tenant }] : [] },
      });
    }
  }
  const listed = (await ask(app, caller, '{ runs(limit: 100) { id } }')).data?.['runs'] as { id: string }[];
  // The store keeps the ended runs of earlier tests.
  const known = new Set(TENANTS.flatMap((tenant) => Object.values(runs[tenant])));
  expect({
    ...where,
    runs: listed
      .map(({ id }) => id)
      .filter((id) => known.has(id))
      .sort(),
  }).toEqual({ ...where, runs: sees.flatMap((tenant) => Object.values(runs[tenant])).sort() });
  const before = (await ask(app, caller, '{ pipelineHealth(pipelineName: "demo", limit: 500) { totalRuns } }')).data?.[
    'pipelineHealth'
  ];
  const counted =
    own === null ? 0 : (await world.runs.page({ tenants: [own], pipelineName: 'demo', limit: 500 })).length + 1;
  expect({ ...where, health: before }).toEqual({ ...where, health: { totalRuns: counted } });
}

/** By the header and by the parameter; statuses only, of runs that have ended. */
async function expectStreams(
  app: FastifyInstance,
  where: { readonly caller: string },
  sees: readonly Tenant[] | Refused,
  runs: Runs,
): Promise<void> {
  const token = tokens[where.caller] ?? null;
  for (const tenant of TENANTS) {
    const url = `/pipeline/${runs[tenant].ended}/logs`;
    // An API key is configured: rule 4 wants a token, also while reading is public.
    const status =
      token === null || sees === 'UNAUTHENTICATED'
        ? 401
        : sees === 'FORBIDDEN'
          ? 403
          : sees.includes(tenant)
            ? 200
            : 404;
    const byHeader = await app.inject({ url, headers: token === null ? {} : { authorization: `Bearer ${token}` } });
    const byParameter = await app.inject({ url: token === null ? url : `${url}?token=${encodeURIComponent(token)}` });
    expect({ ...where, tenant, statuses: [byHeader.statusCode, byParameter.statusCode] }).toEqual({
      ...where,
      tenant,
      statuses: [status, status],
    });
    expect(byParameter.body).not.toContain(token ?? 'no token');
  }
}

describe('an unknown id and a foreign one', () => {
  /** What is asked of the store, by method, while `act` runs. */
  async function storeCalls(
    act: (app: FastifyInstance) => Promise<unknown>,
  ): Promise<{ readonly store: string[]; readonly owner: string[]; readonly answer: unknown }> {
    const calls: string[] = [];
    const counted = new Proxy(world.runs, {
      get(runs, name: keyof RunsReader) {
        const method = runs[name] as unknown;
        if (typeof method !== 'function') return method;
        return (...args: unknown[]) => {
          calls.push(name);
          return (method as (...all: unknown[]) => unknown).apply(runs, args);
        };
      },
    });
    const app = await world.gateway({ runs: counted });
    const before = world.owner.asked.length;
    const answer = await act(app);
    return { store: calls, owner: world.owner.asked.slice(before), answer };
  }

  it('are answered alike by every query, mutation and stream, after the same calls of store and owner', async () => {
    const runs = await makeRuns();
    const unknown = runIdFor('user/ada');
    const foreign = { live: runs['user/ada'].live, ended: runs['user/ada'].ended };
    const ways: Record<string, (app: FastifyInstance, id: string) => Promise<unknown>> = {
      run: (app, id) => ask(app, 'bob', RUN, id),
      artifacts: (app, id) => ask(app, 'bob', ARTIFACTS, id),
      cancel: (app, id) => graphql(app, CANCEL, { token: tokens['bob'] ?? null, variables: { id } }),
      ticket: (app, id) => graphql(app, TICKET, { token: tokens['bob'] ?? null, variables: { id } }),
      stream: async (app, id) => {
        const { statusCode, body } = await app.inject({
          url: `/pipeline/${id}/logs`,
          headers: { authorization: `Bearer ${tokens['bob']}` },
        });
        return { statusCode, body };
      },
    };
    for (const [name, way] of Object.entries(ways)) {
      const answers = [];
      for (const id of [unknown, foreign.live, foreign.ended]) {
        const { answer, ...calls } = await storeCalls((app) => way(app, id));
        answers.push({ name, ...calls, answer: JSON.stringify(answer).replaceAll(id, '<id>') });
      }
      const [none, live, ended] = answers;
      expect(live).toEqual(none);
      expect(ended).toEqual(none);
      expect(none?.store).not.toEqual([]);
    }
  });
});
