/** The secrets of stages, as the gateway asks for them: what is taken, what is kept, and under which key. */
import { randomBytes } from 'node:crypto';
import { callAuth } from '@penstock/identity';
import { silentLog } from '@penstock/telemetry/log';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { stageSecretsSpec } from '../src/model/collections.ts';
import { masterKeysView } from '../src/flows/key-rotation.ts';
import { KeyHolders } from '../src/model/key-holders.ts';
import { MasterKeys } from '../src/model/master-keys.ts';
import { startResealing } from '../src/model/resealing.ts';
import { StageSecrets } from '../src/model/stage-secrets.ts';
import { afterEachList, makeWorld, type World } from './support.ts';

const CANARY = 'canary-4711-value';
const newKey = (): string => randomBytes(32).toString('base64');
const [OLD, NEW, LOST] = [newKey(), newKey(), newKey()];
let world: World;
let tenants = 0;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const newTenant = (): string => `user/${(tenants += 1)}`;
const set = (
  secret: Partial<Parameters<typeof callAuth<'secrets.set'>>[2]> & { readonly tenant: string },
): ReturnType<typeof callAuth<'secrets.set'>> =>
  callAuth(world.bus, 'secrets.set', { name: 'TOKEN', value: CANARY, actor: 'user/1', ip: '192.0.2.1', ...secret });
const list = async (tenant: string, repository?: string): Promise<unknown[]> => [
  ...(await callAuth(world.bus, 'secrets.list', { tenant, repository })).secrets,
];

describe('a secret', () => {
  it('is kept, listed without its value, replaced and deleted, each with an audit entry', async () => {
    await world.server({ masterKeys: [NEW] });
    const tenant = newTenant();
    const first = await set({ tenant, repository: 'git_host_a/Acme/Shop', refs: ['main'] });
    expect(first).toEqual({
      name: 'TOKEN',
      repository: 'git_host_a/Acme/Shop',
      pipeline: null,
      refs: ['main'],
      createdAt: expect.any(String),
      updatedAt: first.createdAt,
      lastUsedAt: null,
    });
    await set({ tenant });
    // Whatever the clock says: the later of two stands.
    world.aheadMs = -3_600_000;
    const again = await set({ tenant, repository: 'git_host_a/acme/shop', value: 'another-value' });
    expect(again).toMatchObject({ createdAt: first.createdAt, refs: null });
    expect(Date.parse(again.updatedAt)).toBeGreaterThan(Date.parse(first.updatedAt));
    expect(await list(tenant)).toHaveLength(2);
    expect(await list(tenant, 'git_host_a/ACME/shop')).toEqual([again]);
    expect(JSON.stringify(await list(tenant))).not.toContain(CANARY);
    const scope = { tenant, repository: 'git_host_a/acme/shop', actor: 'user/1' };
    expect(await callAuth(world.bus, 'secrets.delete', { ...scope, name: 'TOKEN' })).toEqual({ deleted: true });
    expect(await callAuth(world.bus, 'secrets.delete', { ...scope, name: 'TOKEN' })).toEqual({ deleted: false });
    expect(await list(tenant)).toHaveLength(1);
    expect(world.audit.map(({ action, target, outcome, ip }) => [action, target, outcome, ip])).toEqual([
      ['secret.set', `secret/TOKEN of ${tenant}, repository git_host_a/Acme/Shop`, 'ok', '192.0.2.1'],
      ['secret.set', `secret/TOKEN of ${tenant}`, 'ok', '192.0.2.1'],
      ['secret.set', `secret/TOKEN of ${tenant}, repository git_host_a/acme/shop`, 'ok', '192.0.2.1'],
      ['secret.delete', `secret/TOKEN of ${tenant}, repository git_host_a/acme/shop`, 'ok', undefined],
    ]);
    expect(JSON.stringify(world.audit)).not.toContain(CANARY);
  });

  it.each([
    ['a small name', { name: 'token' }, 'capital letters'],
    ['a name with a digit first', { name: '1A' }, 'capital letters'],
    ['an empty name', { name: '' }, 'capital letters'],
    ['a name that is very long', { name: 'A'.repeat(101) }, 'capital letters'],
    ['three characters', { value: 'abc' }, 'at least 4'],
    ['blanks', { value: ' \n \n \n ' }, 'at least 4'],
    ['too many bytes', { value: 'ü'.repeat(32_769) }, 'at most 65536 bytes'],
    ['a NUL', { value: 'abcd\0efgh' }, 'NUL'],
    ['half a character', { value: 'abcd\ud800' }, 'no text'],
    ['a repository without its provider', { repository: 'shop' }, 'git_host_a/acme/shop'],
    ['a repository with a line end', { repository: 'git_host_a/a/b\nc' }, 'git_host_a/acme/shop'],
    ['a provider that there is not', { repository: 'github/acme/shop' }, "no provider 'github'"],
    ['an empty pipeline', { pipeline: '' }, "'pipeline'"],
    ['no refs', { refs: [] }, "'refs'"],
    ['too many refs', { refs: Array.from({ length: 21 }, () => 'main') }, "'refs'"],
    ['an empty ref', { refs: [''] }, "'refs'"],
  ])('is refused with %s, without its value', async (_name, part, message) => {
    await world.server({ masterKeys: [NEW] });
    const tenant = newTenant();
    await expect(set({ tenant, ...part })).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining(message),
    });
    expect(await list(tenant)).toEqual([]);
    expect(world.audit).toEqual([]);
  });

  it('may hold 64 KiB, line ends and whatever characters', async () => {
    await world.server({ masterKeys: [NEW] });
    const tenant = newTenant();
    await set({ tenant, value: 'x\n'.repeat(32_768) });
    await set({ tenant, name: 'OTHER', value: '\u0001\u001b[31m\r\n☃' });
    expect(await list(tenant)).toHaveLength(2);
  });

  it('of the tenant that strangers share is for a repository or for a pipeline', async () => {
    await world.server({ masterKeys: [NEW] });
    await expect(set({ tenant: 'service' })).rejects.toMatchObject({ code: 'BAD_USER_INPUT' });
    await set({ tenant: 'service', pipeline: 'nightly' });
    await set({ tenant: 'service', repository: 'git_host_b/group/sub/project' });
    expect(await list('service')).toHaveLength(2);
  });

  it('is one of a hundred that a tenant may have, and setting one of them again is none more', async () => {
    await world.server({ masterKeys: [NEW] });
    const tenant = newTenant();
    for (let index = 0; index < 100; index += 1) await set({ tenant, name: `S${index}` });
    await expect(set({ tenant })).rejects.toMatchObject({ code: 'CONFLICT' });
    await set({ tenant, name: 'S7' });
    await set({ tenant: newTenant() });
    expect(await list(tenant)).toHaveLength(100);
  });

  it('is one of a hundred, too, where all are set at the same moment', async () => {
    await world.server({ masterKeys: [NEW] });
    const tenant = newTenant();
    const answers = await Promise.allSettled(
      Array.from({ length: 150 }, (_, index) => set({ tenant, name: `NAME_${index}` })),
    );
    const made = answers.filter(({ status }) => status === 'fulfilled').length;
    expect(made).toBeLessThanOrEqual(100);
    expect(await list(tenant)).toHaveLength(made);
  });

  it('is refused in one sentence where there is no master key', async () => {
    await world.server();
    await expect(set({ tenant: newTenant() })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining('SERVICE_MASTER_KEY'),
    });
  });
});

describe('at rest', () => {
  const secretsUnder = (...keys: string[]): StageSecrets =>
    new StageSecrets(world.store, new MasterKeys(keys), () => Date.now());
  const text = (bytes: Uint8Array | null): string | null => (bytes === null ? null : Buffer.from(bytes).toString());

  it('a row moved to another secret, or changed, opens nowhere', async () => {
    const [tenant, other] = [newTenant(), newTenant()];
    const secrets = secretsUnder(NEW);
    await secrets.set({ tenant, name: 'A', value: CANARY });
    await secrets.set({ tenant: other, name: 'A', value: 'what the other has' });
    const [own] = await secrets.ofTenant(tenant);
    const [stolen] = await secrets.ofTenant(other);
    const rows = world.store.collection(stageSecretsSpec);
    const ownRow = await rows.get(own?.id ?? '');
    const stolenRow = await rows.get(stolen?.id ?? '');
    if (ownRow === null || stolenRow === null) throw new Error('there are no rows');
    expect(String(ownRow.sealed)).not.toContain(CANARY);
    await rows.replaceNewer([{ ...ownRow, sealed: stolenRow.sealed, revision: ownRow.revision + 1 }]);
    expect(await secrets.open(ownRow.id)).toBeNull();
    // Of header, key, nonce, text and tag the text: its first character.
    const broken = String(ownRow.sealed).replace(/\.(.)([^.]*\.[^.]*)$/, (_, first: string, rest: string) => {
      return `.${first === 'A' ? 'B' : 'A'}${rest}`;
    });
    await rows.replaceNewer([{ ...ownRow, sealed: broken, revision: ownRow.revision + 2 }]);
    expect(await secrets.open(ownRow.id)).toBeNull();
    await rows.replaceNewer([{ ...ownRow, revision: ownRow.revision + 3 }]);
    expect(text(await secrets.open(ownRow.id))).toBe(CANARY);
  });

  it('under a new first key everything is sealed anew, and the old one can go', async () => {
    const tenant = newTenant();
    const before = secretsUnder(OLD);
    for (let index = 0; index < 3; index += 1)
      await before.set({ tenant, name: `S${index}`, value: `${CANARY}-${index}` });
    const ids = (await before.ofTenant(tenant)).map(({ id }) => id);
    // While both keys are there, also before anything is sealed anew.
    expect(text(await secretsUnder(NEW, OLD).open(ids[0] ?? ''))).toMatch(CANARY);
    expect(await secretsUnder(NEW).open(ids[0] ?? '')).toBeNull();
    const resealing = startResealing({
      store: world.store,
      keys: new MasterKeys([NEW, OLD]),
      log: silentLog,
      everyMs: 3_600_000,
    });
    // Its first round began by itself: what the two of them did is done once.
    await resealing.round();
    expect(await resealing.round()).toEqual({ resealed: 0, unreadable: 0 });
    resealing.close();
    for (const id of ids) expect(text(await secretsUnder(NEW).open(id))).toMatch(CANARY);
    expect(await secretsUnder(OLD).open(ids[0] ?? '')).toBeNull();
  });

  it('what is deleted while it is sealed anew stays deleted', async () => {
    const tenant = newTenant();
    const secrets = secretsUnder(OLD);
    await secrets.set({ tenant, name: 'GOES', value: CANARY });
    const [kept] = await secrets.ofTenant(tenant);
    const store = afterEachList(world.store, stageSecretsSpec.name, async (rows) => {
      if (rows.some(({ id }) => id === kept?.id)) await secrets.delete({ tenant }, 'GOES');
    });
    const resealing = startResealing({ store, keys: new MasterKeys([NEW, OLD]), log: silentLog, everyMs: 3_600_000 });
    await resealing.round();
    await resealing.round();
    resealing.close();
    expect(await secrets.ofTenant(tenant)).toEqual([]);
  });

  it('an old key may go when nothing is kept under it, and every process of auth seals under the new one', async () => {
    const tenant = newTenant();
    const { store } = world;
    await secretsUnder(OLD).set({ tenant, name: 'MOVES', value: CANARY });
    await secretsUnder(LOST).set({ tenant, name: 'LOST', value: CANARY });
    const of = (...texts: string[]): { keys: MasterKeys; holders: KeyHolders } => {
      const keys = new MasterKeys(texts);
      return { keys, holders: new KeyHolders({ store, keys, now: () => Date.now() + world.aheadMs, log: silentLog }) };
    };
    const [before, after] = [of(OLD, NEW), of(NEW, OLD)];
    const [newId, oldId] = after.keys.ids;
    await before.holders.living();
    const view = async (): Promise<Record<string, unknown>> => {
      const { keys, agree } = await masterKeysView({ store, ...after });
      return { agree, old: keys.find(({ id }) => id === oldId), others: keys.filter(({ id }) => id !== oldId) };
    };
    const old = { id: oldId, state: 'OTHER', sealed: 1, usedBy: 1, mayGo: false };
    const others = [
      { id: newId, state: 'FIRST', sealed: 0, usedBy: 1, mayGo: false },
      { id: new MasterKeys([LOST]).currentId, state: 'MISSING', sealed: 1, usedBy: 0, mayGo: false },
    ];
    expect(await view()).toEqual({ agree: false, old, others });
    const told: string[] = [];
    const log = {
      info: (_: object, text: string) => told.push(text),
      warn: (_: object, text: string) => told.push(text),
    };
    const resealing = startResealing({ store, keys: after.keys, log, everyMs: 3_600_000 });
    await resealing.round();
    resealing.close();
    expect(told.join()).toMatch(/whether the others may go[^]*no stage gets them/u);
    expect(await view()).toEqual({ agree: false, old: { ...old, sealed: 0 }, others });
    // Killed, it says nothing any more: it counts until any clock has come to it.
    world.aheadMs = 100 * 60_000;
    expect(await view()).toMatchObject({ agree: false });
    world.aheadMs = 130 * 60_000;
    expect(await view()).toEqual({ agree: true, old: { ...old, sealed: 0, usedBy: 0, mayGo: true }, others });
    world.aheadMs = 0;
    await before.holders.living();
    expect(await view()).toMatchObject({ agree: false });
    await before.holders.close();
    expect(await view()).toMatchObject({ agree: true, old: { mayGo: true } });
    await after.holders.close();
    await secretsUnder(LOST).delete({ tenant }, 'LOST');
  });

  it('what no key opens is counted and left as it is', async () => {
    const tenant = newTenant();
    await secretsUnder(OLD).set({ tenant, name: 'LOST', value: CANARY });
    const resealing = startResealing({
      store: world.store,
      keys: new MasterKeys([NEW]),
      log: silentLog,
      everyMs: 3_600_000,
    });
    expect(await resealing.round()).toEqual({ resealed: 0, unreadable: 1 });
    resealing.close();
    const [lost] = await secretsUnder(OLD).ofTenant(tenant);
    expect(text(await secretsUnder(OLD).open(lost?.id ?? ''))).toBe(CANARY);
  });
});
