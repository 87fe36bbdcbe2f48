import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BadUserInput } from '@penstock/errors';
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import type { LockEntry, RegistryCaller, Unresolved } from '@penstock/extension';
import type { Registry } from '../src/testing.ts';
import { makeWorld, nobody, publish, service, user, type World } from './support.ts';

let world: World;
let registry: Registry;
const hashes = new Map<string, string>();

beforeAll(async () => {
  world = await makeWorld();
  registry = world.registry();
  for (const version of ['1.0.0', '1.2.0', '1.10.0', '2.0.0', '3.0.0-beta.1']) {
    hashes.set(version, (await publish(registry, service, { id: 'build/node', version })).version.packageHash);
  }
  await publish(registry, service, { id: 'test/junit' });
});
afterAll(() => world.close());

const resolve = async (
  uses: string | readonly string[],
  options: { readonly caller?: RegistryCaller; readonly lock?: readonly LockEntry[]; readonly by?: Registry } = {},
): Promise<string[]> => {
  const { extensions } = await (options.by ?? registry).resolve({
    caller: options.caller ?? nobody,
    uses: [uses].flat(),
    lock: options.lock,
  });
  return extensions.map(({ id, version }) => `${id}@${version}`);
};

async function unresolved(...given: Parameters<typeof resolve>): Promise<readonly Unresolved[]> {
  const error: unknown = await resolve(...given).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(BadUserInput);
  return (error as BadUserInput).extensions['unresolved'] as Unresolved[];
}

it.each([
  ['^1', '1.10.0'],
  ['^1.2', '1.10.0'],
  ['~1.2', '1.2.0'],
  ['1.0.0', '1.0.0'],
  ['>=1 <3', '2.0.0'],
  ['*', '2.0.0'],
  ['2.x', '2.0.0'],
  ['3.0.0-beta.1', '3.0.0-beta.1'],
  ['^3.0.0-beta', '3.0.0-beta.1'],
])('build/node@%s is the newest version of the range: %s', async (range, version) => {
  expect(await resolve(`build/node@${range}`)).toEqual([`build/node@${version}`]);
});

it('each answer has the hash and the manifest', async () => {
  const { extensions } = await registry.resolve({
    caller: nobody,
    uses: ['build/node@^1', 'build/node@^1', 'test/junit@1'],
  });
  expect(extensions).toMatchObject([{ uses: 'build/node@^1', hash: hashes.get('1.10.0') }, { uses: 'test/junit@1' }]);
  expect(extensions[0]?.manifest).toContain('id: build/node');
});

describe('what cannot be resolved is told with what may have been meant', () => {
  it('an unknown extension is told with the nearest name', async () => {
    expect(await unresolved(['build/nod@^1', 'test/junit@1'])).toEqual([
      {
        uses: 'build/nod@^1',
        message: "There is no extension 'build/nod'; did you mean 'build/node'?",
        candidates: ['build/node'],
      },
    ]);
  });
  it('of many unknown extensions the first ten are told with the nearest name', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `build/nod${'abcdfghijklm'[index] ?? ''}@^1`);
    const told = (await unresolved(names)).map(({ candidates }) => candidates);
    expect(told).toEqual([...Array.from({ length: 10 }, () => ['build/node']), [], []]);
  });
  it('a range without a version is told with the versions there are', async () => {
    expect(await unresolved('build/node@^4')).toMatchObject([
      {
        message: expect.stringContaining("No version of 'build/node' satisfies '^4'"),
        candidates: ['build/node@3.0.0-beta.1', 'build/node@2.0.0', 'build/node@1.10.0'],
      },
    ]);
  });
  it('what is no range, names no version, or is no id is told as such', async () => {
    expect(await unresolved('build/node@latest')).toMatchObject([
      { message: expect.stringContaining("'latest' is no version") },
    ]);
    expect(await unresolved('build/node')).toMatchObject([{ message: expect.stringContaining('names no version') }]);
    expect(await unresolved('nope@1')).toHaveLength(1);
  });
  it('all problems are told at once', async () => {
    expect((await unresolved(['a/b@1', 'build/x@1', 'build/node@9'])).map(({ uses }) => uses)).toEqual([
      'a/b@1',
      'build/x@1',
      'build/node@9',
    ]);
  });
});

describe('a yanked version', () => {
  const entry = (): LockEntry => ({
    uses: 'build/gone@^1',
    id: 'build/gone',
    version: '1.1.0',
    hash: hashes.get('gone') ?? '',
  });
  beforeAll(async () => {
    await publish(registry, service, { id: 'build/gone', version: '1.0.0' });
    hashes.set('gone', (await publish(registry, service, { id: 'build/gone', version: '1.1.0' })).version.packageHash);
    await registry.yank({ caller: service, id: 'build/gone', version: '1.1.0', yanked: true });
  });

  it('is passed over by ranges', async () => {
    expect(await resolve('build/gone@^1')).toEqual(['build/gone@1.0.0']);
  });
  it('is refused by its number', async () => {
    expect(await unresolved('build/gone@1.1.0')).toMatchObject([
      { message: expect.stringContaining('was yanked'), candidates: ['build/gone@1.0.0'] },
    ]);
  });
  it('still stands where a lock has it', async () => {
    expect(await resolve('build/gone@^1', { lock: [entry()] })).toEqual(['build/gone@1.1.0']);
  });
  it('a lock with other bytes, of another version, or that does not satisfy the range is refused', async () => {
    expect(await unresolved('build/gone@^1', { lock: [{ ...entry(), hash: hashes.get('1.0.0') ?? '' }] })).toHaveLength(
      1,
    );
    expect(await unresolved('build/gone@^1', { lock: [{ ...entry(), version: '1.0.0' }] })).toHaveLength(1);
    expect(await unresolved('build/gone@^2', { lock: [{ ...entry(), uses: 'build/gone@^2' }] })).toMatchObject([
      { message: expect.stringContaining('does not satisfy') },
    ]);
  });
  it('a lock pins an older version, and entries for other uses do nothing', async () => {
    const lock = [
      { uses: 'build/node@^1', id: 'build/node', version: '1.2.0', hash: hashes.get('1.2.0') ?? '' },
      entry(),
    ];
    expect(await resolve(['build/node@^1', 'build/node@^2'], { lock })).toEqual([
      'build/node@1.2.0',
      'build/node@2.0.0',
    ]);
  });
});

describe('what extensions use themselves', () => {
  it('is resolved too, each once, with the eyes of the caller', async () => {
    await publish(registry, service, { id: 'utility/inner', uses: ['build/node@^1'] });
    await publish(registry, service, { id: 'utility/outer', uses: ['utility/inner@1', 'build/node@^2'] });
    expect((await resolve('utility/outer@1')).toSorted()).toEqual([
      'build/node@1.10.0',
      'build/node@2.0.0',
      'utility/inner@1.0.0',
      'utility/outer@1.0.0',
    ]);
    await publish(registry, user('a'), { id: 'utility/hidden' }, { visibility: 'private' });
    await publish(registry, user('a'), { id: 'utility/leaning', uses: ['utility/hidden@1'] });
    expect(await resolve('utility/leaning@1', { caller: user('a') })).toHaveLength(2);
    expect(await unresolved('utility/leaning@1', { caller: user('b') })).toMatchObject([
      {
        uses: 'utility/leaning@1',
        message: "'utility/leaning@1.0.0' uses 'utility/hidden@1': There is no extension 'utility/hidden'.",
      },
    ]);
  });
  it('is refused at the place of the file that leads there, however deep, each with who uses it', async () => {
    await publish(registry, service, { id: 'utility/broken', uses: ['build/nothing@1', 'build/node@^9'] });
    await publish(registry, service, { id: 'utility/around', uses: ['utility/broken@1'] });
    expect(await unresolved(['test/junit@1', 'utility/around@1'])).toMatchObject([
      {
        uses: 'utility/around@1',
        message: expect.stringContaining("'utility/broken@1.0.0' uses 'build/nothing@1': There is no"),
      },
      {
        uses: 'utility/around@1',
        message: expect.stringContaining("'utility/broken@1.0.0' uses 'build/node@^9': No version"),
      },
    ]);
  });
  it('ends where they use one another in a circle', async () => {
    await publish(registry, service, { id: 'utility/ping', uses: ['utility/pong@1'] });
    await publish(registry, service, { id: 'utility/pong', uses: ['utility/ping@1'] });
    expect(await resolve('utility/ping@1')).toEqual(['utility/ping@1.0.0', 'utility/pong@1.0.0']);
  });
  it('is bounded', async () => {
    const uses = Array.from({ length: PIPELINE_LIMITS.extensionsMax + 1 }, (_, index) => `build/node@>=0.${index}`);
    await expect(resolve(uses)).rejects.toThrow('more than');
  });
});

it('private extensions need a tier that has them', async () => {
  await publish(registry, user('fallen'), { id: 'deploy/own' }, { visibility: 'private' });
  expect(await resolve('deploy/own@1', { caller: user('fallen') })).toEqual(['deploy/own@1.0.0']);
  expect(await unresolved('deploy/own@1', { caller: user('fallen', 'free') })).toMatchObject([
    { message: expect.stringContaining('may not use private extensions') },
  ]);
});

it('manifests that are too large for one run together are refused before all of them are read', async () => {
  const comment = Array.from({ length: 130 }, (_, index) => `# ${index} ${'x'.repeat(440)}\n`).join('');
  const ids = Array.from({ length: 10 }, (_, index) => `build/large-${index}`);
  for (const id of ids) await publish(registry, service, { id, comment });
  expect(await resolve(ids.slice(0, 8).map((id) => `${id}@1`))).toHaveLength(8);
  await expect(resolve(ids.map((id) => `${id}@1`))).rejects.toThrow('larger than 512 KiB');
});

it('nobody is refused because many resolve at once what no registry has read yet', async () => {
  const comment = `# what it uses: ${'x'.repeat(3_000)}`;
  const ids = Array.from({ length: 15 }, (_, index) => `build/asked-${index}`);
  for (const id of ids) await publish(registry, service, { id, comment });
  const one = user('a');
  await Promise.all(Array.from({ length: 20 }, () => resolve(`${ids[0]}@1`, { caller: one })));
  expect(await Promise.all(ids.map((id) => resolve(`${id}@1`, { caller: service })))).toEqual(
    ids.map((id) => [`${id}@1.0.0`]),
  );
});
