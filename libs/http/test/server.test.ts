/** The server under all routes, with routes of its own here: limits, proxies, bodies, and what never becomes a request. */
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { buildServer, routesOf, SECURITY_HEADERS, type ServerOptions } from '../src/index.ts';
import { BODY_BYTES_MAX } from '../src/server.ts';
import { NotFound, Unavailable } from '@penstock/errors';
import { silentLog } from '@penstock/telemetry/log';

const MEBIBYTE = 1024 * 1024;
const WEBHOOK_BYTES_MAX = 25 * MEBIBYTE;
const ALL_HEADERS = Object.fromEntries(
  Object.entries(SECURITY_HEADERS).map(([name, value]) => [name.toLowerCase(), value]),
);

const servers: FastifyInstance[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

function server(options: Partial<ServerOptions> = {}): FastifyInstance {
  const app = buildServer({ corsOrigins: [], connectionsMax: 1_000, log: silentLog, ...options });
  servers.push(app);
  app.get('/read', { config: { tier: 'read' } }, () => ({ ok: true }));
  app.get('/who', { config: { tier: 'read' } }, (request) => ({ address: request.clientAddress }));
  app.get('/fails', { config: { tier: 'read' } }, () => {
    throw new Error('secret at /var/lib/secret');
  });
  app.get('/away', { config: { tier: 'read' } }, () => {
    throw new Unavailable('Not now.');
  });
  app.get('/gone', { config: { tier: 'read' } }, () => {
    throw new NotFound('Not here.');
  });
  app.get('/elsewhere', { config: { tier: 'read' } }, (_request, reply) => reply.redirect('/read'));
  app.get('/files/*', { config: { tier: 'read' } }, () => 'a file');
  app.post('/write', { config: { tier: 'api' } }, (request) => ({ got: request.body }));
  app.post('/owned', { config: { tier: 'webhook' } }, (request, reply) => {
    request.countFor('somebody', reply);
    return {};
  });
  app.post('/hook', { config: { tier: 'webhook' }, bodyLimit: WEBHOOK_BYTES_MAX }, (request) => ({
    bytes: JSON.stringify(request.body).length,
  }));
  return app;
}

async function listening(options: Partial<ServerOptions> = {}): Promise<number> {
  const app = server(options);
  await app.listen({ host: '127.0.0.1', port: 0 });
  return (app.server.address() as AddressInfo).port;
}

interface RawAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
  /** All that came, for what must not be in it. */
  readonly text: string;
}

/** Sends bytes and reads until the server closes. */
async function exchange(port: number, ...parts: readonly (string | Buffer)[]): Promise<RawAnswer> {
  const socket = connect(port, '127.0.0.1');
  const received: Buffer[] = [];
  socket.on('data', (bytes) => received.push(Buffer.from(bytes)));
  socket.on('error', () => {});
  for (const part of parts) socket.write(part);
  await once(socket, 'close');
  const text = Buffer.concat(received).toString();
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const [status = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
  return { status: Number(status.split(' ')[1]), headers, body, text };
}

describe('rate limits', () => {
  const rateLimits = { read: 3, api: 2, webhook: 1 };

  it('every answer of a limited route carries the limit and what remains; beyond it 429 with Retry-After and the body of REST errors', async () => {
    const app = server({ rateLimits });
    for (const [url, remaining] of [
      ['/read', '2'],
      ['/gone', '1'],
      ['/fails', '0'],
    ]) {
      const response = await app.inject(url ?? '');
      expect(response.headers).toMatchObject({ 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': remaining });
      expect(response.headers).not.toHaveProperty('retry-after');
    }
    const refused = await app.inject('/read');
    expect([refused.statusCode, refused.headers]).toEqual([
      429,
      expect.objectContaining({ ...ALL_HEADERS, 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '0' }),
    ]);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(60);
    expect(refused.json()).toEqual({ error: 'rate_limited', message: expect.any(String) });
  });

  it('the tiers do not share a budget, and HEAD counts as GET', async () => {
    const app = server({ rateLimits });
    for (let count = 0; count < 3; count++)
      expect((await app.inject({ method: 'HEAD', url: '/read' })).statusCode).toBe(200);
    const statuses = [];
    for (const [method, url] of [
      ['GET', '/read'],
      ['POST', '/write'],
      ['POST', '/write'],
      ['POST', '/write'],
      ['POST', '/hook'],
      ['POST', '/hook'],
    ] as const) {
      statuses.push((await app.inject({ method, url, ...(method === 'POST' ? { payload: {} } : {}) })).statusCode);
    }
    expect(statuses).toEqual([429, 200, 200, 429, 200, 429]);
  });

  it('a tier of 0 has no limit and no headers of one', async () => {
    const app = server({ rateLimits: { ...rateLimits, read: 0 } });
    for (let count = 0; count < 10; count++) {
      const response = await app.inject('/read');
      expect(response.statusCode).toBe(200);
      expect(Object.keys(response.headers).filter((name) => name.startsWith('x-ratelimit'))).toEqual([]);
    }
  });

  it('what an owner is refused costs the address nothing, up to ten times its budget', async () => {
    const app = server({ rateLimits });
    const ask = async (url: string): Promise<string> => {
      const response = await app.inject({ method: 'POST', url, payload: {} });
      return response.statusCode === 200 ? 'taken' : (response.json<{ message: string }>().message.split(':')[0] ?? '');
    };
    const [owners, addresses] = ['Too many requests that are yours', 'Too many requests from this address'];
    expect(await ask('/owned')).toBe('taken');
    for (let count = 0; count < 10; count++) expect(await ask('/owned')).toBe(owners);
    expect(await ask('/hook')).toBe('taken');
    expect(await ask('/owned')).toBe(addresses);
  });

  it('what an owner is refused beyond that counts for the address as well', async () => {
    const app = server({ rateLimits });
    const statuses: string[] = [];
    for (let count = 0; count < 13; count++) {
      const { message = 'taken' } = (await app.inject({ method: 'POST', url: '/owned', payload: {} })).json<{
        message?: string;
      }>();
      statuses.push(message.split(':')[0] ?? '');
    }
    expect(statuses).toEqual([
      'taken',
      ...Array.from({ length: 11 }, () => 'Too many requests that are yours'),
      'Too many requests from this address',
    ]);
  });

  it('a minute later the budget is there again', async () => {
    let now = 0;
    const app = server({ rateLimits, monotonicNow: () => now });
    const ask = async (): Promise<number> =>
      (await app.inject({ method: 'POST', url: '/hook', payload: {} })).statusCode;
    expect([await ask(), await ask()]).toEqual([200, 429]);
    now = 60_000;
    expect([await ask(), await ask()]).toEqual([200, 429]);
  });

  it('several gateways grant a share each, by their number at the time', async () => {
    let shares = 1;
    const app = server({ rateLimits: { read: 6, api: 6, webhook: 1, shares: () => shares } });
    shares = 3;
    const answers = [];
    for (let count = 0; count < 3; count++) answers.push(await app.inject('/read'));
    expect(
      answers.map(({ statusCode, headers }) => [
        statusCode,
        headers['x-ratelimit-limit'],
        headers['x-ratelimit-remaining'],
      ]),
    ).toEqual([
      [200, '6', '1'],
      [200, '6', '0'],
      [429, '6', '0'],
    ]);
    // Never nothing at all.
    expect((await app.inject({ method: 'POST', url: '/hook', payload: {} })).statusCode).toBe(200);
    shares = 1;
    expect((await app.inject('/read')).headers['x-ratelimit-remaining']).toBe('3');
  });

  it('preflights, unknown paths and wrong methods are not counted', async () => {
    const app = server({ rateLimits: { read: 1, api: 1, webhook: 1 }, corsOrigins: ['https://ok.example'] });
    for (let count = 0; count < 5; count++) {
      expect(
        (
          await app.inject({
            method: 'OPTIONS',
            url: '/write',
            headers: { origin: 'https://ok.example', 'access-control-request-method': 'POST' },
          })
        ).statusCode,
      ).toBe(204);
      expect((await app.inject('/write')).statusCode).toBe(405);
    }
    expect((await app.inject({ method: 'POST', url: '/write', payload: {} })).statusCode).toBe(200);
  });

  it('a refused request is refused before its body is read', async () => {
    const port = await listening({ rateLimits: { read: 1, api: 1, webhook: 1 } });
    const head = 'POST /write HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n';
    expect((await exchange(port, `${head}Content-Length: 2\r\n\r\n{}`)).status).toBe(200);
    const socket = connect(port, '127.0.0.1');
    socket.write(`${head}Content-Length: 1000\r\n\r\n{`);
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 429 /u);
    socket.destroy();
  });
});

describe('the address of a client', () => {
  const ask = (app: FastifyInstance, remoteAddress: string, forwarded?: string | string[]) =>
    app.inject({
      url: '/read',
      remoteAddress,
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    });

  it('1,000 requests with X-Forwarded-For of their own invention are limited as one client', async () => {
    const app = server({ rateLimits: { read: 10, api: 1, webhook: 1 } });
    let granted = 0;
    for (let count = 0; count < 1_000; count++) {
      const { statusCode } = await ask(app, '203.0.113.9', `198.51.${count >> 8}.${count & 255}`);
      if (statusCode === 200) granted += 1;
    }
    expect(granted).toBe(10);
  });

  it('behind a trusted proxy each client has its own budget, several headers being one list', async () => {
    const app = server({ rateLimits: { read: 1, api: 1, webhook: 1 }, trustProxy: ['10.0.0.0/8'] });
    const seen = [];
    for (const forwarded of ['198.51.100.1', '198.51.100.2', '203.0.113.77, 198.51.100.1', '198.51.100.2, 10.9.9.9'])
      seen.push((await ask(app, '10.0.0.1', forwarded)).statusCode);
    expect(seen).toEqual([200, 200, 429, 429]);
    const port = await listening({ trustProxy: ['127.0.0.1'] });
    const { body } = await exchange(
      port,
      'GET /who HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 198.51.100.2, 127.0.0.1\r\n\r\n',
    );
    expect(JSON.parse(body)).toEqual({ address: '198.51.100.2' });
  });

  it('the addresses of one /64 are one client, and an IPv4 address inside IPv6 is the IPv4 client', async () => {
    const app = server({ rateLimits: { read: 1, api: 1, webhook: 1 } });
    const statuses = [];
    for (const address of [
      '2001:db8:1:2::1',
      '2001:db8:1:2:aaaa::1',
      '2001:db8:1:3::1',
      '203.0.113.9',
      '::ffff:203.0.113.9',
    ])
      statuses.push((await ask(app, address)).statusCode);
    expect(statuses).toEqual([200, 429, 200, 200, 429]);
  });

  it('a header that is not believed is warned of, once a minute at most', async () => {
    let now = 0;
    const warnings: string[] = [];
    const log = {
      ...silentLog,
      warn: (fields: Record<string, unknown>, message: string) =>
        void warnings.push(`${String(fields['peer'])}: ${message}`),
    };
    const app = server({ log, trustProxy: ['10.0.0.1'], monotonicNow: () => now });
    await ask(app, '203.0.113.9');
    await ask(app, '10.0.0.1', '198.51.100.1');
    expect(warnings).toEqual([]);
    for (const at of [0, 1, 59_999, 60_000, 60_001]) {
      now = at;
      await ask(app, '203.0.113.9', '198.51.100.1');
    }
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toMatch(/^203\.0\.113\.9: X-Forwarded-For .* SERVICE_TRUST_PROXY/u);
  });

  it('a bad entry is refused at the start', () => {
    expect(() => server({ trustProxy: ['10.0.0.0/40'] })).toThrow(RangeError);
  });
});

describe('a server that only its own machine is to reach', () => {
  const statusFor = async (host: string): Promise<number> =>
    (await server({ loopbackHostsOnly: true }).inject({ url: '/read', headers: { host } })).statusCode;

  it('answers to the names of this machine, with or without a port', async () => {
    for (const host of ['127.0.0.1', '127.0.0.1:8080', 'localhost:8080', 'LOCALHOST', 'localhost.:80', '[::1]:8080'])
      expect([host, await statusFor(host)]).toEqual([host, 200]);
  });

  it('refuses any other name with 403 bad_host: a page elsewhere could have made it lead here', async () => {
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.nip.example:8080', '10.0.0.1', '0.0.0.0'])
      expect([host, await statusFor(host)]).toEqual([host, 403]);
    const answer = await server({ loopbackHostsOnly: true }).inject({
      url: '/read',
      headers: { host: 'evil.example' },
    });
    expect(answer.json()).toMatchObject({ error: 'bad_host', message: expect.stringContaining('SERVICE_BASE_URL') });
    expect(answer.headers).toMatchObject(ALL_HEADERS);
  });

  it('is not what a server is that others may reach', async () => {
    expect((await server().inject({ url: '/read', headers: { host: 'ci.example' } })).statusCode).toBe(200);
  });
});

describe('bodies', () => {
  const json = (bytes: number): string => JSON.stringify('x'.repeat(bytes - 2));
  const post = (port: number, path: string, body: string | ReadableStream, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      ...(typeof body === 'string' ? {} : { duplex: 'half' as const }),
    });

  const chunked = (bytes: number): ReadableStream => {
    let left = bytes;
    return new ReadableStream({
      pull(controller) {
        const size = Math.min(left, 64 * 1024);
        left -= size;
        controller.enqueue(new Uint8Array(size).fill(0x20));
        if (left === 0) controller.close();
      },
    });
  };

  it('1 MiB, and 25 MiB where the route says so, are read to the byte; one more is 413, and the client gets to read it', async () => {
    const port = await listening();
    for (const [path, limit] of [
      ['/write', BODY_BYTES_MAX],
      ['/hook', WEBHOOK_BYTES_MAX],
    ] as const) {
      const fitting = await post(port, path, json(limit));
      expect([path, fitting.status]).toEqual([path, 200]);
      await fitting.text();
      const tooLarge = await post(port, path, json(limit + 1));
      expect([path, tooLarge.status, await tooLarge.json()]).toEqual([
        path,
        413,
        { error: 'payload_too_large', message: expect.stringContaining(String(limit)) },
      ]);
      expect(Object.fromEntries(tooLarge.headers)).toMatchObject({ ...ALL_HEADERS, connection: 'close' });
    }
  });

  it('chunked bodies too', async () => {
    const port = await listening();
    const response = await post(port, '/write', chunked(3 * MEBIBYTE));
    expect([response.status, await response.json()]).toEqual([
      413,
      expect.objectContaining({ error: 'payload_too_large' }),
    ]);
    expect(Object.fromEntries(response.headers)).toMatchObject(ALL_HEADERS);
  });

  it('in crumbs are read no further than they cost something, and larger pieces are, however many', async () => {
    const port = await listening();
    const head = 'POST /hook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n';
    const socket = connect(port, '127.0.0.1');
    const closed = new Promise((resolve) => socket.on('error', () => {}).once('close', resolve));
    socket.write(`${head}\r\n${'1\r\n \r\n'.repeat(20_000)}`);
    const [crumbs] = (await once(socket, 'data')) as [Buffer];
    expect(crumbs.toString()).toMatch(/^HTTP\/1\.1 400 [^]*too many pieces/u);
    await closed;
    const few = `${'1\r\n \r\n'.repeat(9_000)}2\r\n{}\r\n0\r\n\r\n`;
    expect((await exchange(port, `${head}Connection: close\r\n\r\n`, few)).status).toBe(200);
    const pieces = `${`40\r\n${' '.repeat(64)}\r\n`.repeat(20_000)}2\r\n{}\r\n0\r\n\r\n`;
    expect((await exchange(port, `${head}Connection: close\r\n\r\n`, pieces)).status).toBe(200);
  });

  it('a character may begin in one piece and end in another', async () => {
    const port = await listening();
    const head = 'POST /write HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n';
    const socket = connect(port, '127.0.0.1');
    socket.write(`${head}Connection: close\r\n\r\n`);
    for (const byte of Buffer.from('{"text":"é€😀"}'))
      socket.write(Buffer.concat([Buffer.from('1\r\n'), Buffer.of(byte), Buffer.from('\r\n')]));
    socket.write('0\r\n\r\n');
    let text = '';
    for await (const piece of socket.setEncoding('utf8')) text += piece as string;
    expect(text).toMatch(/^HTTP\/1\.1 200 [^]*\{"got":\{"text":"é€😀"\}\}$/u);
  });

  it('a declared length beyond the limit is refused before a byte of it has come', async () => {
    const port = await listening();
    const socket = connect(port, '127.0.0.1');
    socket.write(
      `POST /write HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${2 ** 40}\r\n\r\n`,
    );
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 413 /u);
    await once(socket, 'close');
  });

  it('a compressed body is 415, whatever it would unpack to', async () => {
    const app = server();
    for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'GZIP']) {
      const response = await app.inject({
        method: 'POST',
        url: '/write',
        headers: { 'content-type': 'application/json', 'content-encoding': encoding },
        payload: gzipSync('{}'),
      });
      expect([encoding, response.statusCode, response.json<{ error: string }>().error]).toEqual([
        encoding,
        415,
        'unsupported_media_type',
      ]);
      expect(response.headers).toMatchObject({ ...ALL_HEADERS, 'accept-encoding': 'identity' });
    }
    expect(
      (
        await app.inject({
          method: 'POST',
          url: '/write',
          headers: { 'content-type': 'application/json', 'content-encoding': 'identity' },
          payload: '{}',
        })
      ).statusCode,
    ).toBe(200);
  });

  it('an empty body is none, whatever type it says it has; blanks are not JSON', async () => {
    const write = (payload: string) =>
      server().inject({ method: 'POST', url: '/write', headers: { 'content-type': 'application/json' }, payload });
    expect((await write('')).json()).toEqual({});
    expect(await write(' ')).toMatchObject({ statusCode: 400 });
  });
});

describe('what never becomes a request', () => {
  /** Behind each stands a request that must not be answered: a proxy in front would take it for another client's. */
  const SMUGGLED = 'GET /who HTTP/1.1\r\nHost: smuggled\r\n\r\n';
  const head = 'POST /write HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  const corpus: Readonly<Record<string, string | Buffer>> = {
    'two lengths': `${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    'two equal lengths': `${head}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`,
    'a list of lengths': `${head}Content-Length: 2, 2\r\n\r\n{}`,
    'a signed length': `${head}Content-Length: +2\r\n\r\n{}`,
    'a negative length': `${head}Content-Length: -2\r\n\r\n{}`,
    'a hexadecimal length': `${head}Content-Length: 0x2\r\n\r\n{}`,
    'a length too long for a number': `${head}Content-Length: 99999999999999999999999\r\n\r\n{}`,
    'an empty length': `${head}Content-Length: \r\n\r\n{}`,
    'length and chunks': `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'chunks and length': `${head}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`,
    'another transfer encoding': `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
    'chunked not last': `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
    'a blank before the colon': `${head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
    'a chunk size that is none': `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
    'a chunk size with a sign': `${head}Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n`,
    'a chunk longer than it says': `${head}Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n`,
    'bare line feeds': 'POST /write HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}',
    'a bare carriage return in a header': `${head}A: b\rTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}`,
    'NUL in a header': `${head}A: b\0c\r\nContent-Length: 2\r\n\r\n{}`,
    'a folded header': `${head}A: b\r\n Content-Length: 2\r\n\r\n`,
    'two hosts': 'GET /read HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n',
    'no host': 'GET /read HTTP/1.1\r\n\r\n',
    'another version': 'GET /read HTTP/9\r\n\r\n',
    'HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'no HTTP at all': 'hello\r\n\r\n',
    TLS: Buffer.from('16030100a5010000a10303', 'hex'),
  };

  it.each(Object.entries(corpus))(
    '%s: 400 with all headers, closed, and nothing after it is answered',
    async (_name, bytes) => {
      const { status, headers, body, text } = await exchange(await listening(), bytes, SMUGGLED);
      expect([status, headers, JSON.parse(body.slice(0, body.lastIndexOf('}') + 1))]).toEqual([
        400,
        expect.objectContaining(ALL_HEADERS),
        { error: 'bad_request', message: expect.any(String) },
      ]);
      expect(text.match(/HTTP\/1\.1 /gu)).toHaveLength(1);
      expect(text).not.toContain('"address"');
    },
  );
});

describe('headers of every response', () => {
  const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'];

  it('of every route by every method, with and without a token and a body, redirects, errors and refusals too', async () => {
    const app = server({ corsOrigins: ['https://ok.example'], rateLimits: { read: 27, api: 60, webhook: 60 } });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const paths = [...new Set(routesOf(app).map(({ url }) => url.replace('*', 'a/b')))];
    expect(paths).toEqual([
      '/read',
      '/who',
      '/fails',
      '/away',
      '/gone',
      '/elsewhere',
      '/files/a/b',
      '/write',
      '/owned',
      '/hook',
    ]);
    const seen = new Set<number>();
    for (const path of [...paths, '/nothing', '*']) {
      for (const method of METHODS) {
        for (const more of [
          '',
          'Authorization: Bearer wrong\r\nOrigin: https://ok.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n',
        ]) {
          const { status, headers } = await exchange(
            port,
            `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n${more === '' ? '' : '{}'}`,
          );
          expect([method, path, status, headers]).toEqual([
            method,
            path,
            expect.any(Number),
            expect.objectContaining(ALL_HEADERS),
          ]);
          seen.add(status);
        }
      }
    }
    expect([...seen].sort()).toEqual([200, 204, 302, 404, 405, 429, 500, 503]);
  });

  it('an internal error tells the client the id of its request and nothing else; the log has the cause', async () => {
    const logged: Record<string, unknown>[] = [];
    const app = server({ log: { ...silentLog, error: (fields) => void logged.push(fields) } });
    const response = await app.inject('/fails?token=secret');
    expect([response.statusCode, Object.keys(response.json<object>())]).toEqual([500, ['error', 'message']]);
    expect(response.body).not.toContain('secret');
    expect(response.json<{ message: string }>().message).toContain(String(logged[0]?.['requestId']));
    expect(logged[0]?.['err']).toMatchObject({ message: 'secret at /var/lib/secret' });
    expect(logged[0]?.['path']).toBe('/fails');
  });

  it('an address in full, as a proxy is sent it, is its path', async () => {
    const port = await listening();
    const ask = async (method: string, path: string): Promise<number> =>
      (await exchange(port, `${method} http://x${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)).status;
    expect([await ask('GET', '/read'), await ask('PUT', '/read'), await ask('GET', '/nothing')]).toEqual([
      200, 405, 404,
    ]);
  });

  it('Vary keeps Origin where a route has a Vary of its own', async () => {
    const app = server({ corsOrigins: ['https://ok.example'] });
    app.get('/varies', { config: { tier: 'read' } }, (_request, reply) =>
      reply.header('Vary', 'Authorization').send('x'),
    );
    expect((await app.inject('/varies')).headers['vary']).toBe('Authorization, Origin');
    expect((await app.inject('/read')).headers['vary']).toBe('Origin');
  });

  it('a path with a wildcard is known to have a method or not', async () => {
    const response = await server().inject({ method: 'POST', url: '/files/a/b' });
    expect([response.statusCode, response.headers['allow']]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });

  it('the tier of every route is known, and where it is missing', () => {
    const app = server();
    app.get('/forgotten', () => 'x');
    expect(
      routesOf(app)
        .filter(({ tier }) => tier === undefined)
        .map(({ url }) => url),
    ).toEqual(['/forgotten', '/forgotten']);
    expect(routesOf(app).find(({ url }) => url === '/hook')).toEqual({
      url: '/hook',
      methods: ['POST'],
      tier: 'webhook',
      bodyBytesMax: WEBHOOK_BYTES_MAX,
    });
  });
});
