/** The device flow, run by the provider and by ourselves. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { asked } from '@penstock/testkit';
import { ALICE, Browser, makeWorld, type Answer, type TestServer, type World } from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const poll = (server: TestServer, code: unknown): Promise<Answer> =>
  server.post('/auth/device/token', { device_code: code });
const codeOf = (answer: Answer): string => String(answer.body['device_code']);

describe('the device flow of the provider', () => {
  it('gives a code to show and an address to open, with the documented life and interval', async () => {
    const server = await world.server();
    const { status, body } = await server.post('/auth/device');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      user_code: 'WDJB-MJHT',
      verification_uri: `${world.host.url}/login/device`,
      expires_in: 900,
      interval: 5,
    });
    expect(codeOf({ body } as Answer).length).toBeGreaterThan(30);
  });

  it('is pending until the user approves, and then gives tokens and the user, once', async () => {
    const server = await world.server();
    const code = codeOf(await server.post('/auth/device'));
    expect(await poll(server, code)).toMatchObject({
      status: 200,
      body: { status: 'pending', error: 'authorization_pending' },
    });
    world.host.device = 'authorized';
    const { status, body, headers } = await poll(server, code);
    expect(status).toBe(200);
    expect(body).toEqual({
      status: 'authorized',
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      user: {
        id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/u),
        email: ALICE.email,
        name: ALICE.name,
        git_host_login: 'alice',
        avatar_url: ALICE.avatarUrl,
        tier: 'free',
      },
    });
    expect(headers.get('cache-control')).toBe('no-store');
    expect(await poll(server, code)).toMatchObject({
      status: 400,
      body: { status: 'expired', error: 'expired_token', message: expect.stringContaining('has been used') },
    });
    expect(world.audit).toMatchObject([{ action: 'login.device', outcome: 'ok' }]);
  });

  it.each([
    ['denied', { status: 'denied', error: 'access_denied' }],
    ['expired', { status: 'expired', error: 'expired_token' }],
  ] as const)('tells that it is %s, now and later', async (device, told) => {
    const server = await world.server();
    const code = codeOf(await server.post('/auth/device'));
    world.host.device = device;
    expect(await poll(server, code)).toMatchObject({ status: 400, body: told });
    world.host.device = 'authorized';
    expect(await poll(server, code)).toMatchObject({ status: 400, body: told });
  });

  it('passes on that the provider wants it slower', async () => {
    const server = await world.server();
    const code = codeOf(await server.post('/auth/device'));
    world.host.device = 'slow_down';
    expect(await poll(server, code)).toMatchObject({
      status: 200,
      body: { status: 'pending', error: 'slow_down', interval: 10 },
    });
  });

  it('tells a client that polls far too fast to slow down, for good, and yet gives it what is decided', async () => {
    const server = await world.server();
    const code = codeOf(await server.post('/auth/device'));
    expect((await poll(server, code)).body).toMatchObject({ error: 'authorization_pending' });
    expect((await poll(server, code)).body).toEqual({ status: 'pending', error: 'slow_down', interval: 10 });
    expect((await poll(server, code)).body).toEqual({ status: 'pending', error: 'slow_down', interval: 15 });
    world.aheadMs = 14_000;
    expect((await poll(server, code)).body).toMatchObject({ error: 'authorization_pending' });
    world.host.device = 'authorized';
    expect((await poll(server, code)).body).toMatchObject({ status: 'authorized' });
  });

  it('is over after 900 s', async () => {
    const server = await world.server();
    const code = codeOf(await server.post('/auth/device'));
    world.aheadMs = 901_000;
    world.host.device = 'authorized';
    expect(await poll(server, code)).toMatchObject({
      status: 400,
      body: { status: 'expired', error: 'expired_token' },
    });
  });

  it('does not know a code that it never gave, however many come; ten a minute are told to the audit log', async () => {
    const server = await world.server();
    const real = codeOf(await server.post('/auth/device'));
    const refused = { status: 400, body: { error: 'invalid_grant' } };
    for (let index = 0; index < 15; index += 1) expect(await poll(server, `guess ${index}`)).toMatchObject(refused);
    expect((await poll(server, real)).body).toMatchObject({ status: 'pending' });
    expect(world.audit.map(({ action, outcome }) => [action, outcome])).toEqual(
      Array.from({ length: 10 }, () => ['login', 'invalid_grant']),
    );
    world.passedMs = 61_000;
    expect(await poll(server, 'another')).toMatchObject(refused);
    expect(world.audit.length).toBe(11);
    expect(world.host.requests.filter((path) => path.endsWith('access_token')).length).toBe(1);
  });

  it('is 503 while the provider is away', async () => {
    const server = await world.server();
    const code = codeOf(await server.post('/auth/device'));
    world.host.broken = true;
    for (const answer of [await server.post('/auth/device'), await poll(server, code)]) {
      expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable' } });
      expect(answer.headers.get('retry-after')).not.toBeNull();
    }
  });

  it.each([[undefined], [7], [''], [null], [['x']], [{}]])(
    'refuses the device code %j as a bad request',
    async (code) => {
      const server = await world.server();
      expect(await poll(server, code)).toMatchObject({
        status: 400,
        body: { error: 'bad_request', details: { field: 'device_code' } },
      });
    },
  );

  it("seals the provider's code into the one that the client holds: without our secret nobody reads it", async () => {
    const server = await world.server();
    const code = codeOf(await server.post('/auth/device'));
    const other = await world.server({ jwtSecret: 'another-secret-of-more-than-32-bytes' });
    expect((await poll(other, code)).body).toMatchObject({ status: 'expired' });
  });
});

/** The fake host without a device flow of its own. */
async function ownProvider(): Promise<Record<string, string>> {
  world.host.device = 'unsupported';
  return {
    provider: 'github',
    baseUrl: world.host.url,
    apiUrl: world.host.url,
    clientId: 'client-1',
    clientSecret: 'client-secret-1',
  };
}

/** From the code to the page that asks for consent. */
async function atConsent(
  server: TestServer,
  browser = new Browser(),
): Promise<{ readonly code: string; readonly browser: Browser; readonly page: { url: string; answer: Answer } }> {
  const { body } = await server.post('/auth/device', {}, { 'user-agent': 'test <terminal>' });
  const start = await browser.follow(String(body['verification_uri']));
  const page = await browser.submit(start, { user_code: String(body['user_code']).toLowerCase() });
  return { code: String(body['device_code']), browser, page };
}

async function approved(server: TestServer): Promise<{ readonly code: string }> {
  const { code, browser, page } = await atConsent(server);
  const done = await browser.submit(page, { decision: 'allow' });
  expect(done.answer.text).toContain('The device is logged in');
  return { code };
}

describe('our own device flow, where the provider has none', () => {
  it('has codes of eight letters that cannot be misread, and a page of our own', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const { body } = await server.post('/auth/device');
    expect(body).toMatchObject({
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/u),
      verification_uri: `${server.url}/auth/device/verify`,
      verification_uri_complete: `${server.url}/auth/device/verify?user_code=${String(body['user_code'])}`,
      expires_in: 900,
      interval: 5,
    });
  });

  it('leads through code, login and consent to tokens', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const { code, browser, page } = await atConsent(server);
    expect(page.url).toBe(`${server.url}/auth/device/consent`);
    expect(page.answer.text).toContain('<strong>alice</strong>');
    expect(page.answer.text).toContain('127.0.0.1');
    expect(page.answer.text).toContain('test &lt;terminal&gt;');
    expect((await poll(server, code)).body).toMatchObject({ status: 'pending' });
    await browser.submit(page, { decision: 'allow' });
    expect((await poll(server, code)).body).toMatchObject({ status: 'authorized', user: { git_host_login: 'alice' } });
    expect(world.audit.map(({ action }) => action)).toEqual(['device.approved', 'login.device']);
    // Decided once: going back and allowing again changes nothing.
    expect((await browser.visit(`${server.url}/auth/device/consent`)).status).toBe(400);
  });

  it('an address with the code in it leads to the login at once, and the code is shown where it is allowed', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const { body } = await server.post('/auth/device');
    const browser = new Browser();
    const page = await browser.follow(String(body['verification_uri_complete']));
    expect(page.url).toBe(`${server.url}/auth/device/consent`);
    expect(page.answer.text).toContain(String(body['user_code']));
    expect(await poll(server, String(body['device_code']))).toMatchObject({ body: { status: 'pending' } });
    await browser.submit(page, { decision: 'allow' });
    expect((await poll(server, String(body['device_code']))).body['status']).toBe('authorized');
    // Who guesses by addresses is told no more than who guesses by the form.
    const guess = (): Promise<Answer> => server.get('/auth/device/verify?user_code=BCDF-GHJK');
    for (let tries = 0; tries < 5; tries += 1) expect((await guess()).status).toBe(200);
    expect((await guess()).status).toBe(429);
    // A clock that is set back does not make the minute an hour.
    world.aheadMs = -3_600_000;
    const refused = await guess();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  });

  it('of two polls at a time one gets the session', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const { code } = await approved(server);
    const answers = await Promise.all([poll(server, code), poll(server, code), poll(server, code)]);
    expect(answers.map(({ body }) => body['status']).toSorted()).toEqual(['authorized', 'expired', 'expired']);
  });

  it('a refusal is told to the client', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const { code, browser, page } = await atConsent(server);
    expect((await browser.submit(page, { decision: 'deny' })).answer.text).toContain('Refused');
    expect(await poll(server, code)).toMatchObject({ status: 400, body: { status: 'denied', error: 'access_denied' } });
  });

  it('a login that is declined at the provider refuses the device', async () => {
    const server = await world.server({ provider: await ownProvider() });
    world.host.consent = 'declined';
    const { code, page } = await atConsent(server);
    expect(page.answer.text).toContain('Refused');
    expect(await poll(server, code)).toMatchObject({ status: 400, body: { status: 'denied' } });
  });

  it('nothing is approved by opening pages, nor by a POST from elsewhere', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const { code, browser, page } = await atConsent(server);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const consent = `${server.url}/auth/device/consent`;
    await browser.visit(`${consent}?decision=allow`);
    const csrf = /name="csrf" value="([^"]+)"/u.exec(page.answer.text)?.[1] ?? '';
    // Without the page's value; with it and without the cookie; with it in another browser that has a login of its own.
    expect((await browser.visit(consent, { method: 'POST', headers: form, body: 'decision=allow' })).status).toBe(403);
    expect(
      (await new Browser().visit(consent, { method: 'POST', headers: form, body: `decision=allow&csrf=${csrf}` }))
        .status,
    ).toBe(403);
    const other = await atConsent(server);
    expect(
      (await other.browser.visit(consent, { method: 'POST', headers: form, body: `decision=allow&csrf=${csrf}` }))
        .status,
    ).toBe(403);
    expect((await poll(server, code)).body).toMatchObject({ status: 'pending' });
  });

  it('a wrong code is named as such, and the sixth from an address is not looked at', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const browser = new Browser();
    const page = await browser.follow(`${server.url}/auth/device/verify?user_code=%3Cb%3E`);
    expect(page.answer.text).toContain('value="&lt;b&gt;"');
    for (let index = 0; index < 5; index += 1)
      expect((await browser.submit(page, { user_code: 'BCDF-GHJK' })).answer).toMatchObject({
        status: 400,
        text: expect.stringContaining('No login is waiting for this code.') as unknown,
      });
    expect((await browser.submit(page, { user_code: 'BCDF-GHJK' })).answer.status).toBe(429);
    world.passedMs = 61_000;
    expect((await browser.submit(page, { user_code: 'BCDF-GHJK' })).answer.status).toBe(400);
  });

  it('its pages let in one style sheet of their own, and take forms alone, where the API takes none', async () => {
    const server = await world.server({ provider: await ownProvider() });
    const { headers, text } = await server.get('/auth/device/verify');
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]+='; frame-ancestors 'none'$/u,
    );
    expect(text).not.toMatch(/<script|style=|<img|onload/u);
    const send = (path: string, type: string, body: string): Promise<Answer> =>
      asked(`${server.url}${path}`, { method: 'POST', headers: { 'content-type': type }, body });
    expect(await send('/auth/device', 'application/x-www-form-urlencoded', 'a=b')).toMatchObject({
      status: 400,
      body: { error: 'bad_request', message: 'The body is not well-formed JSON.' },
    });
    for (const path of ['/auth/device/verify', '/auth/device/consent'])
      expect((await send(path, 'text/plain', 'user_code=BCDF-GHJK&decision=allow')).status).toBe(415);
  });
});
