import { EventEmitter, once } from 'node:events';
import { request, type ServerResponse } from 'node:http';
import { connect, createServer } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startGateway } from '../src/index.ts';
import { answerMalformed } from '@penstock/http';
import { StreamClient } from '../src/sse/client.ts';
import { Streams } from '../src/sse/streams.ts';
import { parsePipeline } from '@penstock/pipeline';
import { silentLog } from '@penstock/telemetry/log';
import { Cursor } from '../src/event-stream/cursor.ts';
import { created, RUN_ID } from './event-stream-fixtures.ts';
import { API_KEY, graphql, happened, makeWorld, PARTITIONS, runIdFor, YAML, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(async () => {
  vi.useRealTimers();
  await world.reset();
});
afterAll(() => world.close());

describe('starting and stopping', () => {
  const options = () => ({
    bus: world.bus,
    runs: world.runs,
    store: world.store,
    partitions: PARTITIONS,
    apiKey: API_KEY,
    publicRead: true,
  });

  it('port 0 takes a free one, and the address says which', async () => {
    const gateway = await startGateway({ ...options(), listen: { host: '127.0.0.1', port: 0 } });
    expect(await (await fetch(`${gateway.url}/health`)).text()).toBe('ok');
    await gateway.close();
    await expect(fetch(`${gateway.url}/health`)).rejects.toThrow(TypeError);
  });

  it('a port that is taken rejects with EADDRINUSE', async () => {
    const gateway = await startGateway({ ...options(), listen: { host: '127.0.0.1', port: 0 } });
    await expect(
      startGateway({ ...options(), listen: { host: '127.0.0.1', port: gateway.port } }),
    ).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await gateway.close();
  });

  it('triggers that wait answer at once when the server stops, with the run as it stands', async () => {
    const app = await world.gateway();
    const accepted = Promise.withResolvers<void>();
    world.owner.onCreate = () => setImmediate(accepted.resolve);
    const answer = graphql(
      app,
      'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 300) { run { status } } }',
      { variables: { yaml: YAML } },
    );
    await accepted.promise;
    await app.close();
    expect((await answer).data).toEqual({ triggerPipeline: { run: { status: 'PENDING' } } });
  });
});

describe('a run that is asked for', () => {
  it('is told of where the gateway was asked to, and a question about runs is not', async () => {
    let asked = 0;
    const app = await world.gateway({ onRunAsked: () => (asked += 1) });
    await graphql(app, '{ runs { id } }');
    expect(asked).toBe(0);
    await graphql(app, 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }', {
      variables: { yaml: YAML },
    });
    expect(asked).toBe(1);
    await app.close();
  });
});

describe('a file that has been read', () => {
  it('is told of before its run is asked for, once and as it was read, where it is to become one', async () => {
    const told: unknown[] = [];
    const app = await world.gateway({ onFileRead: (text, read) => told.push([text, read]) });
    world.owner.onCreate = () => told.push('asked for');
    const trigger = (yaml: string) =>
      graphql(app, 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { id } } }', {
        variables: { yaml },
      });
    const text = YAML.replace('name: ', 'name: told-of-');
    await trigger('stages: none');
    for (let times = 0; times < 2; times += 1) await trigger(text);
    expect(told).toEqual([[text, parsePipeline(text)], 'asked for', 'asked for']);
    await app.close();
  });
});

describe('a client that leaves', () => {
  it('does not stop the run that it triggered, and frees its place among those that wait', async () => {
    const gateway = await startGateway({
      bus: world.bus,
      runs: world.runs,
      store: world.store,
      partitions: PARTITIONS,
      apiKey: API_KEY,
      publicRead: true,
      triggerWaitsMax: 1,
      listen: { host: '127.0.0.1', port: 0 },
    });
    const runId = runIdFor();
    const created_ = Promise.withResolvers<void>();
    world.owner.onCreate = () => setImmediate(created_.resolve);
    const body = JSON.stringify({
      query:
        'mutation ($yaml: String!, $runId: String!) { triggerPipeline(yaml: $yaml, runId: $runId, waitSeconds: 300) { run { id } } }',
      variables: { yaml: YAML, runId },
    });
    const outgoing = request(`${gateway.url}/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    });
    outgoing.on('error', () => {});
    outgoing.end(body);
    await created_.promise;
    outgoing.destroy();
    // With the one place taken a trigger answers at once, and so its run still stands as PENDING.
    const trigger = async (): Promise<string> => {
      world.owner.onCreate = (id) =>
        setImmediate(() => world.owner.commit(id, [{ type: 'run_cancelled', at: Date.now(), cancelledStages: 2 }]));
      const response = await fetch(`${gateway.url}/graphql`, {
        method: 'POST',
        headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          query: 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 300) { run { status } } }',
          variables: { yaml: YAML },
        }),
      });
      return ((await response.json()) as { data: { triggerPipeline: { run: { status: string } } } }).data
        .triggerPipeline.run.status;
    };
    await expect.poll(trigger).toBe('CANCELLED');
    const run = await fetch(`${gateway.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: `{ run(id: "${runId}") { status } }` }),
    });
    expect(await run.json()).toEqual({ data: { run: { status: 'PENDING' } } });
    await gateway.close();
  });
});

describe('an owner that answers late', () => {
  it('a cancel that was decided by an earlier sending is answered as done', async () => {
    const app = await world.gateway({ ownerMsMax: 1_500 });
    const id = runIdFor();
    world.owner.adopt(id, YAML);
    world.owner.mute.add('cancel');
    const answer = graphql(app, `mutation { cancelPipeline(id: "${id}") { cancelledStages run { status } } }`);
    await expect.poll(() => world.owner.asked).toContain('cancel');
    // Decided, and its answer lost.
    world.owner.commit(id, [{ type: 'run_cancelled', at: Date.now(), cancelledStages: 2 }]);
    world.owner.mute.clear();
    expect((await answer).data).toEqual({ cancelPipeline: { cancelledStages: 2, run: { status: 'CANCELLED' } } });
  });

  it('a frozen owner is UNAVAILABLE when its time is up, with the runId that makes repeating safe', async () => {
    const app = await world.gateway({ ownerMsMax: 300 });
    world.owner.mute.add('create');
    const { errors } = await graphql(app, 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml) { run { id } } }', {
      variables: { yaml: YAML },
    });
    expect(errors[0]?.extensions).toMatchObject({
      code: 'UNAVAILABLE',
      retryAfter: expect.any(Number),
      runId: expect.any(String),
    });
    world.owner.mute.clear();
    const again = await graphql(
      app,
      'mutation ($yaml: String!, $runId: String) { triggerPipeline(yaml: $yaml, runId: $runId, waitSeconds: 0) { run { id } } }',
      {
        variables: { yaml: YAML, runId: errors[0]?.extensions['runId'] },
      },
    );
    expect(again.data).toEqual({ triggerPipeline: { run: { id: errors[0]?.extensions['runId'] } } });
  });

  it('with the broker away /ready is 503 and a trigger UNAVAILABLE; when it is back both work', async () => {
    const app = await world.gateway({ ownerMsMax: 300 });
    await world.broker.kill();
    expect((await app.inject('/ready')).statusCode).toBe(503);
    expect((await app.inject('/health')).statusCode).toBe(200);
    const trigger = () =>
      graphql(app, 'mutation ($yaml: String!) { triggerPipeline(yaml: $yaml, waitSeconds: 0) { run { status } } }', {
        variables: { yaml: YAML },
      });
    expect((await trigger()).errors[0]?.extensions['code']).toBe('UNAVAILABLE');
    await world.broker.restart();
    await expect.poll(async () => (await app.inject('/ready')).statusCode, { timeout: 10_000 }).toBe(200);
    await expect.poll(async () => (await trigger()).errors, { timeout: 10_000 }).toEqual([]);
  });
});

/** As much of a response as a stream uses; it takes bytes until it is `stuck`. */
class FakeResponse extends EventEmitter {
  readonly written: string[] = [];
  stuck = false;
  destroyed = false;
  writableLength = 0;

  write(bytes: Uint8Array): boolean {
    this.written.push(Buffer.from(bytes).toString());
    if (this.stuck) this.writableLength += bytes.length;
    return !this.stuck;
  }

  end(): void {
    this.emit('close');
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

describe('time on a log stream', () => {
  const source = {
    runId: RUN_ID,
    events: async (after: number) => [created()].slice(after),
    chunks: async function* chunks() {},
    lastSequences: async () => new Map<string, number>(),
    listen: () => ({ hearChunks: () => {}, stop: () => {} }),
  };

  it('a ping is sent every 15 seconds', async () => {
    vi.useFakeTimers();
    const streams = new Streams(silentLog);
    const response = new FakeResponse();
    const serving = streams.serve(new StreamClient(response as unknown as ServerResponse), source, new Cursor(), true);
    await vi.advanceTimersByTimeAsync(14_400);
    expect(response.written).toEqual([': caught up\n\n']);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(response.written).toEqual([': caught up\n\n', ': ping\n\n']);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(response.written).toHaveLength(4);
    response.emit('close');
    await serving;
    expect(streams.size).toBe(0);
    streams.stop();
  });

  it('a client that takes nothing for 30 seconds is closed; one that takes its time is not', async () => {
    vi.useFakeTimers();
    const streams = new Streams(silentLog);
    const [stuck, slow] = [new FakeResponse(), new FakeResponse()];
    const serving = [stuck, slow].map((response) =>
      streams.serve(new StreamClient(response as unknown as ServerResponse), source, new Cursor(), true),
    );
    stuck.stuck = true;
    slow.stuck = true;
    for (let seconds = 0; seconds < 60; seconds += 10) {
      await vi.advanceTimersByTimeAsync(10_000);
      slow.emit('drain');
    }
    expect([stuck.destroyed, slow.destroyed]).toEqual([true, false]);
    slow.emit('close');
    await Promise.all(serving);
    streams.stop();
  });

  it('P20: with every 15 seconds the run is asked for what was not heard', async () => {
    vi.useFakeTimers();
    const streams = new Streams(silentLog);
    const response = new FakeResponse();
    const events = [created()];
    const serving = streams.serve(
      new StreamClient(response as unknown as ServerResponse),
      { ...source, events: async (after) => events.slice(after) },
      new Cursor(),
      true,
    );
    await vi.advanceTimersByTimeAsync(1_000);
    events.push(
      happened.queued('t'),
      { type: 'run_cancelled', at: 0, cancelledStages: 1 },
      { type: 'run_stopped', at: 0, status: 'CANCELLED', cancelledStages: 1 },
    );
    await vi.advanceTimersByTimeAsync(15_000);
    await serving;
    expect(response.written.join('')).toContain('event: pipeline_cancelling');
    expect(response.written.join('')).toContain('event: pipeline_cancelled');
    streams.stop();
  });
});

describe('requests that do not arrive', () => {
  it('are answered 408 with JSON and the connection is closed', async () => {
    const server = createServer((socket) =>
      answerMalformed(Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as { port: number }).port, '127.0.0.1');
    let text = '';
    socket.on('data', (bytes) => {
      text += Buffer.from(bytes).toString();
    });
    await once(socket, 'close');
    expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/u);
    expect(text).toContain('X-Content-Type-Options: nosniff');
    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toMatchObject({ error: 'request_timeout' });
    server.close();
  });
});
