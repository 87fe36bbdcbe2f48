/** Who is an admin and who may log in at all, by what providers vouch for; what accounts say of themselves counts for nothing. */
import { ConfigurationError } from '@penstock/config';
import type { FakeAccount, IdTokenFault } from '@penstock/testkit';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { checkAuthSettings, type ProviderSettings } from '../src/settings.ts';
import type { AuthOptions } from '../src/start.ts';
import { ALICE, Browser, CLIENT, fragmentOf, isArrival, makeWorld, type TestServer, type World } from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

type Kind = 'github' | 'gitlab' | 'oidc';

const providerOf = (kind: Kind): ProviderSettings =>
  kind === 'oidc'
    ? { provider: 'oidc', issuer: world.host.url, ...CLIENT }
    : { provider: kind, baseUrl: world.host.url, ...(kind === 'github' ? { apiUrl: world.host.url } : {}), ...CLIENT };

/** What the browser arrives with: tokens, or an error. */
async function loginAs(server: TestServer, account: FakeAccount): Promise<Record<string, string>> {
  world.host.account = account;
  return fragmentOf((await new Browser().follow(`${server.url}/auth/web/login`, {}, isArrival)).url);
}

async function isAdmin(kind: Kind, admins: readonly string[], account: FakeAccount): Promise<unknown> {
  const server = await world.server({ provider: providerOf(kind), admins });
  const { access_token: token } = await loginAs(server, account);
  return (await server.get('/auth/me', { authorization: `Bearer ${token}` })).body['is_admin'];
}

async function mayLogIn(
  kind: Kind,
  allowedLogins: readonly string[],
  account: FakeAccount,
  more: Partial<AuthOptions> = {},
): Promise<boolean> {
  const server = await world.server({ provider: providerOf(kind), allowedLogins, ...more });
  const arrived = await loginAs(server, account);
  expect(arrived['error'] ?? 'none').toBe(arrived['access_token'] === undefined ? 'access_denied' : 'none');
  return arrived['access_token'] !== undefined;
}

describe('an admin', () => {
  const boss: FakeAccount = { id: 31, login: 'someone', email: 'boss@example.org' };

  it.each(['github', 'gitlab', 'oidc'] as const)(
    'of %s is named by an email that the provider has verified, and by no other',
    async (kind) => {
      expect(await isAdmin(kind, ['Boss@Example.org'], boss)).toBe(true);
      expect(await isAdmin(kind, ['boss@example.org'], { ...boss, id: 32, emailVerified: false })).toBe(false);
    },
  );

  it.each(['github', 'gitlab'] as const)('of %s is named by the login, which is one account alone', async (kind) => {
    expect(await isAdmin(kind, ['boss'], { id: 33, login: 'Boss' })).toBe(true);
    expect(await isAdmin(kind, ['sub:33'], { id: 33, login: 'Boss' })).toBe(false);
  });

  it('of an OpenID Connect issuer is named by the subject, and never by a name that the account chose', async () => {
    const names = ['boss', 'boss@example.org', 'sub:boss'];
    expect(await isAdmin('oidc', ['sub:34'], { id: 34, login: 'x' })).toBe(true);
    expect(await isAdmin('oidc', names, { id: 35, login: 'boss' })).toBe(false);
    expect(await isAdmin('oidc', names, { id: 36, login: 'boss@example.org', emailVerified: false })).toBe(false);
    expect(await isAdmin('oidc', names, { ...boss, id: 37, login: 'boss', emailVerified: false })).toBe(false);
  });

  it('is nobody whose email only looks like the one that is named', async () => {
    expect(await isAdmin('oidc', ['kim@work.example'], { id: 38, login: 'k', email: 'kim@wor\u212A.example' })).toBe(
      false,
    );
  });
});

describe('SERVICE_ALLOWED_LOGINS', () => {
  const ada: FakeAccount = { id: 41, login: 'Ada', email: 'ada@example.org' };

  it('lets in by verified email, login, subject and domain, and nobody else', async () => {
    expect(await mayLogIn('github', ['ada'], ada)).toBe(true);
    expect(await mayLogIn('gitlab', ['ada@example.org'], ada)).toBe(true);
    expect(await mayLogIn('oidc', ['sub:41'], ada)).toBe(true);
    expect(await mayLogIn('oidc', ['@example.org'], ada)).toBe(true);
    expect(await mayLogIn('oidc', ['@example.org'], { ...ada, emailVerified: false })).toBe(false);
    expect(await mayLogIn('oidc', ['@example.org'], { ...ada, email: 'ada@not-example.org' })).toBe(false);
    expect(await mayLogIn('oidc', ['ada', '@ada'], ada)).toBe(false);
    expect(await mayLogIn('github', ['bob', 'sub:41'], ada)).toBe(false);
    expect(await mayLogIn('github', [], ada)).toBe(false);
    expect(world.audit).toContainEqual(
      expect.objectContaining({ action: 'login.web', outcome: 'forbidden', actor: 'anonymous' }),
    );
  });

  it.each(['github', 'gitlab'] as const)('asks %s for memberships; an invitation is none', async (kind) => {
    expect(await mayLogIn(kind, ['org:Acme'], { ...ada, memberships: { acme: 'active' } })).toBe(true);
    expect(await mayLogIn(kind, ['org:acme'], { ...ada, memberships: { acme: 'pending' } })).toBe(false);
    expect(await mayLogIn(kind, ['org:acme'], { ...ada, memberships: { other: 'active' } })).toBe(false);
    expect(await mayLogIn(kind, ['org:acme'], ada)).toBe(false);
  });

  it('holds for the device flow, run by the provider and by ourselves', async () => {
    const server = await world.server({ allowedLogins: ['bob'] });
    const device = async (): Promise<string> => String((await server.post('/auth/device')).body['device_code']);
    const byProvider = await device();
    world.host.device = 'authorized';
    for (let again = 0; again < 2; again += 1)
      expect(await server.post('/auth/device/token', { device_code: byProvider })).toMatchObject({
        status: 400,
        body: { status: 'denied', error: 'access_denied' },
      });
    world.host.device = 'unsupported';
    const { body } = await server.post('/auth/device');
    const browser = new Browser();
    const page = await browser.follow(String(body['verification_uri']));
    const done = await browser.submit(page, { user_code: String(body['user_code']) });
    expect(done.answer.text).toContain('may not log in here');
    expect(await server.post('/auth/device/token', { device_code: body['device_code'] })).toMatchObject({
      status: 400,
      body: { error: 'access_denied' },
    });
  });

  it('ends what a name gave when the name is taken off the list', async () => {
    const before = await world.server({ allowedLogins: ['org:acme', '@example.org'] });
    const viaGroup = await loginAs(before, { id: 42, login: 'm', memberships: { acme: 'active' } });
    const refresh = async (server: TestServer, token: string | undefined): Promise<number> =>
      (await server.post('/auth/refresh', { refresh_token: token })).status;
    expect(await refresh(before, viaGroup['refresh_token'])).toBe(200);
    const after = await world.server({ allowedLogins: ['@example.org'] });
    expect(await refresh(after, viaGroup['refresh_token'])).toBe(401);
  });

  it('that is absent lets everybody in, with a warning in production mode', async () => {
    const warnings: string[] = [];
    const log = {
      info: () => {},
      error: () => {},
      warn: (_fields: object, message: string) => void warnings.push(message),
    };
    const server = await world.server({ mode: 'production', provider: providerOf('github'), log });
    expect((await loginAs(server, ALICE))['access_token']).toEqual(expect.any(String));
    expect(warnings.join()).toContain('SERVICE_ALLOWED_LOGINS bounds who may');
  });
});

describe('an id token', () => {
  it.each<IdTokenFault>(['foreign key', 'no signature', 'shared key', 'audience', 'issuer', 'nonce', 'expired'])(
    'is not believed where it is wrong in this: %s',
    async (fault) => {
      const server = await world.server({ provider: providerOf('oidc') });
      world.host.idTokenFault = fault;
      const browser = new Browser();
      const { answer } = await browser.follow(`${server.url}/auth/web/login`);
      expect([400, 503]).toContain(answer.status);
      expect(world.audit.filter(({ outcome }) => outcome === 'ok')).toEqual([]);
    },
  );
});

describe('the settings of logins', () => {
  const oidc = { gitHostProvider: 'oidc', gitHostClientId: 'c', gitHostIssuer: 'https://login.example' } as const;
  it.each([
    ['an issuer over plain http', { ...oidc, gitHostIssuer: 'http://login.example' }, 'GIT_HOST_ISSUER'],
    ['a domain of admins', { admins: ['@example.org'] }, 'SERVICE_ADMINS'],
    ['an organisation of admins', { admins: ['org:acme'] }, 'SERVICE_ADMINS'],
    ['a subject that is missing', { admins: ['sub:'] }, 'SERVICE_ADMINS'],
    ['an organisation at an issuer', { ...oidc, allowedLogins: ['org:acme'] }, 'SERVICE_ALLOWED_LOGINS'],
    ['no domain behind the sign', { allowedLogins: ['@'] }, 'SERVICE_ALLOWED_LOGINS'],
  ])('is a start that is refused: %s', (_what, settings, variable) => {
    const check = (): void => checkAuthSettings({ admins: [], ...settings });
    expect(check).toThrow(ConfigurationError);
    expect(check).toThrow(variable);
  });

  it('let an issuer on this machine speak plain http', () => {
    expect(() =>
      checkAuthSettings({ admins: ['sub:7'], ...oidc, gitHostIssuer: 'http://127.0.0.1:9000' }),
    ).not.toThrow();
  });
});
