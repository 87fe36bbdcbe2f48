/** Who is shut out by an administrator: every door of auth, one by one. */
import { callAuth, personalTokenHash } from '@penstock/identity';
import type { CollectionSpec } from '@penstock/store';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sessionsSpec, usersSpec } from '../src/model/collections.ts';
import {
  Browser,
  fragmentOf,
  instead,
  isArrival,
  loginByWeb,
  makeWorld,
  type TestServer,
  type World,
} from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

interface LoggedIn {
  readonly server: TestServer;
  readonly userId: string;
  readonly refreshToken: string;
}

const ROOT = { actor: 'user/root', ip: '192.0.2.1' } as const;
const suspend = (login: string, actor: string = ROOT.actor): Promise<unknown> =>
  callAuth(world.bus, 'user.suspend', { ...ROOT, actor, login });
const unsuspend = (login: string): Promise<unknown> => callAuth(world.bus, 'user.unsuspend', { login, ...ROOT });
const suspendedLogins = async (): Promise<string[]> =>
  (await callAuth(world.bus, 'users.suspended', {})).users.map(({ login }) => login);

async function loggedIn(login: string, id: number): Promise<LoggedIn> {
  world.host.account = { id, login };
  const server = await world.server();
  const { access_token: token, refresh_token: refreshToken = '' } = await loginByWeb(server);
  const { body } = await server.get('/auth/me', { authorization: `Bearer ${token}` });
  return { server, userId: String(body['id']), refreshToken };
}

/** What each door says to the user. */
async function doorsTo({ server, refreshToken }: LoggedIn, personalToken: string): Promise<readonly unknown[]> {
  const arrived = fragmentOf((await new Browser().follow(`${server.url}/auth/web/login`, {}, isArrival)).url);
  const { device_code } = (await server.post('/auth/device')).body;
  world.host.device = 'authorized';
  const byDevice = (await server.post('/auth/device/token', { device_code })).status;
  const refreshed = (await server.post('/auth/refresh', { refresh_token: refreshToken })).status;
  const byToken = await callAuth(world.bus, 'token', { hash: personalTokenHash(personalToken) }).then(
    () => 'known',
    () => 'unknown',
  );
  return [arrived['error'] ?? 'logged in', byDevice, refreshed, byToken];
}

describe('a suspended user', () => {
  it('gets nothing by a login, a refresh or a personal token, and everything again once that is lifted', async () => {
    const mallory = await loggedIn('Mallory', 71);
    const { userId } = mallory;
    const { token } = await callAuth(world.bus, 'tokens.create', { userId, name: 'ci', scopes: ['read'] });
    expect(await doorsTo(mallory, token)).toEqual(['logged in', 200, 200, 'known']);
    expect(await suspend(' MALLORY ')).toEqual({
      id: userId,
      login: 'Mallory',
      suspendedBy: 'user/root',
      suspendedAt: expect.any(String),
    });
    expect(await doorsTo(mallory, token)).toEqual(['access_denied', 400, 401, 'unknown']);
    expect(await suspendedLogins()).toEqual(['Mallory']);
    expect(await unsuspend(userId)).toEqual({ lifted: true });
    expect(await doorsTo(mallory, token)).toEqual(['logged in', 200, 200, 'known']);
    expect(await suspendedLogins()).toEqual([]);
    expect(await unsuspend('mallory')).toEqual({ lifted: false });
    expect(world.audit.filter(({ action }) => action.startsWith('user.'))).toMatchObject([
      { action: 'user.suspend', actor: 'user/root', target: `user/${userId}`, outcome: 'ok', ip: '192.0.2.1' },
      { action: 'user.unsuspend', actor: 'user/root', target: `user/${userId}` },
    ]);
  });

  it('has no session that lives', async () => {
    const { userId } = await loggedIn('Trent', 72);
    const [session] = await world.store.collection(sessionsSpec).list({ where: { userId }, limit: 1 });
    const isLive = async (): Promise<boolean> =>
      (await callAuth(world.bus, 'session', { sid: String(session?.id) })).live;
    expect(await isLive()).toBe(true);
    await suspend('trent');
    expect(await isLive()).toBe(false);
    await unsuspend('trent');
    expect(await isLive()).toBe(true);
  });

  it('gets nothing by a code that was approved before', async () => {
    world.host.account = { id: 77, login: 'Rupert' };
    world.host.device = 'unsupported';
    const server = await world.server();
    const { body } = await server.post('/auth/device');
    const browser = new Browser();
    const start = await browser.follow(String(body['verification_uri_complete']));
    const done = await browser.submit(start, { decision: 'allow' });
    expect(done.answer.text).toContain('The device is logged in');
    await suspend('rupert');
    expect(await server.post('/auth/device/token', { device_code: body['device_code'] })).toMatchObject({
      status: 400,
      body: { status: 'expired' },
    });
    await unsuspend('rupert');
    expect((await server.post('/auth/device/token', { device_code: body['device_code'] })).status).toBe(200);
  });

  it('is nobody to an access token of before, whoever is asked', async () => {
    world.host.account = { id: 78, login: 'Craig' };
    const server = await world.server();
    const { access_token: token } = await loginByWeb(server);
    const me = async (): Promise<number> => (await server.get('/auth/me', { authorization: `Bearer ${token}` })).status;
    expect(await me()).toBe(200);
    await suspend('craig');
    expect(await me()).toBe(401);
    await unsuspend('craig');
    expect(await me()).toBe(200);
  });

  it('stays shut out by whom and since when it was first, however often that is said', async () => {
    await loggedIn('Sybil', 73);
    const first = await suspend('sybil');
    expect(await suspend('sybil', 'user/another')).toEqual(first);
    await unsuspend('sybil');
  });

  it('is nobody whom the installation does not know, and never the administrator that asks', async () => {
    const { userId } = await loggedIn('Root', 74);
    await expect(suspend('never-seen')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(suspend('x'.repeat(100_000))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(suspend('root', `user/${userId}`)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(await suspendedLogins()).toEqual([]);
  });
});

describe('a user who is being deleted', () => {
  const by = { ...ROOT, login: 'peggy' } as const;

  it('is shut out for good from the first step on; what was cut off is found again by the name, and counted once', async () => {
    const peggy = await loggedIn('Peggy', 75);
    const { userId } = peggy;
    const { token } = await callAuth(world.bus, 'tokens.create', { userId, name: 'ci', scopes: ['read'] });
    await expect(callAuth(world.bus, 'user.forget', { userId, ...ROOT })).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(callAuth(world.bus, 'user.delete', { ...by, actor: `user/${userId}` })).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
    });
    expect(await callAuth(world.bus, 'user.delete', by)).toEqual({ id: userId, login: 'Peggy' });
    expect(await doorsTo(peggy, token)).toEqual(['access_denied', 400, 401, 'unknown']);
    await expect(unsuspend('peggy')).rejects.toMatchObject({ code: 'CONFLICT' });
    await expect(suspend('peggy')).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(await suspendedLogins()).toEqual([]);
    expect(await callAuth(world.bus, 'user.delete', by)).toMatchObject({ id: userId });
    const forget = (): Promise<unknown> => callAuth(world.bus, 'user.forget', { userId, ...ROOT });
    const none = { sessions: 0, tokens: 0, secrets: 0, identities: 0, grantsGiven: 0, grantsReceived: 0 };
    expect(await forget()).toEqual({ ...none, sessions: 1, tokens: 1, identities: 1 });
    expect(await forget()).toEqual(none);
    await expect(callAuth(world.bus, 'user.delete', by)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await callAuth(world.bus, 'user.delete', { ...by, login: userId })).toEqual({ id: userId, login: '' });
    expect((await loggedIn('Peggy', 75)).userId).not.toBe(userId);
  });

  it('leaves nothing behind of a login that is under way', async () => {
    const { userId } = await loggedIn('Walter', 76);
    const users = world.store.collection(usersSpec);
    const slow = instead(world.store, {
      collection: (spec: CollectionSpec) => {
        const found = world.store.collection(spec);
        if (spec.name !== usersSpec.name) return found;
        const replaceNewer: typeof found.replaceNewer = async (rows) => {
          await callAuth(world.bus, 'user.delete', { ...ROOT, login: userId });
          await callAuth(world.bus, 'user.forget', { userId, ...ROOT });
          return await found.replaceNewer(rows);
        };
        return instead(found, { replaceNewer });
      },
    });
    const server = await world.server({ store: slow });
    const arrived = fragmentOf((await new Browser().follow(`${server.url}/auth/web/login`, {}, isArrival)).url);
    expect(arrived['error']).toBe('access_denied');
    expect(await users.get(userId)).toBeNull();
  });
});
