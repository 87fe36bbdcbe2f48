/** The doors of `penstock serve` as a stranger finds them: nothing here knows more than the specification does. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, trigger, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

const ORIGIN = 'https://ok.example';
const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'x-xss-protection': '1; mode=block',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000; includeSubDomains',
};
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'];

interface RawAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
}

/** One request as bytes, for `fetch` refuses some methods; the status and the headers of the answer. */
async function ask(
  server: RunningServer,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<RawAnswer> {
  const { host, hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  const lines = Object.entries({
    Host: host,
    Connection: 'close',
    ...(body === '' ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  socket.on('error', () => {});
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
    // Of a log stream that stays open the headers are all that is wanted.
    if (text.includes('\r\n\r\n')) socket.destroy();
  });
  await once(socket, 'close');
  const [status = '', ...rest] = (text.split('\r\n\r\n')[0] ?? '').split('\r\n');
  return {
    status: Number(status.split(' ')[1]),
    headers: Object.fromEntries(
      rest.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
    ),
  };
}

describe('every path by every method', () => {
  let server: RunningServer;
  let runId: string;
  beforeAll(async () => {
    server = await startServer({ arguments: ['--cors-origins', ORIGIN] });
    runId = await trigger(server, 'pipeline:\n  name: doors\nstages:\n  a:\n    run: echo hello\n');
    await readStream(`${server.url}/pipeline/${runId}/logs`, server.apiKey);
  });
  afterAll(() => server.stop());

  it('answers with the whole set of security headers and with CORS, whoever asks', async () => {
    const paths = [
      '/',
      '/health',
      '/ready',
      '/graphql',
      '/graphql/playground',
      '/auth/device',
      '/auth/device/token',
      '/auth/web/login',
      '/auth/callback/web',
      '/auth/refresh',
      '/auth/logout',
      '/auth/me',
      `/pipeline/${runId}/logs`,
      '/pipeline/nothing/logs',
      '/webhook',
      '/nothing',
      '/%ff',
      '*',
    ];
    const callers = [{}, { Authorization: `Bearer ${server.apiKey}` }, { Authorization: 'Bearer wrong' }];
    const answered = await Promise.all(
      paths.map(async (path) => {
        const seen = [];
        for (const method of METHODS) {
          for (const caller of callers)
            seen.push({
              method,
              path,
              ...(await ask(server, method, path, { Origin: ORIGIN, ...caller }, method === 'POST' ? '{}' : '')),
            });
        }
        return seen;
      }),
    );
    for (const { method, path, status, headers } of answered.flat()) {
      expect([method, path, status, headers]).toEqual([
        method,
        path,
        expect.any(Number),
        expect.objectContaining(SECURITY_HEADERS),
      ]);
      expect([method, path, status < 600]).toEqual([method, path, true]);
    }
    const statuses = new Set(answered.flat().map(({ status }) => status));
    for (const status of [200, 204, 400, 401, 404, 405, 415]) expect([...statuses]).toContain(status);
    const crossed = answered.flat().filter(({ method }) => method !== 'CONNECT');
    expect(crossed.filter(({ headers }) => headers['access-control-allow-origin'] !== ORIGIN)).toEqual([]);
    expect(answered.flat().filter(({ status, headers }) => status === 405 && headers['allow'] === undefined)).toEqual(
      [],
    );
  });

  it('bytes that are no request, and bodies that are too large, too', async () => {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.write('GET / HTTP/9\r\n\r\n');
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    for (const [name, value] of Object.entries(SECURITY_HEADERS))
      expect(bytes.toString().toLowerCase()).toContain(`${name}: ${value}`.toLowerCase());
    socket.destroy();
    const large = await fetch(`${server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: 'x'.repeat(1024 * 1024) }),
    });
    expect([large.status, await large.json(), Object.fromEntries(large.headers)]).toEqual([
      413,
      { error: 'payload_too_large', message: expect.any(String) },
      expect.objectContaining(SECURITY_HEADERS),
    ]);
  });

  it('a preflight of the listed origin is granted for an hour, one of another is not', async () => {
    const preflight = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' };
    const granted = await ask(server, 'OPTIONS', '/graphql', { Origin: ORIGIN, ...preflight });
    expect(granted.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'GET, POST, OPTIONS',
      'access-control-allow-headers': 'Content-Type, Authorization',
      'access-control-max-age': '3600',
    });
    for (const origin of ['null', 'http://ok.example', 'https://ok.example.evil.com']) {
      expect(
        Object.keys((await ask(server, 'OPTIONS', '/graphql', { Origin: origin, ...preflight })).headers).filter(
          (name) => name.startsWith('access-control'),
        ),
      ).toEqual([]);
    }
  });

  it('the playground is 404 without its flag', async () => {
    expect((await ask(server, 'GET', '/graphql/playground')).status).toBe(404);
  });

  it('tokens in the address of a log stream are in none of its lines', async () => {
    const canary = 'CANARY-token-in-an-address';
    expect((await ask(server, 'GET', `/pipeline/${runId}/logs?token=${canary}`)).status).toBe(401);
    expect((await ask(server, 'GET', `/nothing?token=${canary}`)).status).toBe(404);
    expect(server.output()).not.toContain(canary);
  });
});

describe('rate limits', () => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startServer({
      arguments: ['--playground'],
      env: {
        SERVICE_RATE_LIMIT_READ: '5',
        SERVICE_RATE_LIMIT_API: '3',
        SERVICE_RATE_LIMIT_WEBHOOK: '2',
        SERVICE_INTROSPECTION: 'false',
      },
    });
  });
  afterAll(() => server.stop());

  it('each tier has a budget of its own a minute, the variables set it, and a stranger’s X-Forwarded-For changes nothing', async () => {
    const query = (forwarded: string) =>
      ask(
        server,
        'POST',
        '/graphql',
        { 'Content-Type': 'application/json', 'X-Forwarded-For': forwarded },
        '{"query":"{ health }"}',
      );
    const answers = [];
    for (let count = 0; count < 5; count++) answers.push(await query(`198.51.100.${count}`));
    expect(
      answers.map(({ status, headers }) => [status, headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]),
    ).toEqual([
      [200, '3', '2'],
      [200, '3', '1'],
      [200, '3', '0'],
      [429, '3', '0'],
      [429, '3', '0'],
    ]);
    expect(Number(answers[4]?.headers['retry-after'])).toBeGreaterThan(0);
    expect(answers[4]?.headers).toMatchObject(SECURITY_HEADERS);
    expect(server.output()).toContain('SERVICE_TRUST_PROXY');

    const reads = [];
    for (let count = 0; count < 4; count++) reads.push(await ask(server, 'GET', '/health'));
    reads.push(await ask(server, 'GET', '/graphql/playground'), await ask(server, 'GET', '/'));
    expect(reads.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429]);
  });
});
