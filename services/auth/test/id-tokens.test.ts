/** Id tokens: what they say, who verifies them by what is published alone, and how the keys that sign them change. */
import { randomBytes } from 'node:crypto';
import type { IdTokens, Slip } from '@penstock/bus';
import { createLocalJWKSet, createRemoteJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailable, type DocumentStore } from '@penstock/store';
import { signingKeysSpec } from '../src/model/collections.ts';
import { idTokensFor, subjectOf } from '../src/model/id-tokens.ts';
import { MasterKeys } from '../src/model/master-keys.ts';
import { startResealing } from '../src/model/resealing.ts';
import { SigningKeys } from '../src/model/signing-keys.ts';
import { makeWorld, type World } from './support.ts';

const DAY = 24 * 60 * 60_000;
const HOUR = 60 * 60_000;
const ISSUER = 'https://ci.example';
const AUDIENCE = 'https://sts.example';
const masterKey = (): string => randomBytes(32).toString('base64');

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(async () => {
  await world.reset();
  const keys = world.store.collection(signingKeysSpec);
  for (const { id } of await keys.list({ where: {}, limit: 100, parts: [] })) await keys.delete(id);
});
afterAll(() => world.close());

const slip: Slip = {
  ...{ run: 'run-1', stage: 'deploy', attempt: 2, runner: 'r1', session: 's1', tenant: 'user/7', pipeline: 'release' },
  ...{ trusted: true, trigger: 'push', provider: 'git_host_a', repository: 'acme/shop', ref: 'refs/heads/main' },
  ...{ commit: 'c0ffee', actor: 'alice', names: [], audiences: [AUDIENCE], until: Date.now() + 1_000 * DAY },
};

function keysAt(now: () => number, master = MASTER): SigningKeys {
  return new SigningKeys(world.store, new MasterKeys(master), now);
}

async function tokenOf(keys: SigningKeys, now: number, of: Partial<Slip> = {}): Promise<string> {
  const given = await idTokensFor({ ...slip, ...of }, { keys, issuer: () => ISSUER, now: () => now });
  return (given as IdTokens).tokens[AUDIENCE] ?? '';
}

async function verified(token: string, keys: SigningKeys, now: number) {
  const set = createLocalJWKSet({ keys: (await keys.published()) as JSONWebKeySet['keys'] });
  return await jwtVerify(token, set, { issuer: ISSUER, audience: AUDIENCE, currentDate: new Date(now) });
}

const MASTER = [masterKey()];

describe('an id token', { timeout: 60_000 }, () => {
  it('is verified by what the server publishes, and says what its stage is', async () => {
    const server = await world.server({ masterKeys: MASTER });
    const discovered = await server.get('/.well-known/openid-configuration');
    expect(discovered.body).toMatchObject({ issuer: server.url, jwks_uri: `${server.url}/.well-known/jwks.json` });
    const now = Date.now();
    const given = await idTokensFor(slip, { keys: keysAt(Date.now), issuer: () => server.url, now: () => now });
    expect(given).toMatchObject({ lifeMs: HOUR });
    const token = (given as IdTokens).tokens[AUDIENCE] ?? '';
    const set = createRemoteJWKSet(new URL(String(discovered.body['jwks_uri'])));
    const { payload } = await jwtVerify(token, set, { issuer: server.url, audience: AUDIENCE, algorithms: ['RS256'] });
    const { iat = 0, exp = 0, nbf, jti, ...claims } = payload;
    expect(claims).toEqual({
      ...{ iss: server.url, aud: AUDIENCE, run_id: 'run-1', stage: 'deploy', attempt: 2, pipeline: 'release' },
      ...{ sub: 'tenant:user%2F7:repo:git_host_a/acme%2Fshop:ref:refs%2Fheads%2Fmain', tenant: 'user/7' },
      ...{ provider: 'git_host_a', repository: 'acme/shop', ref: 'refs/heads/main', commit: 'c0ffee' },
      ...{ trigger: 'push', actor: 'alice' },
    });
    expect(exp - iat).toBe(3_600);
    expect([nbf, typeof jti]).toEqual([iat, 'string']);
    const published = await server.get('/.well-known/jwks.json');
    expect(JSON.stringify(published.body)).not.toMatch(/"(?:d|p|q|dp|dq|qi)":/);
    await expect(jwtVerify(token, set, { issuer: server.url, audience: 'https://another.example' })).rejects.toThrow(
      /aud/,
    );
  });

  it('is given to no run that is not trusted, and to nobody without a master key', async () => {
    const sources = { keys: keysAt(Date.now), issuer: () => ISSUER, now: Date.now };
    expect(await idTokensFor({ ...slip, trusted: false }, sources)).toEqual({
      why: 'a run that is not trusted gets none',
    });
    const without = { ...sources, keys: keysAt(Date.now, []) };
    expect(await idTokensFor(slip, without)).toEqual({ why: expect.stringContaining('SERVICE_MASTER_KEY') });
    expect(await without.keys.published()).toEqual([]);
  });

  it('does not outlive its attempt', async () => {
    const now = Date.now();
    const keys = keysAt(() => now);
    const token = await tokenOf(keys, now, { until: now + 10 * 60_000 });
    await verified(token, keys, now + 9 * 60_000);
    await expect(verified(token, keys, now + 11 * 60_000)).rejects.toThrow(/exp/);
  });

  it.each([
    [{ ref: 'refs/heads/a:ref:main' }, 'tenant:user%2F7:repo:git_host_a/acme%2Fshop:ref:refs%2Fheads%2Fa%3Aref%3Amain'],
    [{ repository: undefined, provider: undefined, ref: undefined }, 'tenant:user%2F7:pipeline:release'],
    [
      { repository: undefined, pipeline: 'x:repo:git_host_a/acme' },
      'tenant:user%2F7:pipeline:x%3Arepo%3Agit_host_a%2Facme',
    ],
    [{ edited: true as const }, 'tenant:user%2F7:repo:git_host_a/acme%2Fshop:ref:refs%2Fheads%2Fmain:edited'],
    [{ repository: undefined, edited: true as const, pipeline: 'x' }, 'tenant:user%2F7:pipeline:x:edited'],
    [{ ref: undefined, pipeline: '\ud800' }, 'tenant:user%2F7:pipeline:%EF%BF%BD'],
  ])('of %j has the subject %s', (parts, subject) => {
    expect(subjectOf({ ...slip, ...parts })).toBe(subject);
  });
});

describe('the keys of id tokens', { timeout: 60_000 }, () => {
  it('are another after 30 days, published a day before that and until the last token of the old one is over', async () => {
    let now = 30 * DAY * 700;
    const keys = keysAt(() => now);
    const idsAt = async (time: number): Promise<(string | undefined)[]> => {
      now = time;
      return (await keysAt(() => now).published()).map(({ kid }) => kid).toSorted();
    };
    const first = await tokenOf(keys, now);
    const old = decodeProtectedHeader(first).kid;
    expect(await idsAt(now + 28 * DAY)).toEqual([old]);
    const ahead = await idsAt(now + DAY + 1);
    expect(ahead).toHaveLength(2);
    const last = await tokenOf(keys, now + DAY - 3);
    expect(decodeProtectedHeader(last).kid).toBe(old);
    now = 30 * DAY * 701 + 1;
    const second = await tokenOf(keys, now);
    const next = decodeProtectedHeader(second).kid;
    expect(ahead).toContain(next);
    expect(next).not.toBe(old);
    expect(await idsAt(now + HOUR)).toEqual([old, next]);
    await verified(
      second,
      keysAt(() => now),
      now - 2 * 60_000,
    );
    await verified(
      last,
      keysAt(() => now),
      now - 2 * 60_000,
    );
    expect(await idsAt(now + 2 * HOUR)).toEqual([next]);
    await idsAt(now + 29 * DAY + 23 * HOUR);
    expect(await world.store.collection(signingKeysSpec).get(old ?? '')).toBeNull();
  });

  it('sign nothing any more that the store has lost: another one does, which is published', async () => {
    let now = Date.now();
    const keys = keysAt(() => now);
    const lost = await tokenOf(keys, now);
    const rows = world.store.collection(signingKeysSpec);
    for (const { id } of await rows.list({ where: {}, limit: 100, parts: [] })) await rows.delete(id);
    // Made anew by another process, under the same name, and that one alone is asked for the published ones.
    const other = keysAt(() => now);
    await other.published();
    now += 2 * 60_000;
    const token = await tokenOf(keys, now);
    expect(decodeProtectedHeader(token).kid).toBe(decodeProtectedHeader(lost).kid);
    await verified(token, other, now);
    await expect(verified(lost, other, now)).rejects.toThrow(/signature/);
  });

  it.each([
    ['is away', () => Promise.reject(new StoreUnavailable('of this test', 'gone'))],
    ['does not answer', () => new Promise<never>(() => {})],
  ])(
    'are published as they were known while the store %s, for as long as none that is new may sign',
    async (_how, away) => {
      let now = 30 * DAY * 700;
      let isAway = false;
      const store: DocumentStore = {
        ...world.store,
        collection: (spec) =>
          new Proxy(world.store.collection(spec), {
            get: (real, name) => (isAway ? away : (Reflect.get(real, name) as () => unknown).bind(real)),
          }),
      };
      const keys = new SigningKeys(store, new MasterKeys(MASTER), () => now);
      const known = await keys.published();
      expect(known).toHaveLength(1);
      isAway = true;
      now += 23 * HOUR;
      expect(await keys.published()).toEqual(known);
      const token = await tokenOf(keys, now);
      await jwtVerify(token, createLocalJWKSet({ keys: [...known] } as JSONWebKeySet), { currentDate: new Date(now) });
      now += 2 * HOUR;
      const later = Promise.race([keys.published(), new Promise((resolve) => setImmediate(resolve, 'nothing'))]);
      expect(await later.catch((error: unknown) => error)).toSatisfy(
        (answer) => answer === 'nothing' || answer instanceof StoreUnavailable,
      );
    },
  );

  it('are read once for all who ask for the published ones at a time', async () => {
    const now = Date.now();
    const reads = async (askers: number): Promise<number> => {
      let lists = 0;
      const store: DocumentStore = {
        ...world.store,
        collection: (spec) =>
          new Proxy(world.store.collection(spec), {
            get: (real, name) => {
              if (name === 'list') lists += 1;
              return (Reflect.get(real, name) as () => unknown).bind(real);
            },
          }),
      };
      const keys = new SigningKeys(store, new MasterKeys(MASTER), () => now);
      await Promise.all(Array.from({ length: askers }, () => keys.published()));
      return lists;
    };
    await reads(1);
    expect(await reads(100)).toBe(await reads(1));
  });

  it('are the same for all processes, sealed in the store, and survive a change of the master key', async () => {
    const now = Date.now();
    const tokens = await Promise.all(
      [1, 2, 3].map(() =>
        tokenOf(
          keysAt(() => now),
          now,
        ),
      ),
    );
    const kids = new Set(tokens.map((token) => decodeProtectedHeader(token).kid));
    expect(kids.size).toBe(1);
    const [kid = ''] = kids;
    const row = await world.store.collection(signingKeysSpec).get(kid);
    expect(JSON.stringify(row)).not.toMatch(/\\?"d\\?":/);
    const both = [masterKey(), ...MASTER];
    expect(
      decodeProtectedHeader(
        await tokenOf(
          keysAt(() => now, both),
          now,
        ),
      ).kid,
    ).toBe(kid);
    const log = { info: () => {}, warn: () => {} };
    const resealing = startResealing({ store: world.store, keys: new MasterKeys(both), log });
    await resealing.round();
    resealing.close();
    const fresh = both.slice(0, 1);
    expect(
      decodeProtectedHeader(
        await tokenOf(
          keysAt(() => now, fresh),
          now,
        ),
      ).kid,
    ).toBe(kid);
  });

  it('that no master key opens any more sign nothing, and another one does', async () => {
    const now = Date.now();
    const lost = await tokenOf(
      keysAt(() => now),
      now,
    );
    const keys = keysAt(() => now, [masterKey()]);
    const token = await tokenOf(keys, now);
    expect(decodeProtectedHeader(token).kid).not.toBe(decodeProtectedHeader(lost).kid);
    await verified(token, keys, now);
    await verified(lost, keys, now);
  });
});
