/** Private extensions of one tenant are, for another one, exactly what does not exist. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RegistryCaller } from '@penstock/extension';
import { Forbidden, ServiceError } from '@penstock/errors';
import type { Registry } from '../src/testing.ts';
import { makeWorld, nobody, packageOf, publish, upload, user, type World } from './support.ts';

const [a, b] = [user('a'), user('b')];
let world: World;
let registry: Registry;
let privateHash: string;

beforeAll(async () => {
  world = await makeWorld();
  registry = world.registry();
  privateHash = (
    await publish(registry, a, { id: 'build/ours', description: 'quite unmistakable words' }, { visibility: 'private' })
  ).version.packageHash;
  await publish(registry, a, { id: 'build/for-all', description: 'quite public words' });
  await publish(registry, b, { id: 'test/theirs', description: 'private to b' }, { visibility: 'private' });
});
afterAll(() => world.close());

/** What a caller is told, an error included; the name that was asked for is made the same in both. */
async function told(ask: () => unknown, name: string): Promise<string> {
  try {
    return JSON.stringify(await ask()).replaceAll(name, 'NAME');
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return `${error.code} ${error.message} ${JSON.stringify(error.extensions)}`.replaceAll(name, 'NAME');
  }
}

describe.each<[string, RegistryCaller]>([
  ['another tenant', b],
  ['an anonymous caller', nobody],
  ['the service', { tenant: 'service', tier: 'enterprise', isAdmin: false }],
  ['an admin', { ...user('root'), isAdmin: true }],
])('for %s', (_name, caller) => {
  const questions: readonly (readonly [string, (name: string) => unknown])[] = [
    ['extension', (name) => registry.extension({ caller, id: `build/${name}` })],
    ['extensionVersions', (name) => registry.versions({ caller, id: `build/${name}`, limit: 10, texts: true })],
    ['a search for the name', (name) => registry.search({ caller, query: name, limit: 10 })],
    ['a resolution', (name) => registry.resolve({ caller, uses: [`build/${name}@^1`] })],
    ['a resolution by its number', (name) => registry.resolve({ caller, uses: [`build/${name}@1.0.0`] })],
    ['a yank', (name) => registry.yank({ caller, id: `build/${name}`, version: '1.0.0', yanked: true })],
  ];
  it.each(questions)('%s answers as for what nobody has', async (_question, ask) => {
    expect(await told(() => ask('ours'), 'ours')).toBe(await told(() => ask('zzzz'), 'zzzz'));
  });

  it('no search, list or suggestion has it', async () => {
    for (const query of ['', 'ours', 'unmistakable', 'quite', 'our']) {
      for (const category of [undefined, 'build']) {
        expect(registry.search({ caller, query, category, limit: 100 }).map(({ id }) => id)).not.toContain(
          'build/ours',
        );
      }
    }
    expect(await told(() => registry.resolve({ caller, uses: ['build/our@1'] }), 'our@1')).not.toContain('ours');
  });

  it('its package cannot be downloaded, nor resolved by a lock that has its hash', async () => {
    expect(await registry.findPackage(caller, privateHash)).toBeNull();
    const lockOf = (hash: string) => [{ uses: 'build/ours@1', id: 'build/ours', version: '1.0.0', hash }];
    const [real, made] = await Promise.all(
      [privateHash, '0'.repeat(64)].map((hash) =>
        told(() => registry.resolve({ caller, uses: ['build/ours@1'], lock: lockOf(hash) }), hash),
      ),
    );
    expect(real).toBe(made);
  });
});

it('the owner sees it everywhere', async () => {
  expect(await registry.extension({ caller: a, id: 'build/ours' })).toMatchObject({ visibility: 'private' });
  expect(registry.search({ caller: a, query: 'unmistakable', limit: 10 }).map(({ id }) => id)).toEqual(['build/ours']);
  expect((await registry.resolve({ caller: a, uses: ['build/ours@^1'] })).extensions).toHaveLength(1);
  expect(await registry.findPackage(a, privateHash)).toMatchObject({ isPublic: false });
  expect(registry.search({ caller: a, query: '', limit: 100 }).map(({ id }) => id)).not.toContain('test/theirs');
});

it('a name that another tenant has privately is free, and each tenant gets its own', async () => {
  const mine = await publish(registry, b, { id: 'build/ours', description: 'of b' }, { visibility: 'private' });
  expect(await registry.extension({ caller: b, id: 'build/ours' })).toMatchObject({ description: 'of b' });
  expect(await registry.extension({ caller: a, id: 'build/ours' })).toMatchObject({
    description: 'quite unmistakable words',
  });
  expect((await registry.resolve({ caller: b, uses: ['build/ours@1'] })).extensions[0]?.hash).toBe(
    mine.version.packageHash,
  );
  expect((await registry.resolve({ caller: a, uses: ['build/ours@1'] })).extensions[0]?.hash).toBe(privateHash);
});

it('a public extension of a name that somebody has privately never takes its place there', async () => {
  const c = user('c');
  const open = await publish(registry, c, { id: 'build/ours', description: 'of c, for all' });
  expect((await registry.resolve({ caller: nobody, uses: ['build/ours@1'] })).extensions[0]?.hash).toBe(
    open.version.packageHash,
  );
  expect((await registry.resolve({ caller: a, uses: ['build/ours@*'] })).extensions[0]?.hash).toBe(privateHash);
  await publish(registry, a, { id: 'build/ours', version: '1.1.0' });
  expect(await registry.extension({ caller: a, id: 'build/ours' })).toMatchObject({
    visibility: 'private',
    latestVersion: '1.1.0',
  });
  expect(await registry.extension({ caller: nobody, id: 'build/ours' })).toMatchObject({ latestVersion: '1.0.0' });
});

it('uploading and publishing the very bytes of a private package tells nothing of it', async () => {
  const d = user('d');
  const bytes = await packageOf({ id: 'build/ours', description: 'quite unmistakable words' });
  const other = await packageOf({ id: 'build/unheard', description: 'quite unmistakable words' });
  expect(await told(() => upload(registry, d, bytes), privateHash)).toBe(
    await told(async () => (await upload(registry, d, other)) && privateHash, privateHash),
  );
  // The name is public by now, of another tenant: that is what d is told, and all.
  await expect(registry.publish({ caller: d, packageHash: privateHash, visibility: 'private' })).rejects.toThrow(
    Forbidden,
  );
});

it('a yank of one tenant does not touch the other one of the same name', async () => {
  await registry.yank({ caller: b, id: 'build/ours', version: '1.0.0', yanked: true });
  expect(
    (await registry.versions({ caller: a, id: 'build/ours', limit: 10, texts: false })).some(({ yanked }) => yanked),
  ).toBe(false);
  expect(
    (await registry.versions({ caller: nobody, id: 'build/ours', limit: 10, texts: false })).some(
      ({ yanked }) => yanked,
    ),
  ).toBe(false);
});
