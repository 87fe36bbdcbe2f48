/** Access tokens, refresh tokens, logout. */
import { buckets, watchLeases } from '@penstock/bus';
import { callAuth, revocationKeys, signAccessToken, type AccessClaims, type Revocation } from '@penstock/identity';
import { asked } from '@penstock/testkit';
import { decodeJwt, decodeProtectedHeader, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, JWT_SECRET, loginByWeb, makeWorld, type Answer, type TestServer, type World } from './support.ts';

let world: World;
let server: TestServer;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

interface Login {
  readonly access: string;
  readonly refresh: string;
}

async function login(): Promise<Login> {
  const { access_token: access = '', refresh_token: refresh = '' } = await loginByWeb(server);
  return { access, refresh };
}

const refresh = (token: unknown, more: object = {}): Promise<Answer> =>
  server.post('/auth/refresh', { refresh_token: token, ...more });
const me = (token: string): Promise<Answer> => server.get('/auth/me', { authorization: `Bearer ${token}` });
const refused = { status: 401, body: { error: 'unauthenticated' } };

describe('an access token', () => {
  it('is what every verifier expects: algorithm, type, issuer, audience, 15 minutes', async () => {
    server = await world.server();
    const { access } = await login();
    expect(decodeProtectedHeader(access)).toEqual({ alg: 'HS256', typ: 'at+jwt' });
    const claims = decodeJwt(access);
    expect(claims).toMatchObject({
      iss: 'penstock',
      aud: 'penstock-api',
      email: ALICE.email,
      tier: 'free',
      admin: false,
      sid: expect.any(String),
      jti: expect.any(String),
    });
    expect((claims.exp ?? 0) - (claims.iat ?? 0)).toBe(900);
  });

  it('is refused alike for whatever is wrong with it', async () => {
    server = await world.server();
    const { access, refresh: refreshToken } = await login();
    const claims = decodeJwt(access) as unknown as AccessClaims & { iat: number; exp: number };
    const secret = new TextEncoder().encode(JWT_SECRET);
    const signed = (changes: object, header: object = {}, key: Uint8Array = secret): Promise<string> =>
      new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', ...header }).sign(key);
    const unsigned = `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${access.split('.')[1]}.`;
    const bad = [
      unsigned,
      `${access}x`,
      access.split('.').slice(0, 2).join('.'),
      'x',
      '',
      await signed({}, {}, new TextEncoder().encode('another secret of more than 32 bytes!')),
      await signed({ exp: undefined }),
      await signed({ exp: claims.iat - 61 }),
      await signed({ aud: 'other' }),
      await signed({ iss: 'other' }),
      await signed({ sub: undefined }),
      await signed({ sid: undefined }),
      await signed({}, { typ: 'JWT' }),
      await signed({}, { kid: '../../dev/null' }),
      await signed({}, { alg: 'HS512' }),
      refreshToken,
      `svc_${'a'.repeat(37)}`,
    ];
    expect((await me(access)).status).toBe(200);
    const answers = await Promise.all(bad.map(me));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]).toMatchObject(refused);
    expect(answers[0]?.headers.get('www-authenticate')).toBe('Bearer');
  });

  it('is sent in the header and nowhere else', async () => {
    server = await world.server();
    const { access } = await login();
    expect(await server.get(`/auth/me?token=${access}`)).toMatchObject(refused);
    expect(await server.get('/auth/me')).toMatchObject(refused);
    expect(await server.get('/auth/me', { authorization: `Basic ${access}` })).toMatchObject(refused);
  });

  it('is over after 15 minutes', async () => {
    server = await world.server();
    const { access } = await login();
    world.aheadMs = 900_000 + 61_000;
    expect(await me(access)).toMatchObject(refused);
  });

  it('of a session that never was is worth nothing, however well signed', async () => {
    server = await world.server();
    const { access } = await login();
    const { sub, email, tier, admin, at } = decodeJwt(access) as unknown as AccessClaims;
    expect(
      await me(await signAccessToken(JWT_SECRET, { sub, sid: crypto.randomUUID(), email, tier, admin, at })),
    ).toMatchObject(refused);
  });
});

describe('a refresh token', () => {
  it('gives a new access token and the user, and stays as it is', async () => {
    server = await world.server();
    const { refresh: token } = await login();
    for (let round = 0; round < 2; round += 1) {
      const answer = await refresh(token);
      expect(answer).toMatchObject({
        status: 200,
        body: { access_token: expect.any(String), user: { id: expect.any(String), email: ALICE.email, tier: 'free' } },
      });
      expect(Object.keys(answer.body).toSorted()).toEqual(['access_token', 'user']);
      expect((await me(String(answer.body['access_token']))).status).toBe(200);
    }
  });

  it('lives 30 days, whatever is done with it', async () => {
    server = await world.server();
    const { refresh: token } = await login();
    world.aheadMs = 29 * 86_400_000;
    const { body } = await refresh(token, { rotate: true });
    world.aheadMs = 30 * 86_400_000 + 1_000;
    expect(await refresh(token)).toMatchObject(refused);
    expect(await refresh(body['refresh_token'])).toMatchObject(refused);
  });

  it.each([
    ['', {}],
    [' for another successor', { rotate: true }],
  ])('that was rotated and comes again%s is theft: all that came of the login is dead', async (_, more) => {
    server = await world.server();
    const { access: first, refresh: old } = await login();
    const { body } = await refresh(old, { rotate: true });
    expect(body['refresh_token']).not.toBe(old);
    const { body: renewed } = await refresh(body['refresh_token']);
    const accesses = [first, body['access_token'], renewed['access_token']].map(String);
    for (const access of accesses) expect((await me(access)).status).toBe(200);
    expect(await refresh(old, more)).toMatchObject(refused);
    expect(await refresh(body['refresh_token'])).toMatchObject(refused);
    for (const access of accesses) expect(await me(access)).toMatchObject(refused);
    expect(await refresh(old, more)).toMatchObject(refused);
    expect(world.audit.at(-1)).toMatchObject({ action: 'refresh.reuse' });
  });

  it("one that is spent ends its own session and none of the user's others", async () => {
    server = await world.server();
    const [{ refresh: old }, other] = [await login(), await login()];
    await refresh(old, { rotate: true });
    expect(await refresh(old)).toMatchObject(refused);
    expect((await me(other.access)).status).toBe(200);
    expect((await refresh(other.refresh)).status).toBe(200);
  });

  it('rotated several times at once gives one successor, and ends with all that came of it', async () => {
    server = await world.server();
    const { refresh: old } = await login();
    const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(old, { rotate: true })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401, 401]);
    const got = answers.find(({ status }) => status === 200)?.body ?? {};
    expect(await refresh(got['refresh_token'])).toMatchObject(refused);
    expect(await me(String(got['access_token']))).toMatchObject(refused);
  });

  it.each([
    ['unknown', 'rt_unknown'],
    ['of another kind', 'x'],
    ['too long', `rt_${'x'.repeat(5_000)}`],
  ])('that is %s is refused', async (_, token) => {
    server = await world.server();
    expect(await refresh(token)).toMatchObject(refused);
    expect(await server.post('/auth/logout', { refresh_token: token })).toMatchObject(refused);
  });

  it('is looked for where it belongs: missing and mistyped fields are bad requests', async () => {
    server = await world.server();
    for (const body of [{}, { refresh_token: 7 }, { refresh_token: '' }, { refresh_token: null }, [], 'text', 7]) {
      expect(await server.post('/auth/refresh', body)).toMatchObject({ status: 400, body: { error: 'bad_request' } });
      expect(await server.post('/auth/logout', body)).toMatchObject({ status: 400, body: { error: 'bad_request' } });
    }
    const { refresh: token } = await login();
    expect(await refresh(token, { rotate: 'yes' })).toMatchObject({
      status: 400,
      body: { error: 'bad_request', details: { field: 'rotate' } },
    });
  });
});

describe('a body', () => {
  const TYPES = ['application/x-www-form-urlencoded', 'text/plain;charset=UTF-8', 'json', '', undefined];

  it.each(TYPES)('of the content type %j is read as JSON on every route of the API', async (type) => {
    server = await world.server();
    const post = (path: string, body?: string): Promise<Answer> =>
      asked(`${server.url}${path}`, {
        method: 'POST',
        headers: type === undefined ? {} : { 'content-type': type },
        // As bytes: of a text `fetch` names the type itself.
        ...(body === undefined ? {} : { body: Buffer.from(body) }),
      });
    const begun = await post('/auth/device', '{}');
    expect(begun).toMatchObject({ status: 200, body: { device_code: expect.any(String) } });
    expect(await post('/auth/device')).toMatchObject({ status: 200 });
    const poll = JSON.stringify({ device_code: begun.body['device_code'] });
    expect(await post('/auth/device/token', poll)).toMatchObject({ status: 200, body: { status: 'pending' } });
    const session = JSON.stringify({ refresh_token: (await login()).refresh });
    expect(await post('/auth/refresh', session)).toMatchObject({ status: 200 });
    expect(await post('/auth/logout', session)).toMatchObject({ status: 200, body: { status: 'ok' } });
    for (const path of ['/auth/device', '/auth/device/token', '/auth/refresh', '/auth/logout'])
      for (const body of ['{', 'refresh_token=x&device_code=x', '[]', '7'])
        expect([path, body, await post(path, body)]).toMatchObject([
          path,
          body,
          { status: 400, body: { error: 'bad_request' } },
        ]);
    for (const path of ['/auth/device/token', '/auth/refresh', '/auth/logout'])
      for (const body of [undefined, '', '{}'])
        expect([path, body, (await post(path, body)).status]).toEqual([path, body, 400]);
  });
});

describe('a logout', () => {
  it("ends all sessions of the user at once, and nobody else's", async () => {
    server = await world.server();
    const [one, two] = [await login(), await login()];
    world.host.account = { id: 1_000, login: 'bob' };
    const bob = await login();
    expect(await server.post('/auth/logout', { refresh_token: one.refresh })).toMatchObject({
      status: 200,
      body: { status: 'ok' },
    });
    for (const { access, refresh: token } of [one, two]) {
      expect(await me(access)).toMatchObject(refused);
      expect(await refresh(token)).toMatchObject(refused);
      expect(await server.post('/auth/logout', { refresh_token: token })).toMatchObject(refused);
    }
    expect((await me(bob.access)).status).toBe(200);
    expect(world.audit.at(-1)).toMatchObject({ action: 'logout', outcome: 'ok' });
    world.host.account = ALICE;
    expect((await me((await login()).access)).status).toBe(200);
  });

  it('has told every watcher of revocations before it answers, and those that come later', async () => {
    server = await world.server();
    const { access, refresh: token } = await login();
    const { sub, sid, at } = decodeJwt(access) as unknown as AccessClaims;
    const heard = new Map<string, Revocation>();
    const both = Promise.withResolvers<void>();
    const watch = watchLeases<Revocation>(world.bus, buckets.revocations, (event) => {
      if (event.kind === 'put') heard.set(event.key, event.value);
      if (heard.has(revocationKeys.user(sub)) && heard.has(revocationKeys.session(sid))) both.resolve();
    });
    await watch.ready;
    await server.post('/auth/logout', { refresh_token: token });
    await both.promise;
    expect(heard.get(revocationKeys.user(sub))?.before).toBeGreaterThanOrEqual(at);
    watch.stop();
    const late = new Set<string>();
    const later = watchLeases<Revocation>(world.bus, buckets.revocations, (event) => void late.add(event.key));
    await later.ready;
    expect(late).toContain(revocationKeys.session(sid));
    later.stop();
    expect(await callAuth(world.bus, 'session', { sid })).toEqual({ live: false, userId: null });
  });

  it('that cannot be made known is not done: 503, and everything is as before', async () => {
    server = await world.server();
    const { access, refresh: token } = await login();
    world.broker.pause();
    try {
      expect(await server.post('/auth/logout', { refresh_token: token })).toMatchObject({
        status: 503,
        body: { error: 'unavailable' },
      });
      expect((await me(access)).status).toBe(200);
    } finally {
      world.broker.resume();
    }
    expect((await server.post('/auth/logout', { refresh_token: token })).status).toBe(200);
  });
});

it('a user has at most a hundred sessions: the oldest ends for a new one', async () => {
  server = await world.server();
  world.host.account = { id: 5_000, login: 'script' };
  const first = await login();
  for (let index = 0; index < 100; index += 1) await login();
  expect(await refresh(first.refresh)).toMatchObject(refused);
});
