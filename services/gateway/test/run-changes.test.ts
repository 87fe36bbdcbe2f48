/** `GET /runs/events`: who is told of which runs, and what one that comes back is told. */
import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { GatewayOptions } from '../src/ports.ts';
import { SECURITY_HEADERS } from '@penstock/http';
import { API_KEY, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';
import { SseClient } from './sse-client.ts';

let world: World;
const clients: SseClient[] = [];
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await world.reset();
});
afterAll(() => world.close());

async function listening(options: Partial<GatewayOptions> = {}): Promise<{ app: FastifyInstance; url: string }> {
  const app = await world.gateway(options);
  await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, url: `http://127.0.0.1:${(app.server.address() as AddressInfo).port}/runs/events` };
}

async function open(
  url: string,
  options: Parameters<typeof SseClient.open>[1] = { token: API_KEY },
): Promise<SseClient> {
  const client = await SseClient.open(url, options);
  clients.push(client);
  // Whoever is heard from now on is listened to.
  await world.bus.flush();
  return client;
}

function makeRun(tenant = 'service'): string {
  const id = runIdFor(`${tenant}/demo`);
  world.owner.adopt(id, YAML, tenant);
  return id;
}

const toldOf = (client: SseClient, id: string): unknown[] =>
  client.messages.filter(({ data }) => data['id'] === id).map(({ data }) => [data['status'], data['version']]);

const isTold = (id: string, version: number) => (client: SseClient) =>
  client.messages.some(({ data }) => data['id'] === id && data['version'] === version);

describe('GET /runs/events', { timeout: 60_000 }, () => {
  it('tells of the changes of the runs that the caller may see, and of no others', async () => {
    const { url } = await listening();
    const client = await open(url);
    const expected = Object.entries(SECURITY_HEADERS).map(([name, value]) => [name.toLowerCase(), value]);
    expect(client.headers).toMatchObject({ ...Object.fromEntries(expected), 'content-type': 'text/event-stream' });
    const [own, other] = [makeRun(), makeRun('user/eve')];
    world.owner.commit(other, [happened.queued('build')]);
    world.owner.commit(own, [happened.queued('build')]);
    world.owner.commit(own, [happened.started('build')]);
    await client.until(isTold(own, 3));
    expect(client.messages.at(-1)).toMatchObject({
      event: 'run_changed',
      data: { id: own, pipelineName: 'demo', status: 'RUNNING', version: 3 },
    });
    expect(Object.keys(client.messages.at(-1)?.data ?? {})).toEqual(['id', 'pipelineName', 'status', 'version']);
    expect(toldOf(client, other)).toEqual([]);
  });

  it('tells one that comes back what it has missed: from memory, or by another gateway from the runs themselves', async () => {
    const [first, second] = [await listening(), await listening()];
    const client = await open(first.url);
    const [seen, ended, going] = [makeRun(), makeRun(), makeRun()];
    world.owner.commit(seen, [happened.queued('build')]);
    await client.until(isTold(seen, 2));
    const lastEventId = client.messages.at(-1)?.id ?? '';
    client.close();
    world.owner.commit(ended, [
      happened.queued('build'),
      happened.started('build'),
      happened.completed('build', 0, { status: 'FAILED', reason: 'exit' }),
      happened.skipped('test'),
      happened.runCompleted('FAILED'),
    ]);
    await world.owner.project(ended);
    world.owner.commit(going, [happened.queued('build'), happened.started('build')]);
    for (const { url } of [first, second]) {
      const back = await open(url, { token: API_KEY, lastEventId });
      await back.until(isTold(ended, 6));
      await back.until(isTold(going, 3));
      expect(toldOf(back, ended)).toEqual([['FAILED', 6]]);
    }
  });

  it('looks for what it may have missed where a new owner has opened a partition', async () => {
    const { url } = await listening();
    const client = await open(url);
    const id = makeRun();
    // Committed, and its owner died before it told.
    world.owner.commit(id, [happened.queued('build'), happened.started('build')], { silently: true });
    world.owner.announce();
    await client.until(isTold(id, 3));
    expect(toldOf(client, id)).toEqual([['RUNNING', 3]]);
  });

  it('is for those who may read runs, and bounded as log streams are', async () => {
    const { url } = await listening({ publicRead: false, streamsPerUser: 1 });
    expect((await open(url, {})).status).toBe(401);
    expect((await open(url)).status).toBe(200);
    expect((await open(url)).status).toBe(429);
  });

  it('asks its clients to come back when the server stops', async () => {
    const { app, url } = await listening();
    const client = await open(url);
    await app.close();
    await client.ended;
    expect(client.comments.join()).toContain('reconnect');
  });
});
