/** What somebody may do at another's repository, by role, on every way that leads to its runs. */
import type { AddressInfo } from 'node:net';
import type { BusSubscription } from '@penstock/bus';
import type { AccessRole, Grant } from '@penstock/identity';
import { answerCalls } from '@penstock/service';
import { NotFound } from '@penstock/errors';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { TestUser } from './fake-auth.ts';
import { API_KEY, graphql, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';
import { SseClient } from './sse-client.ts';

const SHOP = { tenant: 'user/ada', provider: 'git_host_a', repository: 'Acme/shop' } as const;
const GATED = 'pipeline: {name: p}\nstages:\n  gate: {approval: {}}\n  ship: {run: x, after: gate}\n';

let world: World;
let ada: TestUser;
let bob: TestUser;
const clients: SseClient[] = [];
beforeAll(async () => {
  world = await makeWorld();
  [ada, bob] = await Promise.all([world.auth.login('ada', { tier: 'team' }), world.auth.login('bob')]);
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  world.auth.grants.clear();
  await world.reset();
});
afterAll(() => world.close());

const as = (role: AccessRole, of: Partial<Grant> = {}): Grant => ({ ...SHOP, role, ...of });

/** A run of Ada's. */
function runOf(of: Partial<typeof SHOP> | { provider?: string; repository?: string } = {}, yaml = YAML): string {
  const { tenant, provider, repository } = { ...SHOP, ...of };
  const id = runIdFor(tenant);
  world.owner.adopt(id, yaml, tenant, {
    kind: 'webhook',
    provider,
    repository,
    ref: 'refs/heads/main',
    commit: 'c'.repeat(40),
  });
  return id;
}

function end(id: string): void {
  world.owner.commit(id, [
    happened.queued('build'),
    happened.started('build'),
    happened.completed('build'),
    happened.queued('test'),
    happened.started('test'),
    happened.completed('test'),
    happened.runCompleted(),
  ]);
}

/** The answer of an operation about one run: its code, or null. */
async function codeOf(
  app: FastifyInstance,
  operation: string,
  id: string,
  token: string = bob.token,
): Promise<unknown> {
  const { errors } = await graphql(app, `mutation ($id: String) { ${operation} }`, { token, variables: { id } });
  return errors[0]?.extensions['code'] ?? null;
}

const sees = async (app: FastifyInstance, id: string, token: string = bob.token): Promise<boolean> =>
  (await graphql(app, 'query ($id: String) { run(id: $id) { id } }', { token, variables: { id } })).data?.['run'] !==
  null;

const listed = async (app: FastifyInstance, args = '', token: string = bob.token): Promise<string[]> => {
  const { data, errors } = await graphql(app, `{ runs${args} { id } }`, { token });
  expect(errors).toEqual([]);
  const runs = (data?.['runs'] ?? []) as { readonly id: string }[];
  return runs.map(({ id }) => id);
};

/** Until every watcher has heard of a change. */
const heard = async (check: () => Promise<unknown>, expected: unknown): Promise<void> =>
  await vi.waitFor(async () => expect(await check()).toEqual(expected), { timeout: 30_000, interval: 20 });

async function listening(app: FastifyInstance): Promise<string> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
}

async function open(url: string, token: string): Promise<SseClient> {
  const client = await SseClient.open(url, { token });
  clients.push(client);
  await world.bus.flush();
  return client;
}

const ROLES = {
  read: { cancel: 'FORBIDDEN', rerun: 'FORBIDDEN', approve: 'FORBIDDEN', decide: 'FORBIDDEN', delete: 'FORBIDDEN' },
  trigger: { cancel: null, rerun: null, approve: 'FORBIDDEN', decide: 'FORBIDDEN', delete: 'FORBIDDEN' },
  approve: { cancel: null, rerun: null, approve: 'CONFLICT', decide: null, delete: 'FORBIDDEN' },
  admin: { cancel: null, rerun: null, approve: 'CONFLICT', decide: null, delete: null },
} as const;

describe('whoever is let into a repository', { timeout: 60_000 }, () => {
  it.each(Object.entries(ROLES))('with the role %s may what that says, and the same by a token', async (role, may) => {
    world.auth.grants.set('bob', [as(role as AccessRole)]);
    const app = await world.gateway({ publicRead: false });
    const token = world.auth.personalToken('bob', 'read', 'trigger');
    for (const credential of [bob.token, token]) {
      const [live, gated, ended, gone] = [runOf(), runOf({}, GATED), runOf(), runOf()];
      end(ended);
      end(gone);
      await world.owner.project(gone);
      world.owner.commit(gated, [
        { type: 'gates_queued', at: Date.now(), stages: ['gate'], dueAt: Date.now() + 60_000 },
      ]);
      expect([await sees(app, live, credential), await sees(app, ended, credential)]).toEqual([true, true]);
      const code = (operation: string, id: string): Promise<unknown> => codeOf(app, operation, id, credential);
      expect({
        decide: await code('approveStage(runId: $id, stage: "gate") { name }', gated),
        approve: await code('approveRun(id: $id) { id }', live),
        cancel: await code('cancelPipeline(id: $id) { cancelledStages }', live),
        rerun: await code('rerunPipeline(id: $id, waitSeconds: 0) { run { id } }', ended),
        delete: await code('deleteRun(id: $id)', gone),
      }).toEqual(credential === token ? { ...may, decide: 'UNAUTHENTICATED' } : may);
    }
  });

  it('with the role read may not run the repository’s file: FORBIDDEN there, NOT_FOUND where nobody has let it in', async () => {
    world.auth.grants.set('bob', [as('read')]);
    const app = await world.gateway();
    const { stop } = answerCalls(world.bus, 'webhook-ingest', {
      file: () => {
        throw new NotFound('You have not connected it.');
      },
    } as Parameters<typeof answerCalls>[2]);
    await world.bus.flush();
    const dispatch = async (repository: string): Promise<unknown> =>
      await codeOf(
        app,
        `dispatchPipeline(provider: "git_host_a", repository: "${repository}", ref: "main", runId: $id) { run { id } }`,
        runIdFor('user/bob'),
      );
    expect([await dispatch('acme/shop'), await dispatch('acme/other')]).toEqual(['FORBIDDEN', 'NOT_FOUND']);
    stop();
  });

  it('has nothing else of the tenant: no other repository, no other host, no run without one', async () => {
    world.auth.grants.set('bob', [as('admin')]);
    const app = await world.gateway({ publicRead: false });
    const foreign = [runOf({ repository: 'acme/other' }), runOf({ provider: 'git_host_b' }), runIdFor('user/ada')];
    world.owner.adopt(foreign[2] ?? '', YAML, 'user/ada');
    const mine = runOf({ repository: 'acme/SHOP' });
    const unknown = runIdFor('user/ada');
    for (const id of foreign) {
      expect(await sees(app, id)).toBe(false);
      for (const operation of [
        'cancelPipeline(id: $id) { cancelledStages }',
        'deleteRun(id: $id)',
        'rerunPipeline(id: $id) { run { id } }',
        'createStreamTicket(runId: $id)',
      ])
        expect(await codeOf(app, operation, id)).toBe(await codeOf(app, operation, unknown));
      const logs = await app.inject({ url: `/pipeline/${id}/logs`, headers: { authorization: `Bearer ${bob.token}` } });
      expect(logs.statusCode).toBe(404);
    }
    expect(await sees(app, mine)).toBe(true);
  });

  it('finds its runs among its own, by pages and filters, from owner and store', async () => {
    world.auth.grants.set('bob', [as('read', { repository: 'acme/found' })]);
    const app = await world.gateway({ publicRead: false });
    const found = { repository: 'acme/found' };
    const [ended, other] = [runOf(found), runOf({ repository: 'acme/other' })];
    const [own, live] = [runIdFor('user/bob'), runOf(found)];
    world.owner.adopt(own, YAML, 'user/bob');
    end(ended);
    await world.owner.project(ended);
    const all = await listed(app);
    expect(all).toEqual([live, own, ended]);
    expect(all).not.toContain(other);
    expect(await listed(app, '(limit: 1)')).toEqual([live]);
    expect(await listed(app, `(limit: 5, before: "${live}")`)).toEqual([own, ended]);
    expect(await listed(app, '(repository: "acme/found")')).toEqual([live, ended]);
    expect(await listed(app, '(repository: "acme/other")')).toEqual([]);
    expect((await listed(app, '', ada.token)).slice(0, 3)).toEqual([live, other, ended]);
  });

  it('loses it at once: kept answers, open streams, tickets, and what it hears of', async () => {
    const app = await world.gateway({ publicRead: false });
    const url = await listening(app);
    await world.auth.letIn('bob', as('read', { repository: 'acme/lost' }));
    const run = runOf({ repository: 'acme/lost' });
    await heard(() => listed(app), [run]);
    for (let again = 0; again < 3; again += 1) expect(await listed(app)).toEqual([run]);
    const ticket = (
      await graphql(app, 'mutation ($id: String) { createStreamTicket(runId: $id) }', {
        token: bob.token,
        variables: { id: run },
      })
    ).data?.['createStreamTicket'];
    const [changes, logs] = [
      await open(`${url}/runs/events`, bob.token),
      await open(`${url}/pipeline/${run}/logs`, bob.token),
    ];
    const byTicket = await SseClient.open(`${url}/pipeline/${run}/logs?token=${String(ticket)}`);
    clients.push(byTicket);
    expect([changes, logs, byTicket].map(({ status }) => status)).toEqual([200, 200, 200]);
    world.owner.commit(run, [happened.queued('build')]);
    await changes.until(({ messages }) => messages.some(({ data }) => data['id'] === run));
    await world.auth.letIn('bob');
    await Promise.all([changes.ended, logs.ended, byTicket.ended]);
    expect(await listed(app)).toEqual([]);
    expect(await sees(app, run)).toBe(false);
    const statusOf = async (query: string, token?: string): Promise<number> =>
      (
        await app.inject({
          url: `/pipeline/${run}/logs${query}`,
          ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
        })
      ).statusCode;
    expect(await statusOf('', bob.token)).toBe(404);
    expect(await statusOf(`?token=${String(ticket)}`)).toBe(401);
  });

  it('loses a stream that was being opened meanwhile', async () => {
    const app = await world.gateway({ publicRead: false });
    const url = await listening(app);
    await world.auth.letIn('bob', as('read', { repository: 'acme/late' }));
    const run = runOf({ repository: 'acme/late' });
    await heard(() => listed(app), [run]);
    world.owner.beforeGet = async () => {
      world.owner.beforeGet = undefined;
      await world.auth.letIn('bob');
      await heard(() => listed(app), []);
    };
    const logs = await open(`${url}/pipeline/${run}/logs`, bob.token);
    await logs.ended;
    expect(world.owner.beforeGet).toBeUndefined();
  });

  it('has its runs counted and bounded as the tenant’s, and runs no file of its own there', async () => {
    world.auth.grants.set('bob', [as('admin')]);
    const app = await world.gateway({ publicRead: false });
    const ended = runOf();
    end(ended);
    const edited = `${YAML}\n# of mine\n`;
    const { errors } = await graphql(
      app,
      'mutation ($id: String, $yaml: String) { rerunPipeline(id: $id, yaml: $yaml, waitSeconds: 0) { run { id } } }',
      { token: bob.token, variables: { id: ended, yaml: edited } },
    );
    expect(errors[0]?.extensions['code']).toBe('FORBIDDEN');
    expect(await codeOf(app, 'rerunPipeline(id: $id, waitSeconds: 0) { run { id } }', ended)).toBeNull();
    // Those of the tier `team`, which is Ada's.
    expect(world.owner.created.at(-1)).toMatchObject({ tenant: 'user/ada', limits: { maxConcurrent: 100 } });
  });

  it('sees nothing of it while auth does not answer, and its own all the same', async () => {
    world.auth.grants.set('bob', [as('read')]);
    const app = await world.gateway({ publicRead: false });
    const [own, shared] = [runIdFor('user/bob'), runOf()];
    world.owner.adopt(own, YAML, 'user/bob');
    await world.auth.leave();
    try {
      expect([await sees(app, own), await listed(app, '(limit: 1)')]).toEqual([true, [own]]);
      const { errors } = await graphql(app, 'query ($id: String) { run(id: $id) { id } }', {
        token: bob.token,
        variables: { id: shared },
      });
      expect(errors[0]?.extensions['code']).toBe('UNAVAILABLE');
    } finally {
      await world.auth.open();
    }
  });
});

describe('letting somebody in', { timeout: 60_000 }, () => {
  const connection = { id: 'c1', provider: 'git_host_a', repository: 'Acme/shop', proof: { ref: 'r' }, proved: true };
  const asked: { readonly verb: string; readonly request: Record<string, unknown> }[] = [];
  let ingest: BusSubscription;
  let auth: BusSubscription;
  beforeAll(async () => {
    ingest = answerCalls(world.ownerBus, 'webhook-ingest', {
      connections: ({ userId }: { userId: string }) => ({ repositories: userId === 'ada' ? [connection] : [] }),
      disconnect: () => ({ disconnected: true }),
    } as Parameters<typeof answerCalls>[2]);
    await world.auth.leave();
    const noted =
      (verb: string, answer: (request: Record<string, unknown>) => unknown) => (request: Record<string, unknown>) => {
        if (verb !== 'access.of') asked.push({ verb, request });
        return answer(request);
      };
    auth = answerCalls(world.ownerBus, 'auth', {
      'access.of': noted('access.of', ({ userId }) => ({ grants: world.auth.grants.get(String(userId)) ?? [] })),
      'access.list': noted('access.list', () => ({ access: [] })),
      'access.grant': noted('access.grant', ({ login, role }) => ({ login, role, grantedBy: 'x', grantedAt: 'now' })),
      'access.revoke': noted('access.revoke', () => ({ revoked: true })),
      'access.leave': noted('access.leave', () => ({ revoked: true })),
      'access.end': noted('access.end', () => ({ ended: 1 })),
    } as unknown as Parameters<typeof answerCalls>[2]);
    await world.ownerBus.flush();
  });
  afterEach(() => {
    asked.length = 0;
  });
  afterAll(async () => {
    ingest.stop();
    auth.stop();
    await world.auth.open();
  });

  const GRANT =
    'mutation ($name: String) { grantAccess(repository: $name, login: "eve", role: "read") { login role } }';
  const REVOKE = 'mutation ($name: String) { revokeAccess(repository: $name, login: "eve") }';
  const LIST = 'query ($name: String) { access(repository: $name) { login } }';
  const call = async (
    text: string,
    token: string | null,
    name = 'acme/shop',
  ): Promise<{ readonly code: unknown; readonly message: unknown }> => {
    const app = await world.gateway();
    const { errors } = await graphql(app, text, { token, variables: { name } });
    return { code: errors[0]?.extensions['code'] ?? null, message: errors[0]?.message };
  };

  it.each(['acme/shop', 'git_host_a/Acme/Shop', 'c1'])('is for who has connected it, named as %s', async (name) => {
    for (const text of [GRANT, REVOKE, LIST]) expect((await call(text, ada.token, name)).code).toBeNull();
    expect(asked.map(({ verb }) => verb)).toEqual(['access.grant', 'access.revoke', 'access.list']);
    for (const { request } of asked) expect(request).toMatchObject(SHOP);
    expect(asked[0]?.request).toMatchObject({ login: 'eve', role: 'read', actor: 'user/ada', ip: '127.0.0.1' });
  });

  it('is for its admins, and for nobody below', async () => {
    for (const [role, code] of [
      ['read', 'FORBIDDEN'],
      ['trigger', 'FORBIDDEN'],
      ['approve', 'FORBIDDEN'],
      ['admin', null],
    ] as const) {
      world.auth.grants.set('bob', [as(role)]);
      for (const text of [GRANT, REVOKE, LIST]) expect((await call(text, bob.token)).code).toBe(code);
    }
    expect(asked).toHaveLength(3);
    for (const { request } of asked) expect(request).toMatchObject(SHOP);
  });

  it('says of another’s repository what it says of one that is not there', async () => {
    for (const text of [GRANT, LIST, REVOKE]) {
      const [foreign, none] = [await call(text, bob.token), await call(text, bob.token, 'acme/none')];
      expect(foreign.code).toBe('NOT_FOUND');
      expect(String(foreign.message).replace('acme/shop', '')).toBe(String(none.message).replace('acme/none', ''));
    }
    expect(asked).toEqual([]);
  });

  it('takes a login: no key and no personal token will do', async () => {
    world.auth.grants.set('ada', []);
    for (const token of [null, API_KEY])
      for (const text of [GRANT, REVOKE, LIST]) expect((await call(text, token)).code).toBe('UNAUTHENTICATED');
    expect(asked).toEqual([]);
  });

  it('ends with the connection, before that', async () => {
    const app = await world.gateway();
    const { data } = await graphql(app, 'mutation { disconnectRepository(id: "c1") }', { token: ada.token });
    expect(data).toEqual({ disconnectRepository: true });
    expect(asked).toEqual([{ verb: 'access.end', request: expect.objectContaining(SHOP) }]);
  });

  it('can be given up by whoever was let in, who sees where that is', async () => {
    const app = await world.gateway();
    world.auth.grants.set('bob', [as('trigger')]);
    const shared = await graphql(app, '{ sharedRepositories { provider repository role tenant } }', {
      token: bob.token,
    });
    expect(shared.data).toEqual({ sharedRepositories: [as('trigger')] });
    const left = await graphql(app, 'mutation { leaveRepository(repository: "acme/shop") }', { token: bob.token });
    expect(left.data).toEqual({ leaveRepository: true });
    expect(asked).toEqual([{ verb: 'access.leave', request: expect.objectContaining({ ...SHOP, userId: 'bob' }) }]);
  });
});
