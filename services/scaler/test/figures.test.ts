/** One figure of a Prometheus, which is an HTTP server of this test, or why there is none. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { figureOf } from '../src/figures.ts';

let answer: { readonly status: number; readonly body: string; readonly headers?: Record<string, string> };
let server: Server;
let url: string;

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(answer.status, answer.headers).end(answer.body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const success = (resultType: string, result: unknown): string =>
  JSON.stringify({ status: 'success', data: { resultType, result } });
const vector = (...values: string[]): string =>
  success(
    'vector',
    values.map((value) => ({ metric: {}, value: [1, value] })),
  );

it.each([
  [vector('17'), 17],
  [success('scalar', [1, '2.5']), 2.5],
])('is what %s says', async (body, figure) => {
  answer = { status: 200, body };
  expect(await figureOf(url, 'up')).toBe(figure);
});

it.each([
  ['no scheduler is scraped', { status: 200, body: vector() }, 'scrapes no scheduler'],
  ['there are several', { status: 200, body: vector('1', '2') }, 'has 2 figures'],
  ['the query is refused', { status: 400, body: '{"status":"error","error":"parse error"}' }, 'query: parse error'],
  ['what answers is no Prometheus', { status: 200, body: '<html>' }, 'is no Prometheus'],
  ['a login is wanted', { status: 401, body: '{}' }, 'status 401'],
  ['it leads elsewhere', { status: 302, body: '', headers: { location: '/login' } }, 'does not answer'],
  ['the answer has no end', { status: 200, body: 'x'.repeat(100_000) }, 'too long'],
  ['it is no number', { status: 200, body: vector('NaN') }, 'is no number'],
  ['the answer has another form', { status: 200, body: '{"status":"success"}' }, 'has no figure'],
])('is none, with the reason, where %s', async (_where, given, reason) => {
  answer = given;
  await expect(figureOf(url, 'up')).rejects.toThrow(reason);
});

it('is none where nobody answers', async () => {
  await expect(figureOf('http://127.0.0.1:1', 'up')).rejects.toThrow('Prometheus does not answer');
});
