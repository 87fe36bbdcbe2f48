/** What is over is removed, what lives stays; a store that is away is said to be. */
import { silentLog } from '@penstock/telemetry/log';
import { StoreUnavailable, type CollectionSpec, type DocumentStore } from '@penstock/store';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import {
  deviceCodesSpec,
  oneTimeClaimsSpec,
  refreshTokensSpec,
  sessionsSpec,
  usersSpec,
} from '../src/model/collections.ts';
import { startSweeper } from '../src/model/sweeper.ts';
import { loginByWeb, makeWorld, type World } from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const DAY_MS = 86_400_000;

async function count(spec: CollectionSpec): Promise<number> {
  return (await world.store.collection(spec).list({ limit: 1_000 })).length;
}

it('the sweeper removes codes, marks, sessions and refresh tokens when their time has come, and nothing before', async () => {
  const server = await world.server();
  const sweeper = startSweeper({ store: world.store, log: silentLog, now: () => Date.now() + world.aheadMs });
  const { refresh_token: token } = await loginByWeb(server);
  await server.post('/auth/refresh', { refresh_token: token, rotate: true });
  await server.post('/auth/device');
  const counts = (): Promise<number[]> =>
    Promise.all([deviceCodesSpec, oneTimeClaimsSpec, sessionsSpec, refreshTokensSpec, usersSpec].map(count));
  await sweeper.sweep();
  expect(await counts()).toEqual([1, 2, 1, 2, 1]);
  world.aheadMs = 20 * 60_000;
  await sweeper.sweep();
  expect(await counts()).toEqual([0, 1, 1, 2, 1]);
  world.aheadMs = 31 * DAY_MS;
  await sweeper.sweep();
  expect(await counts()).toEqual([0, 0, 0, 0, 1]);
  sweeper.close();
});

it('while the store is away every answer that needs it is 503, and says when to come again', async () => {
  const away = new Proxy({}, { get: () => () => Promise.reject(new StoreUnavailable('of this test', 'gone')) });
  const store: DocumentStore = {
    ...world.store,
    collection: () => away as never,
    ping: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const server = await world.server({ store });
  for (const answer of [
    await server.post('/auth/device'),
    await server.post('/auth/device/token', { device_code: 'x' }),
    await server.post('/auth/refresh', { refresh_token: 'rt_x' }),
  ]) {
    expect(answer).toMatchObject({ status: 503, body: { error: 'unavailable' } });
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect(answer.text).not.toContain('of this test');
  }
});
