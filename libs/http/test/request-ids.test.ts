/** The id of a request: taken or made, on every answer, and known to all that is done for it. */
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { currentRequest } from '@penstock/telemetry/request';
import { silentLog } from '@penstock/telemetry/log';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { buildServer } from '../src/index.ts';

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/u;
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let app: FastifyInstance;
afterEach(() => app.close());

function server(log: typeof silentLog = silentLog): FastifyInstance {
  app = buildServer({ corsOrigins: ['https://app.example'], connectionsMax: 100, log });
  app.get('/served', { config: { tier: 'read' } }, async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return currentRequest() ?? null;
  });
  app.post('/served', { config: { tier: 'api' } }, () => currentRequest() ?? null);
  app.get('/fails', { config: { tier: 'read' } }, () => {
    throw new Error('secret');
  });
  return app;
}

describe('X-Request-Id', () => {
  it('that comes in is kept, known to what is done, and answered', async () => {
    const answer = await server().inject({
      url: '/served',
      headers: { 'x-request-id': 'mine-1', traceparent: TRACEPARENT },
    });
    expect(answer.headers['x-request-id']).toBe('mine-1');
    expect(answer.json()).toEqual({ id: 'mine-1', traceparent: TRACEPARENT });
  });

  it('is known behind a body that came in pieces over a connection', async () => {
    server();
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    socket.write(
      'POST /served HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine-2\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{',
    );
    await once(app.server, 'request');
    socket.write('}');
    expect(await text(socket)).toContain('{"id":"mine-2"}');
  });

  it('that is none, or comes twice, is replaced', async () => {
    server();
    for (const id of ['', 'two words', 'x'.repeat(200), 'a, b']) {
      const { headers } = await app.inject({ url: '/served', headers: { 'x-request-id': id } });
      expect(headers['x-request-id'], id).toMatch(UUID);
    }
  });

  it('is on answers of any kind', async () => {
    server();
    for (const [method, url, status] of [
      ['GET', '/served', 200],
      ['GET', '/nothing', 404],
      ['DELETE', '/served', 405],
      ['OPTIONS', '/served', 204],
      ['GET', '/%zz', 400],
      ['GET', '/fails', 500],
    ] as const) {
      const { statusCode, headers } = await app.inject({ method, url, headers: { 'x-request-id': 'mine-3' } });
      expect([statusCode, headers['x-request-id']], url).toEqual([status, 'mine-3']);
    }
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    socket.write('this is not HTTP\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 [^]*\r\nX-Request-Id: [0-9a-f-]{36}\r\n/u);
  });

  it('names what failed, to the client as in the log, and every answer at the level debug', async () => {
    const lines: Record<string, unknown>[] = [];
    const take = (fields: Record<string, unknown>): void => void lines.push(fields);
    server({ ...silentLog, debug: take, error: take });
    const answer = await app.inject({ url: '/fails', headers: { 'x-request-id': 'mine-4' } });
    expect(answer.json<{ message: string }>().message).toContain('mine-4');
    expect(lines).toEqual([
      expect.objectContaining({ requestId: 'mine-4', path: '/fails' }),
      expect.objectContaining({ requestId: 'mine-4', route: '/fails', code: 500 }),
    ]);
  });

  it('may be read by pages of listed origins', async () => {
    server();
    const headers = { origin: 'https://app.example' };
    const answer = await app.inject({ url: '/served', headers });
    expect(answer.headers['access-control-expose-headers']).toContain('X-Request-Id');
  });
});
