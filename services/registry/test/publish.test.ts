import { afterAll, beforeAll, expect, it } from 'vitest';
import { BadUserInput, Conflict, Forbidden, NotFound, QuotaExceeded, Unauthenticated } from '@penstock/errors';
import type { Registry } from '../src/testing.ts';
import { loadTiers, type Tiers } from '@penstock/config';
import { UPLOADS_OF_TENANT_MAX } from '../src/catalogue/uploads.ts';
import {
  hashOf,
  makeWorld,
  nobody,
  packageOf,
  pieces,
  publish,
  service,
  upload,
  user,
  type SomePackage,
  type World,
} from './support.ts';

let world: World;
let registry: Registry;
beforeAll(async () => {
  world = await makeWorld();
  registry = world.registry();
});
afterAll(() => world.close());

it('a published version is found with all that was published', async () => {
  const { version, created } = await publish(registry, service, {
    id: 'build/first',
    version: '1.2.3',
    description: 'Builds it',
    readme: '# First',
    changelog: 'new',
  });
  expect(created).toBe(true);
  const bytes = await packageOf({
    id: 'build/first',
    version: '1.2.3',
    description: 'Builds it',
    readme: '# First',
    changelog: 'new',
  });
  expect(version).toMatchObject({
    extensionId: 'build/first',
    version: '1.2.3',
    packageHash: hashOf(bytes),
    sizeBytes: bytes.length,
    readme: '# First',
    changelog: 'new',
    yanked: false,
    signed: false,
  });
  expect(await registry.extension({ caller: nobody, id: 'build/first' })).toMatchObject({
    id: 'build/first',
    name: 'first',
    category: 'build',
    description: 'Builds it',
    visibility: 'public',
    downloadCount: 0,
    latestVersion: '1.2.3',
    createdAt: new Date(world.now).toISOString(),
    updatedAt: new Date(world.now).toISOString(),
  });
  expect(await registry.versions({ caller: nobody, id: 'build/first', limit: 10, texts: true })).toEqual([version]);
  expect(await registry.versions({ caller: nobody, id: 'build/first', limit: 10, texts: false })).toMatchObject([
    { readme: null, changelog: null },
  ]);
});

it('versions stand by precedence, and the description is that of the highest', async () => {
  for (const version of ['1.0.0', '2.0.0', '1.10.0', '2.0.0-rc.1', '1.9.0'])
    await publish(registry, service, { id: 'build/ordered', version, description: `of ${version}` });
  const versions = await registry.versions({ caller: nobody, id: 'build/ordered', limit: 10, texts: false });
  expect(versions.map(({ version }) => version)).toEqual(['2.0.0', '2.0.0-rc.1', '1.10.0', '1.9.0', '1.0.0']);
  expect(await registry.extension({ caller: nobody, id: 'build/ordered' })).toMatchObject({
    description: 'of 2.0.0',
    latestVersion: '2.0.0',
  });
});

it('the same version with the same bytes is a success that changes nothing, also without another upload', async () => {
  const first = await publish(registry, service, { id: 'build/same' }, { changelog: 'first' });
  world.now += 1000;
  const second = await publish(registry, service, { id: 'build/same' }, { changelog: 'second' });
  expect(second).toEqual({ created: false, version: first.version });
  expect(await registry.publish({ caller: service, packageHash: first.version.packageHash })).toEqual({
    created: false,
    version: first.version,
  });
});

it('a version whose bytes the storage has lost gets them back by the same publication', async () => {
  const { version } = await publish(registry, service, { id: 'build/lost' });
  for await (const { key } of world.objects.list('packages/'))
    if (key.includes(version.packageHash)) await world.objects.delete(key);
  const read = async (): Promise<string> => {
    const found = await registry.findPackage(nobody, version.packageHash);
    return hashOf(Buffer.concat(await Array.fromAsync((await found?.read()) ?? [])));
  };
  await expect(read()).rejects.toThrow('missing from the storage');
  expect(await publish(registry, service, { id: 'build/lost' })).toEqual({ created: false, version });
  expect(await read()).toBe(version.packageHash);
});

it('the same version with other bytes is CONFLICT, also where only build metadata differ', async () => {
  await publish(registry, service, { id: 'build/fixed', version: '1.0.0' });
  await expect(publish(registry, service, { id: 'build/fixed', version: '1.0.0', note: 'other' })).rejects.toThrow(
    Conflict,
  );
  await expect(publish(registry, service, { id: 'build/fixed', version: '1.0.0+other' })).rejects.toThrow(Conflict);
  expect(await registry.versions({ caller: nobody, id: 'build/fixed', limit: 10, texts: false })).toHaveLength(1);
});

it('of the same version published at once by many with different bytes, one stands', async () => {
  const registries = [registry, world.registry(), world.registry()];
  const answers = await Promise.allSettled(
    Array.from({ length: 9 }, (_, index) =>
      publish(registries[index % 3] as Registry, service, { id: 'build/raced', note: String(index) }),
    ),
  );
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(answers.filter((answer) => answer.status === 'rejected' && answer.reason instanceof Conflict)).toHaveLength(8);
  expect(await registry.versions({ caller: nobody, id: 'build/raced', limit: 10, texts: false })).toHaveLength(1);
});

it('different versions published at once all stand', async () => {
  const registries = [registry, world.registry()];
  await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      publish(registries[index % 2] as Registry, service, { id: 'build/many', version: `1.${index}.0` }),
    ),
  );
  expect(await registry.versions({ caller: nobody, id: 'build/many', limit: 100, texts: false })).toHaveLength(8);
});

it('a public name belongs to the tenant that published it first', async () => {
  await publish(registry, user('a'), { id: 'deploy/mine' });
  await expect(publish(registry, user('b'), { id: 'deploy/mine', version: '2.0.0' })).rejects.toThrow(Forbidden);
  await expect(
    publish(registry, user('b'), { id: 'deploy/mine', version: '2.0.0' }, { visibility: 'private' }),
  ).rejects.toThrow(Forbidden);
  await publish(registry, user('a'), { id: 'deploy/mine', version: '2.0.0' });
});

it.each([
  ['deploy/kubernetes', 'deploy/kubemetes'],
  ['test/lint', 'test/1int'],
  ['notify/slack-bot', 'notify/slackbot'],
  ['utility/clean', 'utility/dean'],
  ['security/s0s', 'security/sos'],
  ['deploy/cloud', 'deploy/c1oud'],
  ['security/c1ean', 'security/clean'],
  ['security/ciock', 'security/clock'],
])('a name that looks like a public one of another tenant is refused: %s and %s', async (original, alike) => {
  await publish(registry, user('a'), { id: original });
  for (const visibility of ['public', 'private'] as const) {
    const refused = publish(registry, user('b'), { id: alike }, { visibility });
    await expect(refused).rejects.toThrow(BadUserInput);
    await expect(refused).rejects.toThrow(`'${alike}' differs from '${original}' in look-alike characters only`);
  }
  expect(await registry.extension({ caller: user('b'), id: alike })).toBeNull();
  expect(await registry.extension({ caller: nobody, id: original })).not.toBeNull();
});

it('who may publish is decided by tenant and tier, before any byte is read', async () => {
  const never = (async function* bytes(): AsyncGenerator<Uint8Array, void> {
    yield* [];
    throw new Error('read');
  })();
  const hash = hashOf(Buffer.from('x'));
  await expect(registry.upload(nobody, hash, never)).rejects.toThrow(Unauthenticated);
  await expect(registry.upload(user('free', 'free'), hash, never)).rejects.toThrow(Forbidden);
  await expect(registry.publish({ caller: nobody, packageHash: hash })).rejects.toThrow(Unauthenticated);
  await expect(registry.publish({ caller: user('free', 'free'), packageHash: hash })).rejects.toThrow(Forbidden);
  const admin = { ...user('admin', 'free'), isAdmin: true };
  expect((await publish(registry, admin, { id: 'notify/by-admin' }, { visibility: 'private' })).created).toBe(true);
});

it('the visibility of an extension is decided with its first version', async () => {
  await publish(registry, user('a'), { id: 'build/secret' }, { visibility: 'private' });
  await expect(
    publish(registry, user('a'), { id: 'build/secret', version: '1.1.0' }, { visibility: 'public' }),
  ).rejects.toThrow(Conflict);
  await publish(registry, user('a'), { id: 'build/secret', version: '1.1.0' });
  expect(await registry.extension({ caller: user('a'), id: 'build/secret' })).toMatchObject({
    visibility: 'private',
    latestVersion: '1.1.0',
  });
  await publish(registry, user('a'), { id: 'build/open' });
  await expect(
    publish(registry, user('a'), { id: 'build/open', version: '1.1.0' }, { visibility: 'private' }),
  ).rejects.toThrow(Conflict);
});

it('only what the same tenant has uploaded within the hour can be published', async () => {
  const bytes = await packageOf({ id: 'build/uploaded' });
  const packageHash = await upload(registry, user('a'), bytes);
  await expect(registry.publish({ caller: user('b'), packageHash })).rejects.toThrow(NotFound);
  await expect(registry.publish({ caller: user('b'), packageHash: hashOf(Buffer.from('never')) })).rejects.toThrow(
    NotFound,
  );
  world.now += 60 * 60_000 + 1;
  await expect(registry.publish({ caller: user('a'), packageHash })).rejects.toThrow(NotFound);
  world.now -= 60 * 60_000 + 1;
  await registry.publish({ caller: user('a'), packageHash });
});

it('bytes that have another hash, and packages that are refused, leave nothing', async () => {
  const bytes = Buffer.from('no package at all');
  await expect(registry.upload(service, hashOf(Buffer.from('other')), pieces(bytes))).rejects.toThrow(BadUserInput);
  await expect(registry.publish({ caller: service, packageHash: hashOf(Buffer.from('other')) })).rejects.toThrow(
    NotFound,
  );
  const packageHash = await upload(registry, service, bytes);
  await expect(registry.publish({ caller: service, packageHash })).rejects.toThrow(BadUserInput);
  await expect(registry.publish({ caller: service, packageHash: 'ABC' })).rejects.toThrow(BadUserInput);
  await expect(
    registry.publish({ caller: service, packageHash, changelog: 'x'.repeat(64 * 1024 + 1) }),
  ).rejects.toThrow(BadUserInput);
  expect(await registry.findPackage(service, packageHash)).toBeNull();
});

it('the uploads of a tenant that became nothing are bounded', async () => {
  const caller = user('hoarder');
  for (let index = 0; index < UPLOADS_OF_TENANT_MAX; index++)
    await upload(registry, caller, Buffer.from(`package ${index}`));
  await expect(upload(registry, caller, Buffer.from('one more'))).rejects.toThrow(QuotaExceeded);
  await upload(registry, caller, Buffer.from('package 0'));
  await upload(registry, user('other'), Buffer.from('one more'));
});

it('the uploads of a tenant are bounded, too, where all begin at the same moment; one that fails gives its place back', async () => {
  const caller = user('hasty');
  const bad = Buffer.from('other bytes');
  await expect(registry.upload(caller, hashOf(Buffer.from('announced')), pieces(bad))).rejects.toThrow(BadUserInput);
  const begun = Array.from({ length: 2 * UPLOADS_OF_TENANT_MAX }, (_, index) =>
    upload(registry, caller, Buffer.from(`at once ${index}`)),
  );
  const ended = await Promise.allSettled(begun);
  const count = ended.filter(({ status }) => status === 'fulfilled').length;
  expect(count).toBeLessThanOrEqual(UPLOADS_OF_TENANT_MAX);
  expect(ended.find(({ status }) => status === 'rejected')).toMatchObject({ reason: expect.any(QuotaExceeded) });
  // Those that were refused have left nothing, neither has the one that failed.
  for (let index = count; index < UPLOADS_OF_TENANT_MAX; index++)
    await upload(registry, caller, Buffer.from(`one by one ${index}`));
  await expect(upload(registry, caller, Buffer.from('one more'))).rejects.toThrow(QuotaExceeded);
});

it('PUBLISH-4: a tenant has no more of published versions than its tier says; what is there already is no more', async () => {
  const built = loadTiers();
  const tiers: Tiers = { limitsOf: (tier) => ({ ...built.limitsOf(tier), packageStorageMb: 1 }) };
  const limited = world.registry({ tiers });
  const version = (minor: number): SomePackage => ({ id: 'build/hoard', version: `1.${minor}.0` });
  const full = { code: 'QUOTA_EXCEEDED', message: expect.stringContaining('beyond the 1.0 MB of your tier') };
  // Small ones count with 64 KiB each.
  for (let minor = 0; minor < 14; minor += 1)
    await publish(limited, user('hoarder-of-versions'), version(minor), { visibility: 'private' });
  await expect(publish(limited, user('hoarder-of-versions'), version(15))).rejects.toMatchObject(full);
  await expect(publish(limited, user('hoarder-of-versions'), { id: 'build/new' })).rejects.toMatchObject(full);
  expect(await publish(limited, user('hoarder-of-versions'), version(3))).toMatchObject({ created: false });
  expect(await publish(limited, user('other'), { id: 'build/theirs' })).toMatchObject({ created: true });
  const another = world.registry({ tiers });
  await another.load();
  await expect(publish(another, user('hoarder-of-versions'), version(15))).rejects.toMatchObject(full);
  for (const caller of [{ ...user('hoarder-of-versions'), isAdmin: true }, service])
    expect(await publish(limited, caller, { id: `build/of-${caller.isAdmin}` })).toMatchObject({ created: true });
  await limited.forgetTenant({ tenant: 'user/hoarder-of-versions' });
  expect(await publish(limited, user('hoarder-of-versions'), { id: 'build/anew' })).toMatchObject({ created: true });
});

it('what is refused for its bytes waits no longer: mending a package in many steps uses up no uploads', async () => {
  const caller = user('learner');
  await publish(registry, caller, { id: 'build/learnt' });
  for (let index = 1; index < UPLOADS_OF_TENANT_MAX; index++)
    await upload(registry, caller, Buffer.from(`hoarded ${index}`));
  for (const attempt of ['one', 'two', 'three']) {
    const packageHash = await upload(registry, caller, Buffer.from(`no package ${attempt}`));
    await expect(registry.publish({ caller, packageHash })).rejects.toThrow('refused');
    await expect(publish(registry, caller, { id: 'build/learnt', note: attempt })).rejects.toThrow(Conflict);
  }
});

it('a repeated publication that wants another visibility is CONFLICT, with and without another upload', async () => {
  const { version } = await publish(registry, service, { id: 'build/opened' });
  await expect(
    registry.publish({ caller: service, packageHash: version.packageHash, visibility: 'private' }),
  ).rejects.toThrow(Conflict);
  await expect(publish(registry, service, { id: 'build/opened' }, { visibility: 'private' })).rejects.toThrow(Conflict);
  expect(
    await registry.publish({ caller: service, packageHash: version.packageHash, visibility: 'public' }),
  ).toMatchObject({ created: false });
});

it('publishing many packages again uses up no uploads', async () => {
  const caller = user('monorepo');
  const bytes = await packageOf({ id: 'build/again' });
  const { version } = await publish(registry, caller, { id: 'build/again' });
  for (let index = 1; index < UPLOADS_OF_TENANT_MAX; index++)
    await upload(registry, caller, Buffer.from(`waiting ${index}`));
  await upload(registry, caller, bytes);
  expect(await registry.publish({ caller, packageHash: version.packageHash })).toMatchObject({ created: false });
  await upload(registry, caller, Buffer.from('one more'));
});

it('yanking is for the owner, and can be taken back', async () => {
  await publish(registry, user('a'), { id: 'test/yanked' });
  const yank = (caller = user('a'), version = '1.0.0', yanked = true) =>
    registry.yank({ caller, id: 'test/yanked', version, yanked });
  await expect(yank(nobody)).rejects.toThrow(Unauthenticated);
  await expect(yank(user('b'))).rejects.toThrow(Forbidden);
  await expect(yank(user('a'), '9.9.9')).rejects.toThrow(NotFound);
  await expect(
    registry.yank({ caller: user('a'), id: 'test/unknown', version: '1.0.0', yanked: true }),
  ).rejects.toThrow(NotFound);
  expect(await yank()).toMatchObject({ version: '1.0.0', yanked: true });
  expect(await yank()).toMatchObject({ yanked: true });
  expect(await registry.extension({ caller: nobody, id: 'test/yanked' })).toMatchObject({ latestVersion: null });
  expect(await registry.versions({ caller: nobody, id: 'test/yanked', limit: 10, texts: false })).toMatchObject([
    { yanked: true },
  ]);
  expect(await yank(user('a'), '1.0.0', false)).toMatchObject({ yanked: false });
  expect(await registry.extension({ caller: nobody, id: 'test/yanked' })).toMatchObject({ latestVersion: '1.0.0' });
});

it('a package is published by a registry whose clock is hours off from that of the one which took it', async () => {
  const sharedNow = async (): Promise<number> => world.now;
  const apart = world.registry({ sharedNow, now: () => world.now + 3 * 3_600_000 });
  const took = world.registry({ sharedNow });
  for (const [takes, publishes] of [
    [took, apart],
    [apart, took],
  ] as const) {
    const id = takes === took ? 'build/behind' : 'build/ahead';
    const packageHash = await upload(takes, service, await packageOf({ id }));
    await publishes.sweep();
    expect(await publishes.publish({ caller: service, packageHash })).toMatchObject({ created: true });
  }
});

it('what is just being published stays, though the clock of its registry is hours behind', async () => {
  const sharedNow = async (): Promise<number> => world.now;
  const sweeper = world.registry({ sharedNow });
  const behind = world.registry({
    sharedNow,
    now: () => world.now - 3 * 3_600_000,
    afterStep: async (step) => void (step === 'texts stored' && (await sweeper.sweep())),
  });
  const { version } = await publish(behind, service, { id: 'build/slow', readme: '# Slow' });
  expect(await behind.versions({ caller: nobody, id: 'build/slow', limit: 1, texts: true })).toMatchObject([
    { packageHash: version.packageHash, readme: '# Slow' },
  ]);
});
