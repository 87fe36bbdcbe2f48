/** The login of a browser, with each kind of provider. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ProviderSettings } from '../src/index.ts';
import {
  ALICE,
  Browser,
  CLIENT,
  fragmentOf,
  isArrival,
  loginByWeb,
  makeWorld,
  type TestServer,
  type World,
} from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const me = async (server: TestServer, accessToken: string | undefined): Promise<Record<string, unknown>> =>
  (await server.get('/auth/me', { authorization: `Bearer ${accessToken}` })).body;

describe('a login through the browser', () => {
  const providers = {
    github: () => ({ provider: 'github', baseUrl: `${world.host.url}/`, apiUrl: world.host.url, ...CLIENT }),
    'github enterprise': () => ({ provider: 'github', baseUrl: world.host.url, ...CLIENT }),
    gitlab: () => ({ provider: 'gitlab', baseUrl: world.host.url, ...CLIENT }),
    oidc: () => ({ provider: 'oidc', issuer: world.host.url, ...CLIENT }),
    'oidc as a public client': () => {
      world.host.isPublicClient = true;
      return { provider: 'oidc', issuer: world.host.url, clientId: CLIENT.clientId };
    },
  } satisfies Record<string, () => ProviderSettings>;

  it.each(Object.keys(providers) as (keyof typeof providers)[])(
    'with %s ends at the dashboard, tokens in the fragment',
    async (kind) => {
      const server = await world.server({ provider: providers[kind](), dashboardUrl: 'https://dashboard.example/' });
      const browser = new Browser();
      const { url, answer } = await browser.follow(`${server.url}/auth/web/login`, {}, isArrival);
      expect(url).toMatch(/^https:\/\/dashboard\.example\/auth\/callback#access_token=[^&]+&refresh_token=[^&]+$/u);
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(await me(server, fragmentOf(url)['access_token'])).toEqual({
        id: expect.any(String),
        email: ALICE.email,
        name: ALICE.name,
        git_host_login: 'alice',
        avatar_url: ALICE.avatarUrl,
        tier: 'free',
        is_admin: false,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/u),
      });
      expect(world.audit).toMatchObject([{ action: 'login.web', outcome: 'ok' }]);
    },
  );

  it('asks the provider with state and PKCE, and for the right way back', async () => {
    const server = await world.server();
    const { status, headers } = await server.get('/auth/web/login');
    const location = new URL(headers.get('location') ?? '');
    expect([status, `${location.origin}${location.pathname}`]).toEqual([
      302,
      `${world.host.url}/login/oauth/authorize`,
    ]);
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      client_id: CLIENT.clientId,
      redirect_uri: `${server.url}/auth/callback/web`,
      state: expect.stringMatching(/^[\w-]{43}$/u),
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/u),
    });
    expect(headers.getSetCookie().join()).toMatch(
      /^penstock_login_[\w-]+=[\w-]+; Path=\/auth\/callback\/web; Max-Age=600; HttpOnly; SameSite=Lax$/u,
    );
    expect(
      (await (await world.server({ baseUrl: () => 'https://ci.example.org/' })).get('/auth/web/login')).headers
        .getSetCookie()
        .join(),
    ).toMatch(/; Secure$/u);
    expect(
      (await (await world.server({ baseUrl: () => 'https://example.org/ci' })).get('/auth/web/login')).headers
        .getSetCookie()
        .join(),
    ).toContain('; Path=/ci/auth/callback/web;');
  });

  it('finds the same user again, with what the provider says of them now', async () => {
    const server = await world.server();
    const first = await me(server, (await loginByWeb(server))['access_token']);
    world.host.account = { id: ALICE.id, login: 'alice-2', primaryEmail: 'new@example.org' };
    expect(await me(server, (await loginByWeb(server))['access_token'])).toEqual({
      ...first,
      git_host_login: 'alice-2',
      email: 'new@example.org',
      name: '',
      avatar_url: '',
    });
    world.host.account = { ...ALICE, id: 8 };
    expect((await me(server, (await loginByWeb(server))['access_token']))['id']).not.toBe(first['id']);
  });

  it('of two first logins at a time makes one user', async () => {
    const server = await world.server();
    world.host.account = { id: 99, login: 'twin' };
    const logins = await Promise.all([1, 2, 3].map(() => loginByWeb(server)));
    const ids = await Promise.all(logins.map(async ({ access_token: token }) => (await me(server, token))['id']));
    expect(new Set(ids).size).toBe(1);
  });

  it("makes up an address for who shows none, and takes only a verified one for an admin's", async () => {
    const server = await world.server();
    world.host.account = { id: 20, login: 'shy' };
    expect(await me(server, (await loginByWeb(server))['access_token'])).toMatchObject({
      email: 'shy@users.noreply.127.0.0.1',
      is_admin: false,
    });
    world.host.account = { id: 21, login: 'Boss' };
    expect(await me(server, (await loginByWeb(server))['access_token'])).toMatchObject({ is_admin: true });
    world.host.account = { id: 22, login: 'r', email: 'root@example.org' };
    expect(await me(server, (await loginByWeb(server))['access_token'])).toMatchObject({ is_admin: true });
  });

  it('that the user declines ends at the dashboard with the reason', async () => {
    const server = await world.server({ dashboardUrl: 'https://dashboard.example' });
    world.host.consent = 'declined';
    const { url } = await new Browser().follow(`${server.url}/auth/web/login`, {}, isArrival);
    expect(url).toBe('https://dashboard.example/auth/callback#error=access_denied');
    expect(world.audit).toMatchObject([{ action: 'login.web', outcome: 'access_denied' }]);
  });

  it('arrives at the dashboard of the server itself where no other is configured', async () => {
    const server = await world.server();
    const { url } = await new Browser().follow(`${server.url}/auth/web/login`, {}, isArrival);
    expect(url.startsWith(`${server.url}/auth/callback#access_token=`)).toBe(true);
    const arrival = await server.get('/auth/callback');
    expect([arrival.status, arrival.headers.get('location')]).toEqual([302, '/dashboard/auth/callback']);
    expect(
      (await (await world.server({ dashboardUrl: 'https://dashboard.example' })).get('/auth/callback')).status,
    ).toBe(404);
  });
});

describe('a callback', () => {
  /** A login as far as the way back: the address that the provider sends the browser to. */
  async function wayBack(server: TestServer, browser: Browser): Promise<URL> {
    const { url } = await browser.follow(
      `${server.url}/auth/web/login`,
      {},
      (at) => new URL(at).pathname === '/auth/callback/web',
    );
    return new URL(url);
  }
  const badState = { status: 400, body: { error: 'invalid_state' } };

  it('without a state, with a forged one, or with two, is refused', async () => {
    const server = await world.server();
    const browser = new Browser();
    const back = await wayBack(server, browser);
    const code = back.searchParams.get('code') ?? '';
    const state = back.searchParams.get('state') ?? '';
    for (const search of [
      '',
      `?code=${code}`,
      `?code=${code}&state=`,
      `?code=${code}&state=forged`,
      `?code=${code}&state=${state}x`,
      `?code=${code}&state=${state}&state=${state}`,
    ]) {
      expect(await browser.visit(`${server.url}/auth/callback/web${search}`)).toMatchObject(badState);
    }
    // All of that has not used up the right one.
    expect((await browser.visit(back.href)).status).toBe(302);
  });

  it('in another browser is refused: the login was not begun there', async () => {
    const server = await world.server();
    const back = await wayBack(server, new Browser());
    const other = new Browser();
    await wayBack(server, other);
    expect(await other.visit(back.href)).toMatchObject(badState);
    expect(world.audit).toMatchObject([{ action: 'login.web', outcome: 'invalid_state' }]);
  });

  it('is taken once, also with its cookie kept', async () => {
    const server = await world.server();
    const { headers } = await server.get('/auth/web/login');
    const cookie = headers.getSetCookie().join().split(';')[0] ?? '';
    const { headers: sent } = await fetch(headers.get('location') ?? '', { redirect: 'manual' });
    const path = (sent.get('location') ?? '').slice(server.url.length);
    expect((await server.get(path, { cookie })).status).toBe(302);
    expect(await server.get(path, { cookie })).toMatchObject(badState);
  });

  it('comes in time: after ten minutes the state is over', async () => {
    const server = await world.server();
    const browser = new Browser();
    const back = await wayBack(server, browser);
    world.aheadMs = 601_000;
    expect(await browser.visit(back.href)).toMatchObject(badState);
  });

  it('with a code that was used before is refused, whoever brings it', async () => {
    const server = await world.server();
    const first = new Browser();
    const used = await wayBack(server, first);
    await first.visit(used.href);
    const second = new Browser();
    const back = await wayBack(server, second);
    back.searchParams.set('code', used.searchParams.get('code') ?? '');
    expect(await second.visit(back.href)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect(await second.visit(back.href)).toMatchObject(badState);
  });

  it("with another login's unused code is refused: the verifier of this browser does not fit it (PKCE)", async () => {
    const server = await world.server();
    const victim = await wayBack(server, new Browser());
    const browser = new Browser();
    const back = await wayBack(server, browser);
    back.searchParams.set('code', victim.searchParams.get('code') ?? '');
    expect(await browser.visit(back.href)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  });

  it('without a code is a bad request, and 503 while the provider is away', async () => {
    const server = await world.server();
    const browser = new Browser();
    const back = await wayBack(server, browser);
    back.searchParams.delete('code');
    expect(await browser.visit(back.href)).toMatchObject({ status: 400, body: { error: 'bad_request' } });
    const again = await wayBack(server, browser);
    world.host.broken = true;
    expect(await browser.visit(again.href)).toMatchObject({ status: 503, body: { error: 'unavailable' } });
  });

  it('sends tokens to the configured dashboard only, whatever headers and parameters say', async () => {
    const server = await world.server({ dashboardUrl: 'https://dashboard.example' });
    const browser = new Browser();
    const evil =
      'redirect=https://evil.example&redirect_uri=https://evil.example&dashboard_url=https://evil.example&return_to=//evil.example';
    const { url } = await browser.follow(
      `${server.url}/auth/web/login?${evil}`,
      { headers: { 'x-forwarded-host': 'evil.example' } },
      (at) => new URL(at).pathname === '/auth/callback/web',
    );
    const { headers } = await browser.visit(`${url}&${evil}`, {
      headers: { 'x-forwarded-host': 'evil.example', referer: 'https://evil.example/' },
    });
    expect(headers.get('location')).toMatch(/^https:\/\/dashboard\.example\/auth\/callback#/u);
    expect(browser.visited.some((visited) => new URL(visited).hostname === 'evil.example')).toBe(false);
  });

  it('two logins at a time in one browser both end well', async () => {
    const server = await world.server();
    const browser = new Browser();
    const [one, two] = [await wayBack(server, browser), await wayBack(server, browser)];
    expect([(await browser.visit(one.href)).status, (await browser.visit(two.href)).status]).toEqual([302, 302]);
  });
});

describe('where logins are not configured', () => {
  it('in production mode without GIT_HOST_CLIENT_ID every auth endpoint answers 503 auth_not_configured', async () => {
    const server = await world.server({ mode: 'production', provider: {} });
    const answers = [
      await server.post('/auth/device'),
      await server.post('/auth/device/token', { device_code: 'x' }),
      await server.post('/auth/refresh', {}),
      await server.post('/auth/logout', { refresh_token: 'x' }),
      await server.get('/auth/me'),
      await server.get('/auth/web/login'),
      await server.get('/auth/callback/web?code=a&state=b'),
    ];
    for (const answer of answers)
      expect(answer).toMatchObject({
        status: 503,
        body: { error: 'auth_not_configured', message: expect.any(String) },
      });
    expect((await server.get('/auth/embedded/.well-known/openid-configuration')).status).toBe(404);
    expect((await server.get('/auth/device')).status).toBe(405);
  });

  it('OpenID Connect without an issuer is a mistake at the start that names the variable', async () => {
    await expect(world.server({ provider: { ...CLIENT, provider: 'oidc' } })).rejects.toThrow(/GIT_HOST_ISSUER/u);
  });
});
