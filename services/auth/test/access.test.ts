/** Who else may work on a repository, as auth keeps it. */
import { buckets, watchLeases } from '@penstock/bus';
import { callAuth, revocationKeys } from '@penstock/identity';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { accessGrantsSpec } from '../src/model/collections.ts';
import {
  afterEachGet,
  afterEachList,
  Browser,
  fragmentOf,
  isArrival,
  loginByWeb,
  makeWorld,
  type World,
} from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const SHOP = { tenant: 'user/owner', provider: 'git_host_a', repository: 'Acme/shop' } as const;
const asker = { actor: 'user/owner', ip: '192.0.2.1' } as const;
const grant = (login: string, role: string, of: typeof SHOP | { repository: string } = SHOP): Promise<unknown> =>
  callAuth(world.bus, 'access.grant', { ...SHOP, ...of, ...asker, login, role });
const grantsOf = async (userId: string): Promise<string[]> =>
  (await callAuth(world.bus, 'access.of', { userId })).grants.map(({ repository, role }) => `${repository} ${role}`);

async function userOf(login: string, id: number, email?: string): Promise<string> {
  world.host.account = { id, login, email };
  const server = await world.server();
  const { access_token: token } = await loginByWeb(server);
  return String((await server.get('/auth/me', { authorization: `Bearer ${token}` })).body['id']);
}

describe('access', () => {
  it('is of whoever has the name, in any case, is replaced by another role, and is taken back', async () => {
    const bob = await userOf('Bob', 21);
    expect(await grant(' BOB ', 'read')).toEqual({
      login: 'bob',
      role: 'read',
      grantedBy: 'user/owner',
      grantedAt: expect.any(String),
    });
    expect(await grantsOf(bob)).toEqual(['Acme/shop read']);
    await grant('bob', 'admin');
    expect(await grantsOf(bob)).toEqual(['Acme/shop admin']);
    expect((await callAuth(world.bus, 'access.list', SHOP)).access).toEqual([
      expect.objectContaining({ login: 'bob', role: 'admin' }),
    ]);
    const of = { ...SHOP, repository: 'acme/SHOP' };
    expect(await callAuth(world.bus, 'access.revoke', { ...of, ...asker, login: 'Bob' })).toEqual({ revoked: true });
    expect(await grantsOf(bob)).toEqual([]);
    expect(await callAuth(world.bus, 'access.revoke', { ...of, ...asker, login: 'Bob' })).toEqual({ revoked: false });
    expect(
      world.audit.filter(({ action }) => action.startsWith('access.')).map(({ action, target }) => [action, target]),
    ).toEqual([
      ['access.grant', 'git_host_a Acme/shop read to bob'],
      ['access.grant', 'git_host_a Acme/shop admin to bob'],
      ['access.revoke', 'git_host_a acme/SHOP of bob'],
    ]);
  });

  it('waits for who has not logged in yet, and says nothing of that', async () => {
    await world.server();
    const known = await grant('carol', 'read');
    const carol = await userOf('Carol', 22);
    expect(Object.keys((await grant('nobody-yet', 'read')) as object)).toEqual(Object.keys(known as object));
    expect(await grantsOf(carol)).toEqual(['Acme/shop read']);
  });

  it('that is taken back while its user logs in for the first time stays so', async () => {
    let isGiven = false;
    const store = afterEachList(world.store, accessGrantsSpec.name, async () => {
      if (isGiven) await callAuth(world.bus, 'access.revoke', { ...SHOP, ...asker, login: 'ivan' });
    });
    const server = await world.server({ store });
    await grant('ivan', 'admin');
    isGiven = true;
    world.host.account = { id: 29, login: 'Ivan' };
    const { access_token: token } = await loginByWeb(server);
    const { id } = (await server.get('/auth/me', { authorization: `Bearer ${token}` })).body;
    expect(await grantsOf(String(id))).toEqual([]);
  });

  describe('that is changed while its user logs in for the first time', () => {
    /** Somebody of this name logs in between the look at the grant and what is made of it. */
    async function changedBesideLogin(login: string, id: number, change: () => Promise<unknown>): Promise<string> {
      let userId = '';
      let isDue = false;
      const store = afterEachGet(world.store, accessGrantsSpec.name, async () => {
        if (!isDue) return;
        isDue = false;
        world.host.account = { id, login };
        const { access_token: token } = await loginByWeb(server);
        userId = String((await server.get('/auth/me', { authorization: `Bearer ${token}` })).body['id']);
      });
      const server = await world.server({ store });
      await grant(login, 'admin');
      isDue = true;
      await change();
      return userId;
    }

    it('is told to every gateway, which may have asked for it since', async () => {
      const told: string[] = [];
      const watch = watchLeases(world.bus, buckets.revocations, ({ key }) => told.push(key));
      await watch.ready;
      const liam = await changedBesideLogin('liam', 44, () =>
        callAuth(world.bus, 'access.revoke', { ...SHOP, ...asker, login: 'liam' }),
      );
      expect(await grantsOf(liam)).toEqual([]);
      await expect.poll(() => told.filter((key) => key === revocationKeys.access(liam))).toHaveLength(2);
      watch.stop();
    });

    it('has the role that was given last', async () => {
      const mona = await changedBesideLogin('mona', 45, () => grant('mona', 'read'));
      expect(await grantsOf(mona)).toEqual(['Acme/shop read']);
    });
  });

  describe('that others give at the same moment', () => {
    /** Between each look at a grant and what is made of it. */
    async function beside(change: () => Promise<unknown>): Promise<Awaited<ReturnType<World['server']>>> {
      let isChanging = false;
      const store = afterEachGet(world.store, accessGrantsSpec.name, async () => {
        if (isChanging) return;
        isChanging = true;
        await change();
        isChanging = false;
      });
      return await world.server({ store });
    }

    it('has the role that was asked for last, and its user, also where nobody had given it before', async () => {
      let nora = '';
      const server = await beside(async () => {
        if (nora !== '') return;
        await grant('nora', 'admin');
        world.host.account = { id: 46, login: 'nora' };
        const { access_token: token } = await loginByWeb(server);
        nora = String((await server.get('/auth/me', { authorization: `Bearer ${token}` })).body['id']);
      });
      await grant('nora', 'read');
      expect(await grantsOf(nora)).toEqual(['Acme/shop read']);
    });

    it('is not tried without end', async () => {
      await beside(() => grant('olga', 'admin'));
      await expect(grant('olga', 'read')).rejects.toThrow('is being changed by others at the same time: try again');
    });
  });

  it('goes by the login at the embedded provider, where nobody vouches for anything, as approvals do', async () => {
    const server = await world.server({ provider: {} });
    await grant('hedy', 'read');
    const browser = new Browser();
    const told = await browser.submit(await browser.follow(`${server.url}/auth/web/login`), { login: 'Hedy' });
    const { url } = await browser.submit(told, { decision: 'allow' }, isArrival);
    const { body } = await server.get('/auth/me', { authorization: `Bearer ${fragmentOf(url)['access_token']}` });
    expect(await grantsOf(String(body['id']))).toEqual(['Acme/shop read']);
    expect(await callAuth(world.bus, 'names', { id: String(body['id']) })).toMatchObject({
      names: ['hedy'],
    });
  });

  it('does not go to another account that takes the name over', async () => {
    const first = await userOf('dave', 23);
    await grant('dave', 'approve');
    const second = await userOf('dave', 24);
    expect([await grantsOf(first), await grantsOf(second)]).toEqual([['Acme/shop approve'], []]);
  });

  it('is told to every gateway before it is answered, given and taken', async () => {
    const erin = await userOf('erin', 25);
    const told: string[] = [];
    let heard = Promise.withResolvers<void>();
    const watch = watchLeases(world.bus, buckets.revocations, ({ key }) => {
      told.push(key);
      heard.resolve();
    });
    await watch.ready;
    told.length = 0;
    heard = Promise.withResolvers<void>();
    await grant('erin', 'read');
    await heard.promise;
    heard = Promise.withResolvers<void>();
    await callAuth(world.bus, 'access.revoke', { ...SHOP, ...asker, login: 'erin' });
    await heard.promise;
    expect(told).toEqual([revocationKeys.access(erin), revocationKeys.access(erin)]);
    watch.stop();
  });

  it('ends with the repository, and where its holder leaves', async () => {
    const frank = await userOf('frank', 26);
    await grant('frank', 'read', { repository: 'acme/one' });
    await grant('frank', 'read', { repository: 'acme/two' });
    const one = { ...SHOP, repository: 'acme/one' };
    expect(await callAuth(world.bus, 'access.leave', { ...one, ...asker, userId: frank })).toEqual({ revoked: true });
    expect(await callAuth(world.bus, 'access.leave', { ...one, ...asker, userId: frank })).toEqual({ revoked: false });
    expect(await grantsOf(frank)).toEqual(['acme/two read']);
    expect(await callAuth(world.bus, 'access.end', { ...SHOP, repository: 'acme/two', ...asker })).toEqual({
      ended: 1,
    });
    expect(await grantsOf(frank)).toEqual([]);
  });

  it.each([
    ['', 'read'],
    ['two words', 'read'],
    ['x'.repeat(301), 'read'],
    ['bob', 'owner'],
    ['bob', ''],
  ])('of %j with the role %j is refused', async (login, role) => {
    await world.server();
    await expect(grant(login, role)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  it('is bounded for a person, whoever gives it', async () => {
    await world.server();
    for (let index = 0; index < 45; index += 1) await grant('gina', 'read', { repository: `acme/r${index}` });
    await expect(grant('gina', 'read', { repository: 'acme/more' })).rejects.toMatchObject({ code: 'CONFLICT' });
    await grant('gina', 'admin', { repository: 'acme/r7' });
  });

  it('is bounded for a person, too, where all of it is given at the same moment', async () => {
    await world.server();
    const given = Array.from({ length: 90 }, (_, index) => grant('hugo', 'read', { repository: `acme/r${index}` }));
    const count = (await Promise.allSettled(given)).filter(({ status }) => status === 'fulfilled').length;
    expect(count).toBeLessThanOrEqual(45);
    expect(await grantsOf(await userOf('hugo', 41))).toHaveLength(count);
  });

  it('is bounded for a repository, too, where all of it is given at the same moment', async () => {
    await world.server();
    const given = Array.from({ length: 260 }, (_, index) => grant(`judy${index}`, 'read', { repository: 'acme/wide' }));
    const count = (await Promise.allSettled(given)).filter(({ status }) => status === 'fulfilled').length;
    expect(count).toBeLessThanOrEqual(200);
  });

  it('by one of the names of a person takes nothing away of what was given by another', async () => {
    await world.server();
    const own = Array.from({ length: 30 }, (_, index) => `acme/r${index}`);
    for (const repository of own) await grant('ivy', 'read', { repository });
    for (let index = 0; index < 45; index += 1)
      await grant('ivy@example.org', 'read', { repository: `mallory/r${index}` });
    const ivy = await userOf('ivy', 42, 'ivy@example.org');
    expect(await grantsOf(ivy)).toEqual(expect.arrayContaining(own.map((repository) => `${repository} read`)));
  });

  it('keeps its place before what was given later when its role is replaced', async () => {
    await world.server();
    const kim = await userOf('kim', 43, 'kim@example.org');
    for (const repository of ['acme/a', 'acme/b', 'acme/c']) {
      await grant('kim', 'read', { repository });
      world.aheadMs += 1_000;
    }
    await grant('kim', 'admin', { repository: 'acme/a' });
    expect(await grantsOf(kim)).toEqual(['acme/a admin', 'acme/b read', 'acme/c read']);
  });
});
