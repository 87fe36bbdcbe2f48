/** What a tenant alone has is deleted for good, and what others see or have stays. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeWorld, publish, user, type World } from './support.ts';

const [a, b] = [user('a', 'enterprise'), user('b', 'enterprise')];
let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

it('deletes private extensions and unpublished packages of the tenant alone; another registry hears of it', async () => {
  const other = world.registry();
  await other.load();
  const registry = world.registry({ announce: (news) => void told.push(other.learn(news)) });
  const told: Promise<void>[] = [];
  const mine = await publish(registry, a, { id: 'build/ours', description: 'words of a' }, { visibility: 'private' });
  await publish(registry, a, { id: 'build/open', description: 'words for all' }, { visibility: 'public' });
  await publish(registry, b, { id: 'build/theirs', description: 'words of b' }, { visibility: 'private' });
  await Promise.all(told);
  const foundBy = (asked: typeof registry, caller: typeof a): unknown =>
    asked
      .search({ caller, query: 'words', limit: 10 })
      .map(({ id }) => id)
      .toSorted();
  expect(foundBy(other, a)).toEqual(['build/open', 'build/ours']);

  await expect(registry.forgetTenant({ tenant: '' })).rejects.toThrow('empty');
  expect(await registry.forgetTenant({ tenant: 'user/a' })).toEqual({ extensions: 1, uploads: 0 });
  await Promise.all(told);
  for (const each of [registry, other]) {
    expect(foundBy(each, a)).toEqual(['build/open']);
    expect(foundBy(each, b)).toEqual(['build/open', 'build/theirs']);
    expect(await each.extension({ caller: a, id: 'build/ours' })).toBeNull();
    expect(await each.findPackage(a, mine.version.packageHash)).toBeNull();
  }
  expect(await registry.forgetTenant({ tenant: 'user/a' })).toEqual({ extensions: 0, uploads: 0 });
  await publish(registry, a, { id: 'build/ours', description: 'words anew' }, { visibility: 'private' });
  await Promise.all(told);
  expect(foundBy(other, a)).toEqual(['build/open', 'build/ours']);

  // A registry that has heard nothing of it meanwhile makes up for that when it reads everything again.
  const deaf = world.registry();
  await deaf.load();
  await publish(registry, b, { id: 'build/later', description: 'words of b' }, { visibility: 'private' });
  expect(await registry.forgetTenant({ tenant: 'user/a' })).toEqual({ extensions: 1, uploads: 0 });
  expect(foundBy(deaf, a)).toEqual(['build/open', 'build/ours']);
  await deaf.load();
  expect(foundBy(deaf, a)).toEqual(['build/open']);
  expect(foundBy(deaf, b)).toEqual(['build/later', 'build/open', 'build/theirs']);

  // What the versions named is nobody's now.
  world.now += 3 * 60 * 60_000;
  expect(await registry.sweep()).toMatchObject({ objects: expect.any(Number), texts: 2 });
});
