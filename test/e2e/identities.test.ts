/** Two users, an admin and the API key on a real server: whose runs are whose, quotas, tickets, and what a logout ends. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deviceLogin, type Login } from '../support/device-login.ts';
import { startServer, temporaryFolder, type RunningServer } from '../support/server.ts';

interface Answer {
  /** Of any form: each test says which it expects. */
  readonly data: Record<string, never> | null;
  readonly errors?: readonly { readonly message: string; readonly extensions: { readonly code: string } }[];
}

const folder = temporaryFolder('penstock-identities-');
let server: RunningServer;
let ada: Login;
let bob: Login;
let admin: Login;

beforeAll(async () => {
  const tiers = join(folder.path, 'tiers.json');
  writeFileSync(tiers, JSON.stringify({ free: { maxConcurrent: 1, pipelineRunLimit: 3, canPublishExtensions: true } }));
  server = await startServer({
    env: { SERVICE_ADMINS: 'sub:root', SERVICE_TIERS_FILE: tiers, SERVICE_PUBLIC_READ: 'false' },
  });
  ada = await deviceLogin(server.url, 'ada');
  bob = await deviceLogin(server.url, 'bob');
  admin = await deviceLogin(server.url, 'root');
});
afterAll(async () => {
  await server.stop();
  folder.remove();
});

async function post(
  path: string,
  body: object,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function graphql(token: string | null, query: string, variables: object = {}): Promise<Answer> {
  const headers = {
    'content-type': 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  };
  return (await (
    await fetch(`${server.url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query, variables }) })
  ).json()) as Answer;
}

const codesOf = (answer: Answer): readonly string[] => (answer.errors ?? []).map(({ extensions }) => extensions.code);

const yaml = (name: string, run: string): string =>
  `pipeline: {name: ${name}}\nstages: {a: {run: ${JSON.stringify(run)}}}\n`;

async function trigger(
  token: string,
  text: string,
  waitSeconds: number,
): Promise<{ readonly id: string; readonly status: string }> {
  const answer = await graphql(
    token,
    'mutation ($yaml: String!, $wait: Int) { triggerPipeline(yaml: $yaml, waitSeconds: $wait) { run { id status } } }',
    { yaml: text, wait: waitSeconds },
  );
  expect(answer.errors).toBeUndefined();
  return answer.data?.['triggerPipeline']?.['run'] ?? { id: '', status: 'none' };
}

describe('users on a server', () => {
  it('users see their own runs, an admin those of service too, nobody anything without a token', async () => {
    const own = await trigger(ada.access_token, yaml('mine', 'echo secret-of-ada'), 60);
    const service = await trigger(server.apiKey, yaml('theirs', 'true'), 60);
    const sees = async (token: string | null): Promise<unknown> => {
      const answer = await graphql(
        token,
        'query ($own: String, $service: String) { own: run(id: $own) { id } service: run(id: $service) { id } runs { id } }',
        { own: own.id, service: service.id },
      );
      return answer.data ?? codesOf(answer)[0];
    };
    expect(await sees(ada.access_token)).toEqual({ own: { id: own.id }, service: null, runs: [{ id: own.id }] });
    expect(await sees(bob.access_token)).toEqual({ own: null, service: null, runs: [] });
    for (const token of [admin.access_token, server.apiKey])
      expect(await sees(token)).toEqual({ own: null, service: { id: service.id }, runs: [{ id: service.id }] });
    expect(await sees(null)).toBe('UNAUTHENTICATED');
    for (const [token, status] of [
      [ada.access_token, 200],
      [bob.access_token, 404],
      [admin.access_token, 404],
      [server.apiKey, 404],
    ] as const) {
      const response = await fetch(`${server.url}/pipeline/${own.id}/logs?token=${token}`);
      expect([response.status, (await response.text()).includes('secret-of-ada')]).toEqual([status, status === 200]);
    }
  });

  it('over maxConcurrent a run waits as QUEUED and starts by itself; over the month a trigger is QUOTA_EXCEEDED; usage says so', async () => {
    const first = await trigger(bob.access_token, yaml('long', 'sleep 60'), 0);
    const second = await trigger(bob.access_token, yaml('next', 'echo done'), 0);
    expect(second.status).toBe('QUEUED');
    expect(
      (
        await graphql(bob.access_token, 'mutation ($id: String) { cancelPipeline(id: $id) { run { status } } }', {
          id: first.id,
        })
      ).data,
    ).toEqual({ cancelPipeline: { run: { status: 'CANCELLED' } } });
    const log = await fetch(`${server.url}/pipeline/${second.id}/logs`, {
      headers: { authorization: `Bearer ${bob.access_token}` },
    });
    expect(await log.text()).toContain('event: pipeline_completed');
    const third = await trigger(bob.access_token, yaml('last', 'sleep 1'), 60);
    expect(third.status).toBe('SUCCESS');
    expect(
      codesOf(
        await graphql(bob.access_token, 'mutation ($yaml: String) { triggerPipeline(yaml: $yaml) { run { id } } }', {
          yaml: yaml('more', 'true'),
        }),
      ),
    ).toEqual(['QUOTA_EXCEEDED']);
    await expect
      .poll(
        async () =>
          (await graphql(bob.access_token, '{ usage { metric total limit percentage status } }')).data?.['usage'],
        { timeout: 20_000 },
      )
      .toEqual([
        { metric: 'pipeline_runs', total: 3, limit: 3, percentage: 100, status: 'exceeded' },
        { metric: 'concurrent_runs', total: 0, limit: 1, percentage: 0, status: 'ok' },
        { metric: 'stage_minutes', total: 1, limit: 2_147_483_647, percentage: 0, status: 'ok' },
        { metric: 'artifact_storage_mb', total: 0, limit: 500, percentage: 0, status: 'ok' },
      ]);
  });

  it('a logout ends the sessions of the user, access and refresh tokens, tickets and open log streams; personal tokens stay', async () => {
    const again = await deviceLogin(server.url, 'ada');
    const run = await trigger(ada.access_token, yaml('watched', 'echo started; sleep 60'), 0);
    const { data } = await graphql(again.access_token, 'mutation ($id: String) { createStreamTicket(runId: $id) }', {
      id: run.id,
    });
    const ticket = String(data?.['createStreamTicket']);
    const made = (
      await graphql(
        ada.access_token,
        'mutation { createApiToken(name: "kept", scopes: ["read", "trigger"]) { token } }',
      )
    ).data?.['createApiToken'] as unknown as { token: string };
    const streams = await Promise.all(
      [ada.access_token, again.access_token, ticket].map((token) =>
        fetch(`${server.url}/pipeline/${run.id}/logs?token=${token}`),
      ),
    );
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);

    expect(await post('/auth/logout', { refresh_token: ada.refresh_token })).toMatchObject({
      status: 200,
      body: { status: 'ok' },
    });
    for (const text of await Promise.all(streams.map((stream) => stream.text())))
      expect(text).not.toContain('pipeline_completed');
    for (const { access_token, refresh_token } of [ada, again]) {
      expect(codesOf(await graphql(access_token, '{ health }'))).toEqual(['UNAUTHENTICATED']);
      expect(
        (await fetch(`${server.url}/auth/me`, { headers: { authorization: `Bearer ${access_token}` } })).status,
      ).toBe(401);
      expect((await post('/auth/refresh', { refresh_token })).status).toBe(401);
    }
    expect((await fetch(`${server.url}/pipeline/${run.id}/logs?token=${ticket}`)).status).toBe(401);
    expect(
      (
        await graphql(made.token, 'mutation ($id: String) { cancelPipeline(id: $id) { run { status } } }', {
          id: run.id,
        })
      ).data,
    ).toEqual({ cancelPipeline: { run: { status: 'CANCELLED' } } });

    const renewed = await deviceLogin(server.url, 'ada');
    expect((await graphql(renewed.access_token, '{ me { id } }')).data).toEqual({ me: { id: ada.user.id } });
  });

  it('an admin suspends a user: tokens and open streams end, runs go on, and nothing lets the user in until it is lifted', async () => {
    const eve = await deviceLogin(server.url, 'eve');
    const run = await trigger(eve.access_token, yaml('goes-on', 'echo started; sleep 2; echo through'), 0);
    const made = await graphql(eve.access_token, 'mutation { createApiToken(name: "ci", scopes: ["read"]) { token } }');
    const token = String(made.data?.['createApiToken']?.['token']);
    const stream = await fetch(`${server.url}/pipeline/${run.id}/logs?token=${token}`);
    expect(stream.status).toBe(200);
    const suspension = 'mutation ($login: String) { suspendUser(login: $login) { login suspendedBy } }';
    expect(codesOf(await graphql(bob.access_token, suspension, { login: 'eve' }))).toEqual(['FORBIDDEN']);
    expect((await graphql(admin.access_token, suspension, { login: 'eve' })).data).toEqual({
      suspendUser: { login: 'eve', suspendedBy: `user/${admin.user.id}` },
    });
    expect(await stream.text()).not.toContain('pipeline_completed');
    const doors = async (): Promise<unknown> => [
      codesOf(await graphql(eve.access_token, '{ health }')),
      codesOf(await graphql(token, '{ health }')),
      (await post('/auth/refresh', { refresh_token: eve.refresh_token })).status,
    ];
    expect(await doors()).toEqual([['UNAUTHENTICATED'], ['UNAUTHENTICATED'], 401]);
    await expect(deviceLogin(server.url, 'eve')).rejects.toThrow('not logged in');
    expect((await graphql(admin.access_token, '{ suspendedUsers { login } }')).data).toEqual({
      suspendedUsers: [{ login: 'eve' }],
    });
    const lift = 'mutation { unsuspendUser(login: "eve") }';
    expect((await graphql(admin.access_token, lift)).data).toEqual({ unsuspendUser: true });
    await expect.poll(doors).toEqual([[], [], 200]);
    const log = await fetch(`${server.url}/pipeline/${run.id}/logs?token=${token}`);
    expect(await log.text()).toMatch(/through[^]*"status":"SUCCESS"/u);
  });

  it('an admin reads in the audit log what was done, and no secret', async () => {
    const recorded = async (): Promise<{ readonly actor: string; readonly action: string }[]> =>
      (await graphql(admin.access_token, '{ auditLog(limit: 1000) { at actor action target outcome ip } }')).data?.[
        'auditLog'
      ] ?? [];
    const actions = async (): Promise<string[]> =>
      (await recorded()).map(({ actor, action }) => `${actor.replace(/[0-9a-f-]{36}/gu, '<id>')} ${action}`);
    await expect
      .poll(actions)
      .toEqual(
        expect.arrayContaining([
          'user/<id> login.device',
          'user/<id> logout',
          'user/<id> token.create',
          'user/<id> run.cancel',
          'token/<id> of user/<id> run.cancel',
          'unknown authenticate',
        ]),
      );
    expect(JSON.stringify(await recorded())).not.toMatch(/svc_|eyJ|secret/u);
  });

  it('an admin deletes a user: what was theirs is gone and counted, and the same account is somebody new', async () => {
    const zoe = await deviceLogin(server.url, 'zoe');
    const run = await trigger(zoe.access_token, yaml('stays', 'echo kept'), 0);
    const made = await graphql(
      zoe.access_token,
      `
        mutation {
          createApiToken(name: "ci", scopes: ["read"]) {
            token
          }
          setSecret(name: "KEY", value: "hidden-0815") {
            name
          }
          connectRepository(provider: "git_host_a", repository: "zoe/app") {
            id
          }
          grantAccess(repository: "zoe/app", login: "bob", role: "read") {
            login
          }
          createHook(url: "https://example.com/hook", events: ["run.completed"]) {
            id
          }
        registerExtensionKey(publicKey: "${Buffer.alloc(32, 7).toString('base64')}") { id }
        }
      `,
    );
    expect(made.errors).toBeUndefined();
    await graphql(
      bob.access_token,
      'mutation { connectRepository(provider: "git_host_a", repository: "bob/app") { id } }',
    );
    await graphql(
      bob.access_token,
      'mutation { grantAccess(repository: "bob/app", login: "zoe", role: "admin") { login } }',
    );
    const stream = await fetch(`${server.url}/pipeline/${run.id}/logs?token=${zoe.access_token}`);
    const deletion = `mutation ($login: String) { deleteUser(login: $login) {
      id login identities sessions tokens secrets repositories hooks extensionKeys grantsGiven grantsReceived } }`;
    expect(codesOf(await graphql(bob.access_token, deletion, { login: 'zoe' }))).toEqual(['FORBIDDEN']);
    expect(codesOf(await graphql(admin.access_token, deletion, { login: admin.user.id }))).toEqual(['BAD_USER_INPUT']);
    const counts = { identities: 1, sessions: 1, tokens: 1, secrets: 1, repositories: 1, hooks: 1, extensionKeys: 1 };
    expect(await graphql(admin.access_token, deletion, { login: 'zoe' })).toEqual({
      data: {
        deleteUser: { id: zoe.user.id, login: 'zoe', ...counts, grantsGiven: 1, grantsReceived: 1 },
      },
    });
    await stream.text();
    const token = String(made.data?.['createApiToken']?.['token']);
    expect(codesOf(await graphql(zoe.access_token, '{ health }'))).toEqual(['UNAUTHENTICATED']);
    expect(codesOf(await graphql(token, '{ health }'))).toEqual(['UNAUTHENTICATED']);
    expect((await post('/auth/refresh', { refresh_token: zoe.refresh_token })).status).toBe(401);
    const shared = await graphql(
      bob.access_token,
      '{ sharedRepositories { repository } access(repository: "bob/app") { login } }',
    );
    expect(shared.data).toEqual({ sharedRepositories: [], access: [] });
    expect(codesOf(await graphql(admin.access_token, deletion, { login: 'zoe' }))).toEqual(['NOT_FOUND']);
    expect(codesOf(await graphql(admin.access_token, 'mutation { unsuspendUser(login: "zoe") }'))).toEqual([
      'NOT_FOUND',
    ]);
    expect((await graphql(admin.access_token, deletion, { login: zoe.user.id })).data?.['deleteUser']).toMatchObject({
      id: zoe.user.id,
      secrets: 0,
      sessions: 0,
      identities: 0,
    });

    const anew = await deviceLogin(server.url, 'zoe');
    expect(anew.user.id).not.toBe(zoe.user.id);
    expect(
      (
        await graphql(
          anew.access_token,
          '{ secrets { name } repositories { id } hooks { id } apiTokens { id } sharedRepositories { repository } }',
        )
      ).data,
    ).toEqual({ secrets: [], repositories: [], hooks: [], apiTokens: [], sharedRepositories: [] });
  });
});
