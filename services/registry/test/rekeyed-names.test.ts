/** Extensions that an earlier release kept under another look-alike form, which took pairs before single characters. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { extensionsSpec } from '../src/catalogue/collections.ts';
import { earlierKey, extensionKey } from '../src/catalogue/names.ts';
import { makeWorld, nobody, publish, user, type World } from './support.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** Puts the extension where the earlier release had it. */
async function keptAsBefore(id: string): Promise<void> {
  const documents = world.store.collection(extensionsSpec);
  const document = await documents.get(extensionKey('', id));
  if (document === null) throw new Error(`there is no ${id}`);
  await documents.delete(document.id);
  const key = earlierKey('', id);
  await documents.insert({
    ...document,
    id: key,
    record: JSON.stringify({ ...JSON.parse(String(document.record)), key }),
  });
}

it('are found by name, hash and search after the next start, take new versions and keep look-alikes out', async () => {
  const { version } = await publish(world.registry(), user('a'), { id: 'deploy/ci-tools' });
  await keptAsBefore('deploy/ci-tools');
  const registry = world.registry();
  await registry.load();
  await registry.load();
  expect(await registry.extension({ caller: nobody, id: 'deploy/ci-tools' })).toMatchObject({ latestVersion: '1.0.0' });
  expect(await registry.findPackage(nobody, version.packageHash)).not.toBeNull();
  expect(registry.search({ caller: nobody, query: 'ci-tools', limit: 10 })).toHaveLength(1);
  await publish(registry, user('a'), { id: 'deploy/ci-tools', version: '1.1.0' });
  await expect(publish(registry, user('b'), { id: 'deploy/cl-tools' })).rejects.toThrow('look-alike characters only');
});

it('stay where they are, and can be used, where another extension has their form by now', async () => {
  await publish(world.registry(), user('a'), { id: 'deploy/ci-one' });
  await keptAsBefore('deploy/ci-one');
  await publish(world.registry(), user('b'), { id: 'deploy/done' });
  const registry = world.registry();
  await registry.load();
  for (const id of ['deploy/ci-one', 'deploy/done'])
    expect(await registry.extension({ caller: nobody, id })).toMatchObject({ id });
});
