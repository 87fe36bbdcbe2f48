/** Personal tokens, as the gateway asks for them. */
import { buckets, watchLeases } from '@penstock/bus';
import { callAuth, isPersonalToken, personalTokenHash, revocationKeys } from '@penstock/identity';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loginByWeb, makeWorld, type World } from './support.ts';

let world: World;
let userId: string;
beforeAll(async () => {
  world = await makeWorld();
});
beforeEach(async () => {
  userId = await newUser('alice', 7);
});
afterEach(() => world.reset());
afterAll(() => world.close());

async function newUser(login: string, id: number): Promise<string> {
  world.host.account = { id, login };
  const server = await world.server();
  const { access_token: token } = await loginByWeb(server);
  return String((await server.get('/auth/me', { authorization: `Bearer ${token}` })).body['id']);
}

const create = (name = 'ci', scopes: readonly string[] = ['read']): ReturnType<typeof callAuth<'tokens.create'>> =>
  callAuth(world.bus, 'tokens.create', { userId, name, scopes });

describe('a personal token', () => {
  it('is shown once and stands for its user with its scopes', async () => {
    const created = await create('deploys', ['trigger', 'read', 'read']);
    expect(created).toEqual({
      id: expect.any(String),
      name: 'deploys',
      scopes: ['trigger', 'read'],
      createdAt: expect.any(String),
      expiresAt: null,
      token: expect.stringMatching(/^svc_[0-9A-Za-z]{37}$/u),
    });
    expect(isPersonalToken(created.token)).toBe(true);
    expect(await callAuth(world.bus, 'token', { hash: personalTokenHash(created.token) })).toEqual({
      user: { id: userId, email: 'alice@users.noreply.127.0.0.1', tier: 'free', isAdmin: false },
      scopes: ['trigger', 'read'],
      tokenId: created.id,
    });
    const list = await callAuth(world.bus, 'tokens.list', { userId });
    expect(list.tokens.find(({ id }) => id === created.id)).toEqual({
      id: created.id,
      name: 'deploys',
      scopes: ['trigger', 'read'],
      createdAt: created.createdAt,
      expiresAt: null,
      lastUsedAt: null,
    });
    expect(JSON.stringify(list)).not.toContain(personalTokenHash(created.token).slice(0, 8));
    expect(JSON.stringify(world.audit)).not.toContain(created.token.slice(0, 8));
    expect(world.audit.at(-1)).toMatchObject({ action: 'token.create', target: `token/${created.id}` });
  });

  it.each([
    ['an unknown scope', 'ci', ['read', 'admin']],
    ['no scope', 'ci', []],
    ['an empty name', ' ', ['read']],
    ['a name without end', 'x'.repeat(101), ['read']],
  ])('is not made with %s', async (_, name, scopes) => {
    await expect(create(name, scopes)).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
  });

  it('ends when it expires, is still listed, and makes room for another', async () => {
    const { id, token, expiresAt } = await callAuth(world.bus, 'tokens.create', {
      userId,
      name: 'a week',
      scopes: ['read'],
      expires: '7d',
    });
    const hash = personalTokenHash(token);
    expect((await callAuth(world.bus, 'token', { hash })).expiresAt).toBe(Date.parse(expiresAt ?? ''));
    world.aheadMs = 7 * 24 * 3_600_000;
    await expect(callAuth(world.bus, 'token', { hash })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    const listed = async (): Promise<(string | null)[]> =>
      (await callAuth(world.bus, 'tokens.list', { userId })).tokens
        .filter((one) => one.id === id)
        .map((one) => one.expiresAt);
    expect(await listed()).toEqual([expiresAt]);
    await create('the next');
    expect(await listed()).toEqual([]);
  });

  it.each(['', 'soon', '1s', '-1d', '99999d'])('is not made with the end %j', async (expires) => {
    await expect(
      callAuth(world.bus, 'tokens.create', { userId, name: 'ci', scopes: ['read'], expires }),
    ).rejects.toMatchObject({ code: 'BAD_USER_INPUT', message: expect.stringContaining("'expires'") });
  });

  it('all of a user are revoked at once, and nobody else’s', async () => {
    const other = await newUser('bob', 8);
    const kept = await callAuth(world.bus, 'tokens.create', { userId: other, name: 'ci', scopes: ['read'] });
    const made = [await create(), await create()];
    const { revoked } = await callAuth(world.bus, 'tokens.revoke-all', { userId });
    expect(revoked).toEqual(expect.arrayContaining(made.map(({ id }) => id)));
    expect((await callAuth(world.bus, 'tokens.list', { userId })).tokens).toEqual([]);
    for (const { token } of made)
      await expect(callAuth(world.bus, 'token', { hash: personalTokenHash(token) })).rejects.toMatchObject({
        code: 'UNAUTHENTICATED',
      });
    expect((await callAuth(world.bus, 'token', { hash: personalTokenHash(kept.token) })).tokenId).toBe(kept.id);
    expect(world.audit.at(-1)).toMatchObject({ action: 'token.revoke_all', target: `user/${userId}`, outcome: 'ok' });
  });

  it('is revoked: gone, and every watcher knows before the answer', async () => {
    const { id, token } = await create();
    const seen = Promise.withResolvers<void>();
    const watch = watchLeases(world.bus, buckets.revocations, ({ key }) => {
      if (key === revocationKeys.token(id)) seen.resolve();
    });
    await watch.ready;
    expect(await callAuth(world.bus, 'tokens.revoke', { userId, id })).toEqual({ revoked: true });
    await seen.promise;
    watch.stop();
    await expect(callAuth(world.bus, 'token', { hash: personalTokenHash(token) })).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    });
    await expect(callAuth(world.bus, 'tokens.revoke', { userId, id })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('of somebody else is not there, like one that never was', async () => {
    const { id } = await create();
    const other = await newUser('mallory', 666);
    const refusals = await Promise.all(
      [id, crypto.randomUUID(), '', 'x'].map((guess) =>
        callAuth(world.bus, 'tokens.revoke', { userId: other, id: guess }).then(
          () => null,
          (error: Error) => `${(error as { code?: string }).code} ${error.message}`,
        ),
      ),
    );
    expect(new Set(refusals).size).toBe(1);
    expect(refusals[0]).toContain('NOT_FOUND');
    expect((await callAuth(world.bus, 'tokens.list', { userId: other })).tokens).toEqual([]);
  });

  it('remembers its last use; an earlier one told later changes nothing, and a revoked one is passed over', async () => {
    const [one, gone] = [await create('one'), await create('gone')];
    await callAuth(world.bus, 'tokens.revoke', { userId, id: gone.id });
    await callAuth(world.bus, 'token.used', {
      used: [
        { tokenId: one.id, at: 1_800_000_000_000 },
        { tokenId: gone.id, at: 1 },
        { tokenId: 'x', at: 1 },
      ],
    });
    await callAuth(world.bus, 'token.used', { used: [{ tokenId: one.id, at: 1_700_000_000_000 }] });
    const { tokens } = await callAuth(world.bus, 'tokens.list', { userId });
    expect(tokens.find(({ id }) => id === one.id)?.lastUsedAt).toBe('2027-01-15T08:00:00.000Z');
  });

  it.each([['nothing'], [''], ['../..'], ['A'.repeat(64)]])('is not found by the hash %j', async (hash) => {
    await expect(callAuth(world.bus, 'token', { hash })).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  it('one user has a hundred of at most', async () => {
    userId = await newUser('collector', 100);
    for (let index = 0; index < 100; index += 1) await create(`t${index}`);
    await expect(create('one more')).rejects.toMatchObject({ code: 'CONFLICT' });
  });

  it('one user has no more where all are made at the same moment', async () => {
    userId = await newUser('hoarder', 101);
    const answers = await Promise.allSettled(Array.from({ length: 150 }, (_, index) => create(`t${index}`)));
    const made = answers.filter(({ status }) => status === 'fulfilled').length;
    expect(made).toBeLessThanOrEqual(100);
    const { tokens } = await callAuth(world.bus, 'tokens.list', { userId });
    expect(tokens).toHaveLength(made);
  });
});

it('a user is found by id, and a stranger is not', async () => {
  expect(await callAuth(world.bus, 'user', { id: userId })).toMatchObject({
    id: userId,
    login: 'alice',
    tier: 'free',
    isAdmin: false,
  });
  await expect(callAuth(world.bus, 'user', { id: crypto.randomUUID() })).rejects.toMatchObject({ code: 'NOT_FOUND' });
});
