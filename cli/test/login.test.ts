/** `login`, `logout`, `whoami`, `token`: against real auth endpoints and a scripted GraphQL, and what they leave on the disk. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { keepLogin } from '../src/server/logins.ts';
import { serverAddress } from '../src/server/server-address.ts';
import { sessionOf } from '../src/server/session.ts';
import { folder, penstock, pipeline, start } from './command.ts';

/** A token that says when it ends; the server alone knows whether it is right. */
const accessToken = (endsInSecs: number, mark: string): string =>
  `${Buffer.from('{}').toString('base64url')}.${Buffer.from(JSON.stringify({ exp: Math.floor(Date.now() / 1000) + endsInSecs, mark })).toString('base64url')}.sig`;

type Route = (body: Record<string, unknown>, authorization: string) => readonly [status: number, body: unknown];
interface Seen {
  readonly path: string;
  readonly body: Record<string, unknown>;
  readonly authorization: string;
}

async function serverOf(
  routes: Readonly<Record<string, Route>>,
): Promise<{ readonly url: string; readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8');
      const body = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
      const path = request.url ?? '';
      seen.push({ path, body, authorization: request.headers.authorization ?? '' });
      const [status, answer] = routes[path]?.(body, request.headers.authorization ?? '') ?? [
        404,
        { error: 'not_found', message: 'no' },
      ];
      if (status === 0) response.destroy();
      else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const device: Route = () => [
  200,
  { device_code: 'dev', user_code: 'BCDF-GHJK', verification_uri: 'http://host/verify', expires_in: 900, interval: 1 },
];
const authorized =
  (access: string): Route =>
  () => [200, { status: 'authorized', access_token: access, refresh_token: 'rt_1', user: { git_host_login: 'ada' } }];

/** A user who has logged in: the settings folder, and the server. */
async function loggedIn(
  routes: Readonly<Record<string, Route>>,
  access = accessToken(900, 'first'),
): Promise<{
  readonly url: string;
  readonly seen: Seen[];
  readonly env: Record<string, string>;
  readonly cwd: string;
}> {
  const cwd = folder();
  const { url, seen } = await serverOf({ '/auth/device': device, '/auth/device/token': authorized(access), ...routes });
  const env = { XDG_CONFIG_HOME: join(cwd, 'settings'), SERVICE_URL: url };
  const { code, stderr } = await penstock(['login'], { cwd, env });
  expect([code, stderr]).toEqual([0, expect.stringContaining('as ada')]);
  seen.length = 0;
  return { url, seen, env, cwd };
}

const loginFiles = (cwd: string): string[] =>
  readdirSync(join(cwd, 'settings/penstock/logins')).map((name) => join(cwd, 'settings/penstock/logins', name));

describe('penstock login', () => {
  it('shows code and address, waits for the approval, and keeps the login where only its owner reads it', async () => {
    let polls = 0;
    const access = accessToken(900, 'x');
    const cwd = folder();
    const { url, seen } = await serverOf({
      '/auth/device': device,
      '/auth/device/token': (body, authorization) =>
        (polls += 1) < 2
          ? [200, { status: 'pending', error: 'authorization_pending' }]
          : authorized(access)(body, authorization),
    });
    const command = start(['login', '--server', url], { cwd, env: { XDG_CONFIG_HOME: join(cwd, 'settings') } });
    await command.until('stderr', 'BCDF-GHJK');
    expect(command.stderr).toContain('Open http://host/verify');
    const { code, stdout, stderr } = await command.ended;
    expect([code, stdout]).toEqual([0, '']);
    expect(stderr).toContain(`Logged in to ${url} as ada`);
    expect(stderr).not.toContain('rt_1');
    const [file = ''] = loginFiles(cwd);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      server: url,
      login: 'ada',
      refreshToken: 'rt_1',
      accessToken: access,
      receivedAt: expect.any(Number) as unknown,
    });
    expect(seen.map(({ path }) => path)).toEqual(['/auth/device', '/auth/device/token', '/auth/device/token']);
    expect(seen[1]?.body).toEqual({ device_code: 'dev' });
  });

  it('waits on while the server is away: the code is as good as before', async () => {
    const answers: (readonly [number, unknown])[] = [
      [0, 'the connection breaks'],
      [503, { error: 'unavailable', message: 'later' }],
    ];
    const { url } = await serverOf({
      '/auth/device': device,
      '/auth/device/token': (body, authorization) =>
        answers.shift() ?? authorized(accessToken(900, 'x'))(body, authorization),
    });
    const cwd = folder();
    const { code, stderr } = await penstock(['login', '--server', url], {
      cwd,
      env: { XDG_CONFIG_HOME: join(cwd, 'settings') },
    });
    expect([code, answers, stderr]).toEqual([0, [], expect.stringContaining('as ada')]);
  });

  it.each([
    ['declined', 4, [400, { status: 'denied', error: 'access_denied', message: 'no' }], 'the login was declined'],
    [
      'over',
      4,
      [400, { status: 'expired', error: 'expired_token', message: 'no' }],
      'nobody has confirmed the code in time',
    ],
    ['broken', 3, [500, { error: 'internal_server_error', message: 'ask the operator' }], 'ask the operator'],
  ] as const)('ends with one line when it is %s', async (_, exitCode, answer, message) => {
    const cwd = folder();
    const { url } = await serverOf({ '/auth/device': device, '/auth/device/token': () => answer });
    const { code, stderr } = await penstock(['login', '--server', url], {
      cwd,
      env: { XDG_CONFIG_HOME: join(cwd, 'settings') },
    });
    expect([code, stderr]).toEqual([exitCode, expect.stringContaining(message)]);
  });

  it('says that a server has no logins', async () => {
    const { url } = await serverOf({
      '/auth/device': () => [
        503,
        { error: 'auth_not_configured', message: 'Logins are not configured on this server.' },
      ],
    });
    expect((await penstock(['login', '--server', url], { cwd: folder() })).stderr).toContain(
      'Logins are not configured on this server.',
    );
  });
});

describe('a login', () => {
  it('is what trigger uses where no other token is given, renewed when it has ended', async () => {
    const renewed = accessToken(900, 'renewed');
    const run = { id: '0192f0c1-2b3c-7abc-8def-0123456789ab', status: 'RUNNING', stages: [] };
    const { seen, env, cwd } = await loggedIn(
      {
        '/auth/refresh': () => [200, { access_token: renewed, user: {} }],
        '/graphql': () => [200, { data: { triggerPipeline: { run } } }],
      },
      accessToken(-5, 'ended'),
    );
    const project = folder(pipeline('  a: {run: "true"}'));
    expect((await penstock(['trigger', '--detach'], { cwd: project, env })).stdout).toBe(`${run.id}\n`);
    expect(seen.map(({ path, authorization }) => [path, authorization])).toEqual([
      ['/auth/refresh', ''],
      ['/graphql', `Bearer ${renewed}`],
    ]);
    expect(seen[0]?.body).toEqual({ refresh_token: 'rt_1' });
    expect(readFileSync(loginFiles(cwd)[0] ?? '', 'utf8')).toContain(renewed);
    seen.length = 0;
    await penstock(['trigger', '--detach'], { cwd: project, env });
    await penstock(['trigger', '--detach'], { cwd: project, env: { ...env, SERVICE_API_KEY: 'the-key' } });
    expect(seen.map(({ path, authorization }) => [path, authorization])).toEqual([
      ['/graphql', `Bearer ${renewed}`],
      ['/graphql', 'Bearer the-key'],
    ]);
  });

  it.each([
    ['a server an hour ahead, just received', { issuedInSecs: 3_600, heldSecs: 5, isRenewed: false }],
    ['a server an hour ahead, when its time is over', { issuedInSecs: 2_400, heldSecs: 1_200, isRenewed: true }],
    ['a server an hour behind, just received', { issuedInSecs: -3_600, heldSecs: 5, isRenewed: false }],
    ['a clock that was set back since', { issuedInSecs: 3_600, heldSecs: -3_600, isRenewed: true }],
  ])(
    'lasts for as long as its token does by the clock here: %s',
    async (_which, { issuedInSecs, heldSecs, isRenewed }) => {
      const issued = Math.floor(Date.now() / 1000) + issuedInSecs;
      const claims = Buffer.from(JSON.stringify({ iat: issued, exp: issued + 900 })).toString('base64url');
      const { url } = await serverOf({ '/auth/refresh': () => [200, { access_token: 'fresh', user: {} }] });
      const login = { server: url, login: 'ada', refreshToken: 'rt_1', accessToken: `e30.${claims}.sig` };
      const { token } = await sessionOf({ XDG_CONFIG_HOME: join(folder(), 'settings') }, serverAddress(url, {}), {
        ...login,
        receivedAt: Date.now() - heldSecs * 1000,
      });
      expect(token === 'fresh').toBe(isRenewed);
    },
  );

  it('that is renewed is used also where it cannot be kept', async () => {
    const { url } = await serverOf({ '/auth/refresh': () => [200, { access_token: 'fresh', user: {} }] });
    const login = { server: url, login: 'ada', refreshToken: 'rt_1', accessToken: accessToken(-5, 'ended') };
    const { token } = await sessionOf({ XDG_CONFIG_HOME: '/dev/null' }, serverAddress(url, {}), login);
    expect(token).toBe('fresh');
  });

  it('that is over says so, and how to go on', async () => {
    const { url, env } = await loggedIn(
      { '/auth/refresh': () => [401, { error: 'unauthenticated', message: 'no' }] },
      accessToken(-5, 'ended'),
    );
    const { code, stderr } = await penstock(['whoami'], { cwd: folder(), env });
    expect([code, stderr]).toEqual([
      4,
      expect.stringContaining(`your login to ${url} has ended: log in again with 'penstock login --server ${url}'`),
    ]);
  });

  it('is shown to its own server and to no other', async () => {
    const { env } = await loggedIn({});
    const other = await serverOf({ '/graphql': () => [200, { data: { run: null } }] });
    await penstock(['logs', '0192f0c1-2b3c-7abc-8def-0123456789ab', '--server', other.url], { cwd: folder(), env });
    expect(other.seen).toMatchObject([{ path: '/graphql', authorization: '' }]);
    expect((await penstock(['whoami', '--server', other.url], { cwd: folder(), env })).stderr).toContain(
      'you are not logged in to',
    );
  });

  it('is never kept in the folder that one is in, which may be a checkout: a relative XDG_CONFIG_HOME counts for nothing', async () => {
    const home = folder();
    const server = serverAddress('http://127.0.0.1:1', {});
    const login = { server: server.base, login: 'ada', refreshToken: 'rt_1', accessToken: 'at_1' };
    const kept = await keepLogin({ XDG_CONFIG_HOME: 'settings', HOME: home }, server, login);
    expect(kept.startsWith(join(home, '.config/penstock/logins/'))).toBe(true);
  });

  it.skipIf(process.platform !== 'linux')('is refused a place where the file system makes no folder', async () => {
    const server = serverAddress('http://127.0.0.1:1', {});
    const login = { server: server.base, login: 'ada', refreshToken: 'rt_1', accessToken: 'at_1' };
    await expect(keepLogin({ XDG_CONFIG_HOME: '/proc/penstock' }, server, login)).rejects.toThrow(
      'cannot keep the login',
    );
  });

  it('is shown by whoami', async () => {
    const me = { id: 'u', email: 'ada@example.org', git_host_login: 'ada', tier: 'free', is_admin: true };
    const { url, env } = await loggedIn({ '/auth/me': () => [200, me] });
    expect((await penstock(['whoami'], { cwd: folder(), env })).stdout).toBe(
      `ada <ada@example.org>, tier free, admin, on ${url}\n`,
    );
    expect(JSON.parse((await penstock(['whoami', '--json'], { cwd: folder(), env })).stdout)).toEqual(me);
  });

  it.each([
    [200, 'every login of ada has ended'],
    [401, 'had ended already'],
  ])('is ended by logout (answer %i) and forgotten', async (status, message) => {
    const { seen, env, cwd } = await loggedIn({ '/auth/logout': () => [status, { status: 'ok' }] });
    const { code, stderr } = await penstock(['logout'], { cwd, env });
    expect([code, stderr]).toEqual([0, expect.stringContaining(message)]);
    expect(seen[0]?.body).toEqual({ refresh_token: 'rt_1' });
    expect(loginFiles(cwd)).toEqual([]);
    expect((await penstock(['logout'], { cwd, env })).stderr).toContain('You are not logged in');
  });

  it('is kept when the server could not end it', async () => {
    const { env, cwd } = await loggedIn({ '/auth/logout': () => [503, { error: 'unavailable', message: 'later' }] });
    expect((await penstock(['logout'], { cwd, env })).code).toBe(3);
    expect(loginFiles(cwd).length).toBe(1);
  });
});

describe('penstock token', () => {
  const created = {
    id: 'id-1',
    name: 'ci',
    token: 'svc_abc',
    scopes: ['read', 'trigger'],
    createdAt: '2026-01-01T00:00:00.000Z',
  };

  it('prints a new token, alone on standard output', async () => {
    const { seen, env, cwd } = await loggedIn({ '/graphql': () => [200, { data: { createApiToken: created } }] });
    const { code, stdout, stderr } = await penstock(
      ['token', 'create', 'ci', '--scope', 'read', '--scope', 'trigger'],
      { cwd, env: { ...env, SERVICE_API_KEY: 'not-this-one' } },
    );
    expect([code, stdout, stderr]).toEqual([0, 'svc_abc\n', expect.stringContaining('shown this once')]);
    expect(seen[0]?.body['variables']).toEqual({ name: 'ci', scopes: ['read', 'trigger'] });
    expect(seen[0]?.authorization).toMatch(/^Bearer [\w-]+\.[\w-]+\.sig$/u);
  });

  it('lists what there is', async () => {
    const tokens = [
      {
        id: 'id-1',
        name: 'ci\u001b[31m',
        scopes: ['read', 'trigger'],
        createdAt: '2026-01-01T00:00:00.000Z',
        lastUsedAt: null,
        expiresAt: '2026-04-01T00:00:00.000Z',
      },
    ];
    const { env, cwd } = await loggedIn({ '/graphql': () => [200, { data: { apiTokens: tokens } }] });
    expect((await penstock(['token', 'ls'], { cwd, env })).stdout).toBe(
      'ID    NAME          SCOPES        CREATED                   LAST USED  EXPIRES\nid-1  ci\\u{1b}[31m  read,trigger  2026-01-01T00:00:00.000Z  -          2026-04-01T00:00:00.000Z\n',
    );
    expect(JSON.parse((await penstock(['token', 'list', '--json'], { cwd, env })).stdout)).toEqual(tokens);
  });

  it('makes one that ends, and revokes them all', async () => {
    const asked: Record<string, unknown>[] = [];
    const { env, cwd } = await loggedIn({
      '/graphql': (body) => {
        asked.push(body);
        return [200, { data: { createApiToken: { id: 'id-1', token: 'svc_x' }, revokeAllTokens: 2 } }];
      },
    });
    const made = await penstock(['token', 'create', 'ci', '--scope', 'read', '--expires', '90d'], { cwd, env });
    expect([made.code, made.stdout]).toEqual([0, 'svc_x\n']);
    expect(asked[0]?.['variables']).toEqual({ name: 'ci', scopes: ['read'], expires: '90d' });
    const revoked = await penstock(['token', 'revoke-all'], { cwd, env });
    expect([revoked.code, revoked.stderr]).toEqual([0, expect.stringContaining('2 tokens are revoked.')]);
  });

  it('revokes by id, and passes a refusal on', async () => {
    const { env, cwd } = await loggedIn({
      '/graphql': (body) => [
        200,
        (body['variables'] as { id: string }).id === 'id-1'
          ? { data: { revokeApiToken: true } }
          : { data: null, errors: [{ message: 'You have no token with this id.', extensions: { code: 'NOT_FOUND' } }] },
      ],
    });
    expect(await penstock(['token', 'revoke', 'id-1'], { cwd, env })).toMatchObject({
      code: 0,
      stderr: 'The token id-1 is revoked.\n',
    });
    expect(await penstock(['token', 'revoke', 'x'], { cwd, env })).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('You have no token with this id.'),
    });
  });

  it.each([
    [['token', 'creat', 'x'], "there is no command 'token creat', did you mean 'token create'?"],
    [
      ['token', 'foo'],
      "there is no command 'token foo'\nThe commands are token create, token ls, token revoke, token revoke-all.",
    ],
    [['token', 'create'], 'needs the name'],
    [['token', 'create', 'x'], '--scope read'],
    [['token', 'list', 'x'], 'takes no argument'],
    [['token', 'revoke'], 'needs the id'],
    [['token'], 'what about tokens?'],
  ])('refuses %j with exit code 2', async (args, message) => {
    const { code, stderr } = await penstock(args, { cwd: folder() });
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });
});
