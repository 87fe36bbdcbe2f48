/** What the ingress promises, against backends of the test's own making. */
import { createServer, request, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { startIngress, type Backend, type Ingress } from './ingress.ts';
import type { ServiceName } from './service-process.ts';

const servers: Server[] = [];
let ingress: Ingress;

afterEach(async () => {
  await ingress.stop();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function backend(name: string, handler: RequestListener, service: ServiceName = 'gateway'): Promise<Backend> {
  const server = createServer(handler).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return {
    name,
    service,
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    probe: async () => 'ready',
  };
}

/** Nobody listens at its address any more. */
async function goneBackend(name: string): Promise<Backend> {
  const gone = await backend(name, () => {});
  const server = servers.pop();
  server?.close();
  await once(server as Server, 'close');
  return { ...gone, probe: async () => 'silent' };
}

async function through(...backends: readonly Backend[]): Promise<void> {
  ingress = await startIngress({ port: 0, backends: () => backends });
}

it('spreads requests over the backends that are ready', async () => {
  const seen: string[] = [];
  const record =
    (name: string): RequestListener =>
    (_request, response) => {
      seen.push(name);
      response.end();
    };
  await through(await backend('one', record('one')), await backend('two', record('two')));
  for (let count = 0; count < 6; count++) await (await fetch(ingress.url)).arrayBuffer();
  expect(new Set(seen)).toEqual(new Set(['one', 'two']));
});

it('a refused connection goes to another backend, with the whole body', async () => {
  const bodies: string[] = [];
  const alive = await backend('alive', (incoming, response) => {
    let body = '';
    incoming
      .setEncoding('utf8')
      .on('data', (text: string) => {
        body += text;
      })
      .on('end', () => {
        bodies.push(body);
        response.end('done');
      });
  });
  await through(await goneBackend('gone'), await goneBackend('gone too'), alive);
  const text = 'x'.repeat(300_000);
  const response = await fetch(`${ingress.url}/graphql`, { method: 'POST', body: text });
  expect([response.status, await response.text()]).toEqual([200, 'done']);
  expect(bodies).toEqual([text]);
});

it('what broke off after it was sent is answered 502 and never repeated', async () => {
  let requests = 0;
  const breaking: RequestListener = (incoming) => {
    requests += 1;
    incoming.socket.destroy();
  };
  await through(await backend('one', breaking), await backend('two', breaking));
  const response = await fetch(`${ingress.url}/graphql`, { method: 'POST', body: '{}' });
  expect(response.status).toBe(502);
  expect(await response.json()).toMatchObject({ error: 'bad_gateway' });
  expect(requests).toBe(1);
});

it('nobody there is 503 with Retry-After', async () => {
  await through(await goneBackend('gone'));
  const response = await fetch(ingress.url);
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1']);
});

it('an event stream passes event by event, and its end in the middle does not look like an end', async () => {
  const next = Promise.withResolvers<void>();
  await through(
    await backend('stream', (_incoming, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      void next.promise.then(() => {
        response.write('data: 2\n\n');
        setImmediate(() => response.destroy());
      });
    }),
  );
  const response = await fetch(`${ingress.url}/pipeline/x/logs`);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  // The first event is here while the second is not even written.
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('data: 1\n\n');
  next.resolve();
  const rest = async (): Promise<void> => {
    while (!(await reader.read()).done) continue;
  };
  await expect(rest()).rejects.toThrow(/terminated/);
});

it('paths go to the service that they belong to, and to the gateways where the cluster has none of it', async () => {
  const named =
    (name: string): RequestListener =>
    (_incoming, response) =>
      void response.end(name);
  await through(await backend('gateway', named('gateway')), await backend('auth', named('auth'), 'auth'));
  const ask = async (path: string): Promise<string> => (await fetch(`${ingress.url}${path}`)).text();
  expect(await Promise.all([ask('/auth/me'), ask('/graphql'), ask('/webhook'), ask('/')])).toEqual([
    'auth',
    'gateway',
    'gateway',
    'gateway',
  ]);
});

it('headers of the connection itself are not passed on, those of the request are', async () => {
  let headers: IncomingMessage['headers'] = {};
  await through(
    await backend('one', (incoming, response) => {
      headers = incoming.headers;
      response.end();
    }),
  );
  const sent = request(`${ingress.url}/`, {
    headers: { connection: 'x-hop', 'x-hop': 'no', 'last-event-id': 'yes' },
  }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  expect(headers['x-hop']).toBeUndefined();
  expect(headers).toMatchObject({ 'last-event-id': 'yes', 'x-forwarded-for': '127.0.0.1' });
});
