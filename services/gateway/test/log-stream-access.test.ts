/** Who may watch a run's log stream, and how many streams may be open. */
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { API_KEY, makeWorld, runIdFor, YAML, type World } from './harness.ts';
import { logStreams } from './log-stream-fixtures.ts';
import { SseClient } from './sse-client.ts';

let world: World;
const { listening, watch, newRun, play, opened, close } = logStreams(() => world);
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(async () => {
  close();
  await world.reset();
});
afterAll(() => world.close());

describe('who may watch', () => {
  it('with an API key configured the stream needs it, as a bearer token or as ?token=', async () => {
    const { app, url } = await listening();
    const { id, log } = newRun();
    await play(id, log);
    for (const path of ['', '?token=wrong', '?token=']) {
      const response = await app.inject(`/pipeline/${id}/logs${path}`);
      expect([
        path,
        response.statusCode,
        response.headers['www-authenticate'],
        response.json<{ error: string }>().error,
      ]).toEqual([path, 401, 'Bearer', 'unauthenticated']);
      expect(response.body).not.toContain('wrong');
    }
    const client = await SseClient.open(`${url}/pipeline/${id}/logs?token=${API_KEY}`);
    expect(client.status).toBe(200);
    await client.ended;
    expect(client.messages).toHaveLength(9);
  });

  it('without an API key it is open while reading is public, and 401 otherwise', async () => {
    const { id, log } = newRun();
    await play(id, log);
    await world.owner.project(id);
    expect((await (await world.gateway({ apiKey: undefined })).inject(`/pipeline/${id}/logs`)).statusCode).toBe(200);
    expect(
      (await (await world.gateway({ apiKey: undefined, publicRead: false })).inject(`/pipeline/${id}/logs`)).statusCode,
    ).toBe(401);
  });

  it("an unknown run, or another tenant's, is 404 with a JSON body before any stream begins", async () => {
    const { app } = await listening();
    const other = runIdFor('u1');
    world.owner.adopt(other, YAML, 'u1');
    for (const id of [runIdFor(), other, 'x', '%20']) {
      const response = await app.inject({
        url: `/pipeline/${id}/logs`,
        headers: { authorization: `Bearer ${API_KEY}` },
      });
      expect([response.statusCode, response.json()]).toEqual([
        404,
        { error: 'not_found', message: expect.any(String) },
      ]);
    }
  });

  it('with the owner away the stream of a live run is 503 with Retry-After', async () => {
    const { app } = await listening({ ownerMsMax: 200 });
    const { id } = newRun();
    await world.owner.leave();
    const response = await app.inject({ url: `/pipeline/${id}/logs`, headers: { authorization: `Bearer ${API_KEY}` } });
    expect([response.statusCode, response.headers['retry-after'], response.json<{ error: string }>().error]).toEqual([
      503,
      expect.stringMatching(/^\d+$/u),
      'unavailable',
    ]);
  });

  it('beyond the number of streams that may be open it is 503 with Retry-After', async () => {
    const { app, url } = await listening({ streamsMax: 1 });
    const { id } = newRun();
    await watch(url, id);
    const response = await app.inject({ url: `/pipeline/${id}/logs`, headers: { authorization: `Bearer ${API_KEY}` } });
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '5']);
  });
});

describe('the number of open streams', () => {
  it('is bounded for a user, from wherever it watches, and for an address, whoever watches from there; 429 beyond', async () => {
    const { url } = await listening({ streamsPerUser: 2, trustProxy: ['127.0.0.1'] });
    const { id } = newRun();
    const [ada, bob] = [await world.auth.login('ada'), await world.auth.login('bob')];
    const path = `${url}/pipeline/${id}/logs`;
    const from = async (token: string, address: string): Promise<SseClient> => {
      const client = await SseClient.open(path, { token, forwardedFor: address });
      return opened(client);
    };
    const open = [await from(ada.token, '10.0.0.1'), await from(ada.token, '10.0.0.2')];
    expect(open.map(({ status }) => status)).toEqual([200, 200]);
    const headers = { authorization: `Bearer ${ada.token}`, 'x-forwarded-for': '10.0.0.3' };
    const refused = await fetch(path, { headers });
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toMatchObject([
      429,
      '5',
      { error: 'rate_limited', message: expect.stringContaining('At most 2 log streams') as unknown },
    ]);
    expect((await from(bob.token, '10.0.0.1')).status).toBe(200);
    expect((await from(API_KEY, '10.0.0.1')).status).toBe(429);
    open[0]?.close();
    await vi.waitFor(async () => expect((await from(API_KEY, '10.0.0.1')).status).toBe(200));
    // A request that opens no stream takes no place.
    expect((await fetch(path, { method: 'HEAD', headers: { ...headers, 'x-forwarded-for': '10.0.0.1' } })).status).toBe(
      200,
    );
  });
});
