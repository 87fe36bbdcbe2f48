/** The embedded provider: both logins on a fresh machine with nothing registered anywhere, by hand and in a real browser. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { chromiumFor } from '@penstock/testkit';
import { chromium, type Browser as RealBrowser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Browser, fragmentOf, isArrival, makeWorld, type Answer, type TestServer, type World } from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const embedded = (): Promise<TestServer> => world.server({ provider: {} });

async function loginPage(server: TestServer, browser: Browser): Promise<{ url: string; answer: Answer }> {
  return await browser.follow(`${server.url}/auth/web/login`);
}

describe('the embedded provider', () => {
  it('asks who it is and whether that may be told, and leads to tokens', async () => {
    const server = await embedded();
    const browser = new Browser();
    const page = await loginPage(server, browser);
    expect(page.url).toMatch(/\/auth\/embedded\/interaction\/[\w-]+$/u);
    const consent = await browser.submit(page, { login: 'Ada' });
    expect(consent.answer.text).toContain('<strong>ada</strong>');
    const { url } = await browser.submit(consent, { decision: 'allow' }, isArrival);
    const { body } = await server.get('/auth/me', { authorization: `Bearer ${fragmentOf(url)['access_token']}` });
    expect(body).toMatchObject({ git_host_login: 'ada', name: 'ada', email: 'ada@users.noreply.127.0.0.1' });
  });

  it('asks anew at each login, so that one browser can be several people', async () => {
    const server = await embedded();
    const browser = new Browser();
    const ids = [];
    for (const login of ['ada', 'grace', 'ada']) {
      const consent = await browser.submit(await loginPage(server, browser), { login });
      // A page of the library's own, which goes on by a script, would stay a blank one.
      expect(consent.answer.text).toContain(`<strong>${login}</strong>`);
      const { url } = await browser.submit(consent, { decision: 'allow' }, isArrival);
      ids.push(
        (await server.get('/auth/me', { authorization: `Bearer ${fragmentOf(url)['access_token']}` })).body['id'],
      );
    }
    expect(ids[0]).toBe(ids[2]);
    expect(ids[0]).not.toBe(ids[1]);
  });

  it('that is refused its consent ends the login as declined', async () => {
    const server = await embedded();
    const browser = new Browser();
    const consent = await browser.submit(await loginPage(server, browser), { login: 'ada' });
    const { url } = await browser.submit(consent, { decision: 'deny' }, isArrival);
    expect(fragmentOf(url)).toEqual({ error: 'access_denied' });
  });

  it("takes only names that could be a login, and no other browser's step", async () => {
    const server = await embedded();
    const browser = new Browser();
    const page = await loginPage(server, browser);
    const bad = await browser.submit(page, { login: '<b>' });
    expect(bad.answer.status).toBe(400);
    expect(bad.answer.text).not.toContain('<b>');
    expect(await new Browser().visit(page.url)).toMatchObject({ status: 400, body: { error: 'invalid_state' } });
  });

  it('serves the device flow with our own page', async () => {
    const server = await embedded();
    const { body } = await server.post('/auth/device');
    const browser = new Browser();
    const code = await browser.submit(await browser.follow(String(body['verification_uri_complete'])), {
      user_code: String(body['user_code']),
    });
    const told = await browser.submit(code, { login: 'ada' });
    const consent = await browser.submit(told, { decision: 'allow' });
    expect(consent.answer.text).toContain('Let this device act as you?');
    await browser.submit(consent, { decision: 'allow' });
    expect((await server.post('/auth/device/token', { device_code: body['device_code'] })).body).toMatchObject({
      status: 'authorized',
      user: { git_host_login: 'ada' },
    });
  });

  it('puts the headers of the server on its own answers too, errors included', async () => {
    const server = await embedded();
    for (const path of [
      '/.well-known/openid-configuration',
      '/jwks',
      '/nothing',
      '/auth?client_id=x',
      '/interaction/none',
    ]) {
      const { headers } = await server.get(`/auth/embedded${path}`);
      for (const [name, value] of [
        ['x-content-type-options', 'nosniff'],
        ['x-frame-options', 'DENY'],
        ['x-xss-protection', '1; mode=block'],
        ['referrer-policy', 'strict-origin-when-cross-origin'],
        ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
        ['strict-transport-security', 'max-age=31536000; includeSubDomains'],
        ['cache-control', 'no-store'],
      ])
        expect([path, name, headers.get(name ?? '')]).toEqual([path, name, value]);
    }
  });

  it('tells pages of other origins nothing, and what it does not have as JSON', async () => {
    const server = await embedded();
    for (const path of ['/.well-known/openid-configuration', '/jwks', '/auth?client_id=x', '/nothing']) {
      const { headers } = await server.get(`/auth/embedded${path}`, { origin: 'https://elsewhere.example' });
      expect([path, [...headers.keys()].filter((name) => name.startsWith('access-control-'))]).toEqual([path, []]);
    }
    expect(await server.get('/auth/embedded/nothing')).toMatchObject({ status: 404, body: { error: 'not_found' } });
  });

  it('sends a browser that came by the name localhost to the address of the callback first', async () => {
    const server = await embedded();
    const { hostname, port } = new URL(server.url);
    const request = get({ hostname, port, path: '/auth/web/login', headers: { host: `localhost:${port}` } });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    expect([response.statusCode, response.headers.location]).toEqual([302, `${server.url}/auth/web/login`]);
  });

  it('is not there in production mode, nor where another provider is configured', async () => {
    for (const server of [await world.server(), await world.server({ mode: 'production' })]) {
      expect((await server.get('/auth/embedded/.well-known/openid-configuration')).status).toBe(404);
    }
  });
});

const browserPath = chromiumFor('logins in a browser');

describe.skipIf(browserPath === undefined)('in a real browser', () => {
  let browser: RealBrowser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(() => browser.close());

  /** What the console complains of, violations of the policy included. */
  function complaintsOf(page: Page): string[] {
    const complaints: string[] = [];
    page.on('console', (message) => {
      // Every browser asks for an icon, and there is none; the dashboard is the gateway's, which is not here.
      const isAbsent = /\/favicon\.ico$|\/dashboard\/auth\/callback/u.test(message.location().url);
      if (message.type() === 'error' && !isAbsent) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(String(error)));
    return complaints;
  }

  it('the login leads over both pages to the dashboard, with the tokens in its address, without a word of complaint', async () => {
    const server = await embedded();
    const context = await browser.newContext();
    const page = await context.newPage();
    const complaints = complaintsOf(page);
    await page.goto(`${server.url}/auth/web/login`);
    await page.getByLabel('Login name').fill('ada');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.waitForURL(/\/dashboard\/auth\/callback#/u);
    const fragment = fragmentOf(page.url());
    expect((await server.get('/auth/me', { authorization: `Bearer ${fragment['access_token']}` })).body).toMatchObject({
      git_host_login: 'ada',
    });
    expect(complaints).toEqual([]);
    await context.close();
  });

  it('a device is approved: code, login, consent', async () => {
    const server = await embedded();
    const { body } = await server.post('/auth/device');
    const context = await browser.newContext();
    const page = await context.newPage();
    const complaints = complaintsOf(page);
    await page.goto(String(body['verification_uri']));
    await page.getByLabel('The code').fill(String(body['user_code']));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('Login name').fill('grace');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByRole('heading', { name: 'Let this device act as you?' }).waitFor();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByRole('heading', { name: 'The device is logged in' }).waitFor();
    expect((await server.post('/auth/device/token', { device_code: body['device_code'] })).body).toMatchObject({
      status: 'authorized',
      user: { git_host_login: 'grace' },
    });
    expect(complaints).toEqual([]);
    await context.close();
  });
});
