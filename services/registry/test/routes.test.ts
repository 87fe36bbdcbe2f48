import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FastifyInstance } from 'fastify';
import type { AuditEntry } from '@penstock/store';
import { buildServer } from '@penstock/http';
import { silentLog } from '@penstock/telemetry/log';
import { Callers, type Caller } from '@penstock/identity';
import { ObjectsUnavailable } from '@penstock/object-store';
import type { Registry } from '../src/testing.ts';
import { rangeOf } from '@penstock/http';
import { addRegistryRoutes } from '../src/doors/routes.ts';
import { hashOf, makeWorld, packageOf, publish, user, type World } from './support.ts';

const API_KEY = 'an-api-key-of-a-test';
const KINDS: Readonly<Record<string, Caller>> = {
  'user-a': {
    kind: 'user',
    readTenants: ['user/a'],
    writeTenant: 'user/a',
    user: { id: 'a', email: 'a@example.com', tier: 'pro', isAdmin: false },
  },
  'user-b': {
    kind: 'user',
    readTenants: ['user/b'],
    writeTenant: 'user/b',
    user: { id: 'b', email: 'b@example.com', tier: 'pro', isAdmin: false },
  },
  'user-free': {
    kind: 'user',
    readTenants: ['user/f'],
    writeTenant: 'user/f',
    user: { id: 'f', email: 'f@example.com', tier: 'free', isAdmin: false },
  },
  'token-publish': {
    kind: 'token',
    readTenants: ['user/a'],
    writeTenant: 'user/a',
    scopes: ['publish'],
    user: { id: 'a', email: 'a@example.com', tier: 'pro', isAdmin: false },
  },
  'token-read': {
    kind: 'token',
    readTenants: ['user/a'],
    writeTenant: 'user/a',
    scopes: ['read'],
    user: { id: 'a', email: 'a@example.com', tier: 'pro', isAdmin: false },
  },
};

let world: World;
let registry: Registry;
let app: FastifyInstance;
const audit: AuditEntry[] = [];
let bytes: Buffer;
let open: string;
let hidden: string;

beforeAll(async () => {
  world = await makeWorld();
  registry = world.registry();
  app = buildServer({ corsOrigins: [], connectionsMax: 100, log: silentLog });
  const callers = new Callers({
    apiKey: API_KEY,
    publicRead: false,
    authenticators: [(token) => KINDS[token] ?? null],
  });
  addRegistryRoutes(app, { registry, callers, audit: { record: (entry) => void audit.push(entry) } });
  bytes = await packageOf({ id: 'build/open', note: 'x'.repeat(200_000) });
  open = (await publish(registry, user('a'), { id: 'build/open', note: 'x'.repeat(200_000) })).version.packageHash;
  hidden = (await publish(registry, user('a'), { id: 'build/hidden' }, { visibility: 'private' })).version.packageHash;
});
afterAll(async () => {
  await app.close();
  await world.close();
});

const as = (token: string | null): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token}` };
const get = (
  hash: string,
  token: string | null = null,
  headers: Record<string, string> = {},
  method: 'GET' | 'HEAD' = 'GET',
) => app.inject({ method, url: `/registry/packages/${hash}`, headers: { ...as(token), ...headers } });
const put = (hash: string, payload: Buffer, token: string | null = API_KEY, headers: Record<string, string> = {}) =>
  app.inject({
    method: 'PUT',
    url: `/registry/packages/${hash}`,
    payload,
    headers: { 'content-type': 'application/gzip', ...as(token), ...headers },
  });

describe('an upload that is refused', () => {
  it('is in the audit log with who tried it; without a credential it says nothing about anybody', async () => {
    audit.length = 0;
    const package_ = await packageOf({ id: 'build/refused' });
    await put(hashOf(package_), package_, 'user-free');
    await put(hashOf(package_), package_, 'token-read');
    await put(hashOf(package_), package_, null);
    const refused = { action: 'request', target: 'PUT /registry/packages/:hash', outcome: 'FORBIDDEN' };
    expect(audit).toEqual([
      expect.objectContaining({ ...refused, actor: 'user/f' }),
      expect.objectContaining({ ...refused, actor: expect.stringContaining('of user/a') }),
    ]);
  });
});

describe('a download', () => {
  it('has the bytes, their hash as ETag, and the headers of every response', async () => {
    const response = await get(open);
    expect(response.statusCode).toBe(200);
    expect(hashOf(response.rawPayload)).toBe(open);
    expect(response.headers).toMatchObject({
      etag: `"${open}"`,
      'content-type': 'application/gzip',
      'content-length': String(bytes.length),
      'accept-ranges': 'bytes',
      'x-content-type-options': 'nosniff',
      'cache-control': 'public, max-age=31536000, immutable',
    });
  });
  it('of what is known already is 304', async () => {
    expect(await get(open, null, { 'if-none-match': `W/"x", "${open}"` })).toMatchObject({
      statusCode: 304,
      payload: '',
    });
    expect(await get(open, null, { 'if-none-match': '"x"' })).toMatchObject({ statusCode: 200 });
  });
  it('of a range is 206 with those bytes alone', async () => {
    const response = await get(open, null, { range: 'bytes=100-199' });
    expect(response.statusCode).toBe(206);
    expect(response.headers).toMatchObject({
      'content-range': `bytes 100-199/${bytes.length}`,
      'content-length': '100',
    });
    expect(response.rawPayload.equals(bytes.subarray(100, 200))).toBe(true);
    const rest = await get(open, null, { range: 'bytes=150000-', 'if-range': `"${open}"` });
    expect(rest.rawPayload.equals(bytes.subarray(150_000))).toBe(true);
  });
  it('of a range of other bytes is the whole', async () => {
    expect(await get(open, null, { range: 'bytes=0-1', 'if-range': '"other"' })).toMatchObject({ statusCode: 200 });
  });
  it('behind the end is 416', async () => {
    const response = await get(open, null, { range: `bytes=${bytes.length}-` });
    expect(response.statusCode).toBe(416);
    expect(response.headers['content-range']).toBe(`bytes */${bytes.length}`);
    expect(response.json()).toMatchObject({ error: 'range_not_satisfiable' });
  });
  it('by HEAD has the headers alone', async () => {
    expect(await get(open, null, {}, 'HEAD')).toMatchObject({
      statusCode: 200,
      payload: '',
      headers: { 'content-length': String(bytes.length), etag: `"${open}"` },
    });
  });
  it.each([
    ['user-a', 200],
    ['token-read', 200],
    ['user-b', 404],
    [API_KEY, 404],
    [null, 404],
    ['token-publish', 403],
    ['nonsense', 401],
  ])('of a private package as %s is %i', async (token, status) => {
    const response = await get(hidden, token);
    expect(response.statusCode).toBe(status);
    const cacheControl = response.headers['cache-control'];
    expect(cacheControl === undefined || cacheControl === 'private, max-age=31536000, immutable').toBe(true);
  });
  it('of a private package of others answers as one that nobody has', async () => {
    const [real, none] = [await get(hidden, 'user-b'), await get('0'.repeat(64), 'user-b')];
    expect(real.payload).toBe(none.payload);
    const own = { date: '', 'x-request-id': '' };
    expect({ ...real.headers, ...own }).toEqual({ ...none.headers, ...own });
  });
  it.each(['abc', 'A'.repeat(64), `${'0'.repeat(63)}g`])('of %s is 404', async (hash) => {
    expect((await get(hash)).statusCode).toBe(404);
  });
  it('of the whole is counted, of a range or by HEAD is not', async () => {
    const count = async (): Promise<number> =>
      (await registry.extension({ caller: user('a'), id: 'build/open' }))?.downloadCount ?? 0;
    const before = await count();
    await get(open);
    await get(open, null, { range: 'bytes=1-2' });
    await get(open, null, {}, 'HEAD');
    expect(await count()).toBe(before + 1);
    await registry.close();
    const other = world.registry();
    await other.load();
    expect(await other.extension({ caller: user('a'), id: 'build/open' })).toMatchObject({ downloadCount: before + 1 });
  });
});

describe('an upload', () => {
  it('is answered with its hash and size, and again', async () => {
    const some = await packageOf({ id: 'build/uploaded' });
    for (let time = 0; time < 2; time++) {
      const response = await put(hashOf(some), some);
      expect([response.statusCode, response.json()]).toEqual([201, { hash: hashOf(some), size: some.length }]);
    }
  });
  it.each([
    [API_KEY, 201],
    ['user-a', 201],
    ['token-publish', 201],
    ['token-read', 403],
    ['user-free', 403],
    [null, 401],
    ['nonsense', 401],
  ])('as %s is %i', async (token, status) => {
    const some = await packageOf({ id: 'build/uploaded' });
    expect((await put(hashOf(some), some, token)).statusCode).toBe(status);
  });
  it('of other bytes than announced is refused with the hash that they have', async () => {
    const some = Buffer.from('some bytes');
    const response = await put('0'.repeat(64), some);
    expect([response.statusCode, response.json()]).toMatchObject([
      400,
      { error: 'bad_request', details: { actual: hashOf(some) } },
    ]);
  });
  it('to what is no hash is 400', async () => {
    expect((await put('latest', Buffer.from('x'))).statusCode).toBe(400);
  });
  it('of another type is 415, of JSON too', async () => {
    for (const type of ['text/plain', 'multipart/form-data; boundary=x'])
      expect((await put('0'.repeat(64), Buffer.from('x'), API_KEY, { 'content-type': type })).statusCode).toBe(415);
    expect(
      (await put('0'.repeat(64), Buffer.from('{}'), API_KEY, { 'content-type': 'application/json' })).statusCode,
    ).toBe(415);
  });
  it('that says to be too long is 413 before it is read', async () => {
    const response = await app.inject({
      method: 'PUT',
      url: `/registry/packages/${'0'.repeat(64)}`,
      payload: Buffer.alloc(10),
      headers: { 'content-type': 'application/gzip', 'content-length': String(50 * 1024 * 1024 + 1), ...as(API_KEY) },
    });
    expect([response.statusCode, response.json()]).toMatchObject([413, { error: 'payload_too_large' }]);
  });
  it('by POST is 405 with what is allowed', async () => {
    const response = await app.inject({
      method: 'POST',
      url: `/registry/packages/${open}`,
      payload: '{}',
      headers: { 'content-type': 'application/json' },
    });
    expect(response.statusCode).toBe(405);
    expect(response.headers['allow']).toContain('PUT');
  });
});

it('while the store or the storage is away, both ways are 503 with Retry-After', async () => {
  const away = await makeWorld();
  const server = buildServer({ corsOrigins: [], connectionsMax: 100, log: silentLog });
  const { version } = await publish(away.registry(), user('a'), { id: 'build/away' });
  const objects = {
    ...away.objects,
    get: () => Promise.reject(new ObjectsUnavailable('away')),
    put: () => Promise.reject(new ObjectsUnavailable('away')),
  } as unknown as World['objects'];
  addRegistryRoutes(server, {
    registry: away.registry({ objects }),
    callers: new Callers({ apiKey: API_KEY, publicRead: false }),
  });
  let message: string | undefined;
  const ask = async (): Promise<(number | string | undefined)[]> => {
    const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/gzip' };
    const [down, up] = [
      await server.inject({ url: `/registry/packages/${version.packageHash}` }),
      await server.inject({
        method: 'PUT',
        url: `/registry/packages/${version.packageHash}`,
        payload: Buffer.from('x'),
        headers,
      }),
    ];
    message = down.json<{ message: string }>().message;
    return [down.statusCode, down.headers['retry-after'], up.statusCode, up.json<{ error: string }>().error];
  };
  expect(await ask()).toEqual([503, '2', 503, 'unavailable']);
  // Kept files and logs lie there, too.
  expect(message).toBe("The server's object storage does not answer; try again.");
  await away.store.close();
  expect(await ask()).toEqual([503, '2', 503, 'unavailable']);
  await server.close();
  await away.close();
});

it('an upload longer than 50 MiB that does not say so is broken off', async () => {
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  let sent = 0;
  const chunk = new Uint8Array(1024 * 1024);
  const body = new ReadableStream({
    pull(controller) {
      sent += 1;
      if (sent > 60) controller.close();
      else controller.enqueue(chunk);
    },
  });
  const request = {
    method: 'PUT',
    body,
    duplex: 'half',
    headers: { 'content-type': 'application/gzip', ...as(API_KEY) },
  };
  const status = await fetch(`${url}/registry/packages/${'0'.repeat(64)}`, request as RequestInit).then(
    (response) => response.status,
    () => 'broken off',
  );
  expect([413, 'broken off']).toContain(status);
  expect(sent).toBeLessThan(60);
});

it.each<[string | undefined, ReturnType<typeof rangeOf>]>([
  [undefined, 'whole'],
  ['bytes=0-', { from: 0, to: 100 }],
  ['bytes=10-19', { from: 10, to: 20 }],
  ['bytes=90-500', { from: 90, to: 100 }],
  ['bytes=-10', { from: 90, to: 100 }],
  ['bytes=-500', { from: 0, to: 100 }],
  ['bytes=100-', 'unsatisfiable'],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=20-10', 'whole'],
  ['bytes=0-1,5-6', 'whole'],
  ['bytes=-', 'whole'],
  ['lines=1-2', 'whole'],
  ['bytes=a-b', 'whole'],
])('the range %j of 100 bytes is %j', (header, range) => {
  expect(rangeOf(header, 100)).toEqual(range);
});
