import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { routesOf } from '@penstock/http';
import { API_KEY, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

/** As the specification words them. */
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-xss-protection': '1; mode=block',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
};
const ORIGIN = 'https://ok.example';
const JSON_POST = { method: 'POST', url: '/graphql', headers: { 'content-type': 'application/json' } } as const;

describe('information', () => {
  it('GET / answers name, version and endpoints, without authentication', async () => {
    const app = await world.gateway({ publicRead: false });
    const response = await app.inject('/');
    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toMatch(/^application\/json/u);
    expect(response.json()).toEqual({
      name: 'penstock',
      version: '0.6.0',
      endpoints: { graphql: '/graphql', health: '/health', webhook: '/webhook' },
    });
  });

  it('GET /health answers the plain text ok, without authentication', async () => {
    const app = await world.gateway({ publicRead: false });
    const response = await app.inject({ url: '/health', headers: { authorization: 'Bearer wrong' } });
    expect([response.statusCode, response.headers['content-type'], response.body]).toEqual([
      200,
      expect.stringMatching(/^text\/plain/u),
      'ok',
    ]);
  });

  it('GET /ready answers 503 with the reason while no scheduler can commit', async () => {
    const app = await world.gateway();
    await world.owner.leave();
    const response = await app.inject('/ready');
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/u)]);
    expect(response.json()).toMatchObject({
      error: 'unavailable',
      message: expect.stringContaining('no scheduler can commit'),
    });
  });

  it('GET /ready answers 503 while the server is stopping, and /health goes on', async () => {
    let isStopping = false;
    const app = await world.gateway({ isStopping: () => isStopping });
    expect((await app.inject('/ready')).statusCode).toBe(200);
    isStopping = true;
    const response = await app.inject('/ready');
    expect([response.statusCode, response.json()]).toMatchObject([
      503,
      { message: 'Not ready: the server is stopping.' },
    ]);
    expect((await app.inject('/health')).statusCode).toBe(200);
  });

  it('GET /ready answers 200 while broker and store answer, else 503 with Retry-After and what is missing', async () => {
    const app = await world.gateway();
    expect((await app.inject('/ready')).statusCode).toBe(200);
    const broken = await world.gateway({
      store: { ping: () => Promise.reject(new Error('away')), collection: (spec) => world.store.collection(spec) },
    });
    const response = await broken.inject('/ready');
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/u)]);
    expect(response.json()).toMatchObject({ error: 'unavailable', message: expect.stringContaining('store') });
  });
});

describe('paths and methods', () => {
  it('an unknown path is 404 with a JSON body, whatever the method', async () => {
    const app = await world.gateway();
    const body = JSON.stringify({ error: 'not_found', message: 'There is nothing at /nothing.' });
    for (const method of ['GET', 'POST', 'OPTIONS', 'DELETE', 'HEAD'] as const) {
      const response = await app.inject({ method, url: '/nothing?token=SECRET' });
      expect([method, response.statusCode, response.body]).toEqual([method, 404, method === 'HEAD' ? '' : body]);
    }
  });

  it('a known path with the wrong method is 405 with Allow', async () => {
    const app = await world.gateway();
    const wrong: [InjectOptions['method'], string, string][] = [
      ['POST', '/', 'GET, HEAD, OPTIONS'],
      ['DELETE', '/health', 'GET, HEAD, OPTIONS'],
      ['PUT', '/ready', 'GET, HEAD, OPTIONS'],
      ['GET', '/graphql', 'OPTIONS, POST'],
      ['GET', '/graphql?query=%7Bhealth%7D', 'OPTIONS, POST'],
      ['HEAD', '/graphql', 'OPTIONS, POST'],
      ['PATCH', '/graphql', 'OPTIONS, POST'],
      ['POST', `/pipeline/${runIdFor()}/logs`, 'GET, HEAD, OPTIONS'],
    ];
    for (const [method, url, allow] of wrong) {
      const response = await app.inject({ ...(method === undefined ? {} : { method }), url });
      expect([url, response.statusCode, response.headers['allow']]).toEqual([url, 405, allow]);
      expect(response.body).toMatch(method === 'HEAD' ? /^$/u : /^\{"error":"method_not_allowed","message":"/u);
    }
  });

  it('HEAD is answered where GET is, and OPTIONS with 204 and Allow', async () => {
    const app = await world.gateway();
    const head = await app.inject({ method: 'HEAD', url: '/health' });
    expect([head.statusCode, head.body]).toEqual([200, '']);
    const options = await app.inject({ method: 'OPTIONS', url: '/graphql' });
    expect([options.statusCode, options.headers['allow'], options.body]).toEqual([204, 'OPTIONS, POST', '']);
  });
});

describe('bodies of POST /graphql', () => {
  const post = (app: FastifyInstance, payload: string, type = 'application/json') =>
    app.inject({ ...JSON_POST, headers: { 'content-type': type }, payload });

  it('malformed JSON is 400 with error and message', async () => {
    const app = await world.gateway();
    for (const payload of ['{', '', 'health', '{"query":"{ health }"', '{"query":"{ health }","__proto__":{"a":1}}']) {
      const response = await post(app, payload);
      expect([payload, response.statusCode]).toEqual([payload, 400]);
      expect(response.json()).toEqual({ error: 'bad_request', message: expect.any(String) });
    }
  });

  it('a body without a query, or with fields of other types, is 400 and names the field at fault', async () => {
    const app = await world.gateway();
    const bodies: readonly (readonly [body: unknown, field?: string])[] = [
      [{}, 'query'],
      [{ query: 5 }, 'query'],
      [{ query: '' }, 'query'],
      [null],
      ['x'],
      [5],
      [{ query: '{ health }', variables: [] }, 'variables'],
      [{ query: '{ health }', variables: 'x' }, 'variables'],
      [{ query: '{ health }', operationName: 5 }, 'operationName'],
      [{ query: '{ health }', operationName: 'no name' }, 'operationName'],
      [{ query: '{ health }', extensions: [] }, 'extensions'],
    ];
    for (const [body, field] of bodies) {
      const response = await post(app, JSON.stringify(body));
      expect([body, response.statusCode]).toEqual([body, 400]);
      const details = field === undefined ? {} : { details: { field } };
      expect(response.json()).toEqual({ error: 'bad_request', message: expect.any(String), ...details });
    }
  });

  it('variables and operationName may be null or absent', async () => {
    const app = await world.gateway();
    for (const body of [
      { query: '{ health }' },
      { query: '{ health }', variables: null, operationName: null },
      { query: '{ health }', variables: {}, operationName: '' },
    ]) {
      expect((await post(app, JSON.stringify(body))).json()).toEqual({ data: { health: 'ok' } });
    }
  });

  it('batches are refused', async () => {
    const app = await world.gateway();
    const response = await post(app, JSON.stringify([{ query: '{ health }' }, { query: '{ health }' }]));
    expect([response.statusCode, response.json()]).toEqual([
      400,
      { error: 'bad_request', message: expect.stringContaining('Batches') },
    ]);
  });

  it('any other content type than application/json is 415, so that no form of another site can send it', async () => {
    const app = await world.gateway();
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/graphql',
    ]) {
      const response = await post(app, '{"query":"{ health }"}', type);
      expect([type, response.statusCode, response.json<{ error: string }>().error]).toEqual([
        type,
        415,
        'unsupported_media_type',
      ]);
    }
    expect((await post(app, '{"query":"{ health }"}', 'application/json; charset=utf-8')).statusCode).toBe(200);
  });

  it('a body over 1 MiB is 413', async () => {
    const app = await world.gateway();
    const response = await post(
      app,
      JSON.stringify({ query: '{ health }', variables: { x: 'x'.repeat(1024 * 1024) } }),
    );
    expect([response.statusCode, response.json()]).toEqual([
      413,
      { error: 'payload_too_large', message: expect.any(String) },
    ]);
  });

  it('a body nested deeper than any request is 400, and one with a key __proto__', async () => {
    const app = await world.gateway();
    const nested = (depth: number): string =>
      `{"query":"{ health }","variables":{"x":${'['.repeat(depth)}${']'.repeat(depth)}}}`;
    expect((await post(app, nested(90))).statusCode).toBe(200);
    for (const payload of [
      nested(101),
      nested(200_000),
      '{"query":"{ health }","variables":{"__proto__":{"isAdmin":true}}}',
    ]) {
      const response = await post(app, payload);
      expect([response.statusCode, response.json()]).toEqual([
        400,
        { error: 'bad_request', message: expect.any(String) },
      ]);
    }
  });
});

describe('CORS', () => {
  it('without listed origins there is no CORS header', async () => {
    const app = await world.gateway();
    for (const request of [{ url: '/' }, { method: 'OPTIONS', url: '/graphql' }] as const) {
      const response = await app.inject({
        ...request,
        headers: { origin: ORIGIN, 'access-control-request-method': 'POST' },
      });
      expect(Object.keys(response.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  it('a preflight of a listed origin: GET, POST, OPTIONS; Content-Type, Authorization; one hour', async () => {
    const app = await world.gateway({ corsOrigins: [ORIGIN] });
    const response = await app.inject({
      method: 'OPTIONS',
      url: '/graphql',
      headers: {
        origin: ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type',
      },
    });
    expect(response.statusCode).toBe(204);
    expect(response.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-allow-headers': 'Content-Type, Authorization',
      'access-control-max-age': '3600',
      vary: 'Origin',
    });
  });

  it('answers of any kind to a listed origin carry it, errors too, with Vary: Origin', async () => {
    const app = await world.gateway({ corsOrigins: ['http://localhost:3000', ORIGIN] });
    for (const url of ['/', '/health', '/nothing', '/graphql', `/pipeline/${runIdFor()}/logs`]) {
      const response = await app.inject({ url, headers: { origin: ORIGIN } });
      expect(response.headers).toMatchObject({ 'access-control-allow-origin': ORIGIN, vary: 'Origin' });
      expect(response.headers).not.toHaveProperty('access-control-allow-credentials');
    }
  });

  it('an origin is matched exactly', async () => {
    const app = await world.gateway({ corsOrigins: [ORIGIN] });
    for (const origin of [
      'null',
      'http://ok.example',
      'https://ok.example.evil.com',
      'https://evil-ok.example',
      'https://ok.example:8443',
      'https://OK.example',
      `${ORIGIN}/`,
    ]) {
      for (const method of ['GET', 'OPTIONS'] as const) {
        const response = await app.inject({
          method,
          url: '/graphql',
          headers: { origin, 'access-control-request-method': 'POST' },
        });
        expect(response.headers).not.toHaveProperty('access-control-allow-origin');
        expect(response.headers).toMatchObject({ vary: 'Origin' });
      }
    }
  });

  it('what is no origin is refused at the start', async () => {
    for (const origin of ['*', 'ok.example', 'https://ok.example/path', 'null', ''])
      await expect(world.gateway({ corsOrigins: [origin] })).rejects.toThrow(RangeError);
  });
});

describe('every route', () => {
  const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'] as const;
  /** How the policies of pages begin; every other answer has that of an API. */
  const DASHBOARD_POLICY =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'";
  const PLAYGROUND_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-";
  const policyOf = (url: string, isPage: boolean): string => {
    if (isPage && url === '/graphql/playground') return PLAYGROUND_POLICY;
    // Where the dashboard has not been built, its address answers 503 as an API would.
    if (isPage && url === '/dashboard/x') return DASHBOARD_POLICY;
    return SECURITY_HEADERS['content-security-policy'];
  };
  const everything = {
    corsOrigins: [ORIGIN],
    playground: true,
    rateLimits: { read: 10_000, api: 10_000, webhook: 10_000 },
  };

  it('says which rate limit it counts for', async () => {
    const routes = routesOf(await world.gateway(everything));
    expect(routes.length).toBeGreaterThan(5);
    expect(routes.filter(({ tier }) => tier === undefined)).toEqual([]);
    const tiers = Object.fromEntries(routes.map(({ url, tier }) => [url, tier]));
    expect(tiers).toMatchObject({
      '/': 'read',
      '/health': 'read',
      '/ready': 'read',
      '/graphql': 'api',
      '/graphql/playground': 'read',
      '/pipeline/:id/logs': 'read',
    });
  });

  it('by every method, with a key, a wrong key and none, answers with all security headers, CORS, and the limit where it has one', async () => {
    const app = await world.gateway(everything);
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.commit(id, [happened.runCompleted()]);
    const routes = routesOf(app);
    for (const { url: pattern } of new Map(routes.map((route) => [route.url, route])).values()) {
      const url = pattern.replace(':id', id).replace(/:\w+|\*/gu, 'x');
      const methods = routes.filter((route) => route.url === pattern).flatMap((route) => route.methods);
      for (const method of METHODS) {
        for (const authorization of [undefined, `Bearer ${API_KEY}`, 'Bearer wrong']) {
          // A stream that has no end; `run-changes.test.ts` looks at its headers.
          if (url === '/runs/events' && method === 'GET' && authorization !== 'Bearer wrong') continue;
          const response = await app.inject({
            method: method as 'GET',
            url,
            headers: {
              origin: ORIGIN,
              ...(authorization === undefined ? {} : { authorization }),
              ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
            },
            ...(method === 'POST' ? { payload: '{}' } : {}),
          });
          const own = methods.includes(method);
          const policy = policyOf(url, response.statusCode === 200);
          const { 'content-security-policy': answered, ...headers } = response.headers;
          expect([method, url, String(answered).slice(0, policy.length)]).toEqual([method, url, policy]);
          const { 'content-security-policy': _policy, ...others } = SECURITY_HEADERS;
          expect([method, url, headers]).toEqual([
            method,
            url,
            expect.objectContaining({
              ...others,
              ...(own ? { 'x-ratelimit-limit': '10000' } : {}),
              'access-control-allow-origin': ORIGIN,
              vary: expect.stringMatching(/(?:^|, )Origin$/u),
            }),
          ]);
          const refused = method === 'OPTIONS' ? response.statusCode === 204 : response.statusCode === 405;
          expect([method, url, response.statusCode, refused && 'allow' in headers]).toEqual([
            method,
            url,
            response.statusCode,
            !own,
          ]);
        }
      }
    }
  });

  it('log streams, malformed addresses and bodies too large have them too', async () => {
    const app = await world.gateway(everything);
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.commit(id, [happened.runCompleted()]);
    const requests: readonly [InjectOptions, number][] = [
      [{ url: `/pipeline/${id}/logs?token=${API_KEY}` }, 200],
      [{ url: `/pipeline/${id}/logs` }, 401],
      [{ url: '/pipeline/x/logs', headers: { authorization: `Bearer ${API_KEY}` } }, 404],
      [{ url: '/%ff' }, 400],
      [{ url: '/nothing' }, 404],
      [{ ...JSON_POST, payload: '{' }, 400],
      [{ ...JSON_POST, payload: 'x'.repeat(2 * 1024 * 1024) }, 413],
      [{ method: 'POST', url: '/graphql', headers: { 'content-type': 'text/plain' }, payload: 'x' }, 415],
    ];
    for (const [request, status] of requests) {
      const response = await app.inject(request);
      expect([request.url, response.statusCode, response.headers]).toEqual([
        request.url,
        status,
        expect.objectContaining(SECURITY_HEADERS),
      ]);
    }
  });
});

it.each(['logs', 'artifacts/a', 'artifacts/a/f'])(
  '/pipeline/<id>/%s of a run that nobody has is 404 alike, however long its id is',
  async (rest) => {
    const app = await world.gateway();
    const headers = { authorization: `Bearer ${API_KEY}` };
    const answers = await Promise.all(
      [runIdFor(), 'x', 'x'.repeat(300), '%c3%a9'.repeat(1_000), 'x'.repeat(12_000)].map((id) =>
        app.inject({ url: `/pipeline/${id}/${rest}`, headers }),
      ),
    );
    expect(answers[0]?.statusCode).toBe(404);
    expect(answers[0]?.json()).toEqual({ error: 'not_found', message: expect.stringContaining('no such') });
    expect(new Set(answers.map(({ statusCode, body }) => `${statusCode} ${body}`)).size).toBe(1);
    expect((await app.inject({ url: `/pipeline/${'x'.repeat(300)}/${rest}` })).statusCode).toBe(401);
  },
);

describe('rate limits', () => {
  it('beyond the limit POST /graphql is 429 with the body of REST errors, and reading goes on', async () => {
    const app = await world.gateway({ rateLimits: { read: 5, api: 2, webhook: 1 } });
    const answers = [];
    for (let count = 0; count < 3; count++)
      answers.push(await app.inject({ ...JSON_POST, payload: '{"query":"{ health }"}' }));
    expect(
      answers.map(({ statusCode, headers }) => [
        statusCode,
        headers['x-ratelimit-limit'],
        headers['x-ratelimit-remaining'],
      ]),
    ).toEqual([
      [200, '2', '1'],
      [200, '2', '0'],
      [429, '2', '0'],
    ]);
    expect([answers[2]?.json(), answers[2]?.headers['retry-after']]).toEqual([
      { error: 'rate_limited', message: expect.any(String) },
      expect.stringMatching(/^\d+$/u),
    ]);
    expect((await app.inject('/health')).headers).toMatchObject({
      'x-ratelimit-limit': '5',
      'x-ratelimit-remaining': '4',
    });
  });

  it('log streams count as read, and carry the limit', async () => {
    const app = await world.gateway({ rateLimits: { read: 2, api: 1, webhook: 1 } });
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.commit(id, [happened.runCompleted()]);
    const url = `/pipeline/${id}/logs?token=${API_KEY}`;
    expect((await app.inject(url)).headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
    });
    expect((await app.inject('/')).statusCode).toBe(200);
    expect((await app.inject(url)).statusCode).toBe(429);
  });
});

describe('bare connections', () => {
  async function listening(options: Parameters<World['gateway']>[0] = {}): Promise<number> {
    const app = await world.gateway(options);
    await app.listen({ host: '127.0.0.1', port: 0 });
    return (app.server.address() as AddressInfo).port;
  }

  /** Sends bytes and reads until the server closes. */
  async function exchange(
    port: number,
    text: string | Buffer,
  ): Promise<{ readonly status: number; readonly headers: Record<string, string>; readonly body: string }> {
    const socket = connect(port, '127.0.0.1');
    const received: Buffer[] = [];
    socket.on('data', (bytes) => received.push(Buffer.from(bytes)));
    socket.on('error', () => {});
    socket.write(text);
    await once(socket, 'close');
    const [head = '', body = ''] = Buffer.concat(received).toString().split('\r\n\r\n');
    const [status = '', ...lines] = head.split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
    );
    return { status: Number(status.split(' ')[1]), headers, body };
  }

  it('malformed requests are answered 400 with JSON and all security headers, and the connection is closed', async () => {
    const port = await listening();
    const malformed = {
      'no HTTP': 'hello\r\n\r\n',
      'another version': 'GET / HTTP/9\r\n\r\n',
      'an unknown method': 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n',
      'no Host': 'GET / HTTP/1.1\r\n\r\n',
      'two lengths': 'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello',
      'length and chunks':
        'POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'a header without a name': 'GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n',
      'a folded header': 'GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n',
      'bytes of TLS': Buffer.from('16030100a5010000a10303', 'hex'),
    };
    for (const [name, text] of Object.entries(malformed)) {
      const { status, headers, body } = await exchange(port, text);
      expect([name, status, headers]).toEqual([name, 400, expect.objectContaining(SECURITY_HEADERS)]);
      expect(JSON.parse(body)).toMatchObject({ error: 'bad_request', message: expect.any(String) });
    }
  });

  it('headers over 16 KiB are 431, an expectation that cannot be met 417, both with all security headers', async () => {
    const port = await listening();
    const large = await exchange(port, `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect([large.status, large.headers]).toEqual([431, expect.objectContaining(SECURITY_HEADERS)]);
    const expecting = await exchange(port, 'GET / HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\nConnection: close\r\n\r\n');
    expect([expecting.status, expecting.headers]).toEqual([417, expect.objectContaining(SECURITY_HEADERS)]);
  });

  it('methods that HTTP knows and no route has are 405', async () => {
    const port = await listening();
    for (const method of ['PROPFIND', 'TRACE', 'MKCOL', 'QUERY', 'CONNECT']) {
      const { status, headers } = await exchange(port, `${method} / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expect([method, status, headers]).toEqual([
        method,
        405,
        expect.objectContaining({ ...SECURITY_HEADERS, allow: 'GET, HEAD, OPTIONS' }),
      ]);
    }
  });

  it('a proxy is not what this is: CONNECT to another address is 404', async () => {
    const { status, headers, body } = await exchange(
      await listening(),
      'CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    expect([status, headers, JSON.parse(body)]).toEqual([
      404,
      expect.objectContaining(SECURITY_HEADERS),
      expect.objectContaining({ error: 'not_found' }),
    ]);
  });

  it('what has no route is 404 or 405 whatever its body is', async () => {
    const port = await listening();
    const body = 'Host: x\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{x';
    expect((await exchange(port, `PUT /graphql HTTP/1.1\r\n${body}`)).status).toBe(405);
    expect((await exchange(port, `POST /nothing HTTP/1.1\r\n${body}`)).status).toBe(404);
  });

  it('HTTP/1.0 without a Host is served', async () => {
    const port = await listening();
    expect(await exchange(port, 'GET /health HTTP/1.0\r\n\r\n')).toMatchObject({ status: 200, body: 'ok' });
  });

  it('a declared body over 1 MiB is refused without being read', async () => {
    const port = await listening();
    const { status, headers } = await exchange(
      port,
      `POST /graphql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${2 ** 30}\r\n\r\n{`,
    );
    expect([status, headers]).toEqual([413, expect.objectContaining(SECURITY_HEADERS)]);
  });

  it('connections beyond the cap are closed at once, and slow headers have a limit', async () => {
    const app = await world.gateway({ connectionsMax: 1 });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const first = connect(port, '127.0.0.1');
    await once(first, 'connect');
    first.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(first, 'data');
    const second = connect(port, '127.0.0.1');
    second.on('error', () => {});
    await once(second, 'close');
    expect(second.bytesRead).toBe(0);
    first.destroy();
    expect(app.server.headersTimeout).toBe(10_000);
    expect(app.server.requestTimeout).toBe(30_000);
  });
});
