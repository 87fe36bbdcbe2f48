import { once } from 'node:events';
import { createServer } from 'node:net';
import { startProxy, startTestBroker, type TestBroker } from '@penstock/testkit';
import { connect } from '@nats-io/transport-node';
import { withRequest } from '@penstock/telemetry/request';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Bus, connectBus, LATER, type Responder } from '../src/index.ts';

let broker: TestBroker;
let server: Bus;
let client: Bus;

beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());
beforeEach(async () => {
  [server, client] = await Promise.all([
    connectBus({ servers: broker.url, name: 'server' }),
    connectBus({ servers: broker.url, name: 'client' }),
  ]);
});
afterEach(() => Promise.all([server.close(0), client.close(0)]));

const soon = { timeoutMs: 5_000 };

describe('a request', () => {
  it('is answered by value, by promise, or later', async () => {
    server.respond<number, number>('double.value', (n) => n * 2);
    server.respond<number, number>('double.promise', async (n) => n * 2);
    server.respond<number, number>('double.later', (n, call) => {
      setImmediate(() => call.answer(n * 2));
      return LATER;
    });
    await server.flush();
    for (const way of ['value', 'promise', 'later']) expect(await client.request(`double.${way}`, 21, soon)).toBe(42);
  });

  it('says which request it is sent for, where it is for one', async () => {
    server.respond<null, unknown>('whose', (_, { request }) => request ?? 'none');
    await server.flush();
    const ask = (): Promise<unknown> => client.request('whose', null, soon);
    const request = { id: 'r-1', traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
    expect(await withRequest(request, ask)).toEqual(request);
    expect(await withRequest({ id: 'r-2' }, ask)).toEqual({ id: 'r-2' });
    expect(await ask()).toBe('none');
  });

  it('to a subject without a responder fails at once, and nothing was handled', async () => {
    await expect(client.request('nobody', {}, { timeoutMs: 600_000 })).rejects.toMatchObject({
      tag: 'NoResponders',
      subject: 'nobody',
    });
  });

  it('that is dropped runs into its deadline', async () => {
    server.respond('silent', (_, call) => {
      call.drop();
      call.answer('too late: only the first counts');
      return LATER;
    });
    await server.flush();
    await expect(client.request('silent', {}, { timeoutMs: 50 })).rejects.toMatchObject({
      tag: 'RequestTimeout',
      timeoutMs: 50,
    });
  });

  it('gets a long answer whole, though the broker takes no message of that size', async () => {
    const long = 'ä'.repeat(3_000_000);
    server.respond('long', () => ({ long }));
    await server.flush();
    expect(await client.request('long', {}, soon)).toEqual({ long });
  });

  it('that is too long itself is refused before it is sent', async () => {
    await expect(client.request('long', 'x'.repeat(2_000_000), soon)).rejects.toMatchObject({ tag: 'MessageTooLarge' });
  });

  it('whose handler throws is answered without the reason', async () => {
    server.respond('throws', () => {
      throw new Error('secret');
    });
    server.respond('rejects', () => Promise.reject(new Error('secret')));
    await server.flush();
    for (const subject of ['throws', 'rejects']) {
      const error = (await client.request(subject, {}, soon).catch((cause: unknown) => cause)) as Error;
      expect(error).toMatchObject({ tag: 'RemoteError', failure: 'failed' });
      expect(error.message).not.toContain('secret');
    }
  });

  it('that is not JSON is refused, and the responder lives on', async () => {
    server.respond('json', () => 'fine');
    await server.flush();
    const raw = await connect({ servers: broker.url });
    const answer = await raw.request('json', 'not json', { timeout: 5_000 });
    expect(answer.headers?.get('Penstock-Failure')).toBe('bad_request');
    expect(await client.request('json', {}, soon)).toBe('fine');
    await raw.close();
  });

  it("beyond the responder's bound is refused as busy, and taken again when there is room", async () => {
    const calls: Responder<string>[] = [];
    const two = Promise.withResolvers<void>();
    server.respond<string, string>(
      'bounded',
      (_, call) => {
        if (calls.push(call) === 2) two.resolve();
        return LATER;
      },
      { pendingMax: 2 },
    );
    await server.flush();
    const first = client.request('bounded', 'a', soon);
    const second = client.request('bounded', 'b', soon);
    await two.promise;
    await expect(client.request('bounded', 'c', soon)).rejects.toMatchObject({ tag: 'RemoteError', failure: 'busy' });
    calls[0]?.answer('done');
    expect(await first).toBe('done');
    const third = client.requestRetrying('bounded', 'c', { deadlineMs: 5_000 });
    calls[1]?.answer('done');
    expect(await second).toBe('done');
    while (calls.length < 3) await client.flush();
    calls[2]?.answer('done');
    expect(await third).toBe('done');
  });

  it('that is never answered does not hold its place for ever', async () => {
    server.respond('forgetful', () => LATER, { pendingMax: 1, pendingMsMax: 20 });
    await server.flush();
    await expect(client.request('forgetful', {}, { timeoutMs: 1 })).rejects.toMatchObject({ tag: 'RequestTimeout' });
    const failures = new Set<string>();
    while (!failures.has('RequestTimeout')) {
      const error = (await client.request('forgetful', {}, { timeoutMs: 10 }).catch((cause: unknown) => cause)) as {
        tag: string;
      };
      failures.add(error.tag);
    }
  });

  it('is repeated while nobody is there, until somebody is', async () => {
    const answer = client.requestRetrying<string, string>('late', 'x', { deadlineMs: 10_000 });
    await expect(client.request('late', 'x', soon)).rejects.toMatchObject({ tag: 'NoResponders' });
    server.respond<string, string>('late', (text) => `${text}!`);
    expect(await answer).toBe('x!');
  });

  it('is not repeated beyond its deadline', async () => {
    await expect(client.requestRetrying('never', {}, { deadlineMs: 1_000 })).rejects.toMatchObject({
      tag: 'NoResponders',
    });
  });

  it('under way when the connection breaks fails at once, as one that was sent', async () => {
    const proxy = await startProxy(broker.port);
    const cut = await connectBus({ servers: proxy.url, name: 'cut' });
    const arrived = Promise.withResolvers<void>();
    server.respond('hangs', () => {
      arrived.resolve();
      return LATER;
    });
    await server.flush();
    const answer = cut.request('hangs', {}, { timeoutMs: 600_000 }).catch((cause: unknown) => cause);
    await arrived.promise;
    const away = once(cut.events, 'disconnected');
    proxy.cut();
    await away;
    expect(await answer).toMatchObject({ tag: 'BrokerAway', sent: true });
    const back = once(cut.events, 'reconnected');
    if (!cut.connected) await back;
    server.respond('again', () => 'yes');
    await server.flush();
    expect(await cut.request('again', {}, soon)).toBe('yes');
    await cut.close(0);
    await proxy.stop();
  });
});

describe('a message', () => {
  it("reaches every subscriber, and one handler's exception stops nobody", async () => {
    const got = Promise.withResolvers<[number, string]>();
    server.subscribe('news.*', () => {
      throw new Error('a bad handler');
    });
    server.subscribe<{ n: number }>('news.*', ({ n }, { subject }) => got.resolve([n, subject]));
    await server.flush();
    client.publish('news.today', { n: 7 });
    expect(await got.promise).toEqual([7, 'news.today']);
  });

  it('is not delivered any more after stop', async () => {
    const seen: number[] = [];
    const subscription = server.subscribe<number>('count', (n) => seen.push(n));
    await server.flush();
    client.publish('count', 1);
    await client.flush();
    await server.flush();
    subscription.stop();
    client.publish('count', 2);
    await client.flush();
    await server.flush();
    expect(seen).toEqual([1]);
  });
});

describe('the connection', () => {
  it('comes back after the broker was killed, with its subscriptions', async () => {
    const own = await startTestBroker();
    const bus = await connectBus({ servers: own.url, name: 'own' });
    bus.respond('there', () => true);
    const away = once(bus.events, 'disconnected');
    await own.kill();
    await away;
    await expect(bus.request('there', {}, soon)).rejects.toMatchObject({ tag: 'BrokerAway', sent: false });
    bus.publish('there', 'dropped without a word');
    const back = once(bus.events, 'reconnected');
    await own.restart();
    await back;
    expect(await bus.request('there', {}, soon)).toBe(true);
    await bus.close();
    await own.stop();
  });

  it('leaves a broker that is silent, and finds it again when it wakes', async () => {
    const own = await startTestBroker();
    const bus = await connectBus({ servers: own.url, name: 'own', pingIntervalMs: 50 });
    const away = once(bus.events, 'disconnected');
    own.pause();
    await away;
    const back = once(bus.events, 'reconnected');
    own.resume();
    await back;
    expect(bus.connected).toBe(true);
    await bus.close();
    await own.stop();
  });

  it('is refused in one sentence by an address where nobody listens', async () => {
    const attempt = connectBus({ servers: 'nats://user:secret@127.0.0.1:1', name: 'x', connectTimeoutMs: 50 });
    const error = (await attempt.catch((cause: unknown) => cause)) as Error;
    expect(error).toMatchObject({ tag: 'BrokerAway', sent: false });
    expect(error.message).not.toContain('secret');
  });

  it('to a server older than 2.14 is refused in one sentence', async () => {
    const old = createServer((socket) => {
      socket.on('error', () => {});
      socket.write(
        `INFO ${JSON.stringify({ server_id: 'old', version: '2.10.29', headers: true, max_payload: 1_048_576, proto: 1 })}\r\n`,
      );
      socket.on('data', (data) => data.includes('PING') && socket.write('PONG\r\n'));
    });
    old.listen(0, '127.0.0.1');
    await once(old, 'listening');
    const address = old.address() as { port: number };
    await expect(connectBus({ servers: `nats://127.0.0.1:${address.port}`, name: 'x' })).rejects.toThrow(
      'the broker is nats-server 2.10.29, but Penstock needs 2.14 or newer',
    );
    old.close();
  });

  it('closes within its deadline although the broker is frozen', async () => {
    const own = await startTestBroker();
    const bus = await connectBus({ servers: own.url, name: 'own' });
    const answer = bus.request('$JS.API.INFO', null, { timeoutMs: 600_000 }).catch((cause: unknown) => cause);
    own.pause();
    await bus.close(50);
    expect(await answer).toMatchObject({ tag: 'BrokerAway' });
    await own.stop();
  });
});
