import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { generateSigningKeys, signPackage, type RegistryCaller } from '@penstock/extension';
import { BadUserInput, NotFound, Unauthenticated } from '@penstock/errors';
import { openSqliteStore } from '@penstock/store';
import { forgetful } from '@penstock/store/testing/forgetful';
import { keysSpec } from '../src/catalogue/collections.ts';
import { SigningKeys } from '../src/catalogue/signatures.ts';
import type { Registry } from '../src/testing.ts';
import { hashOf, makeWorld, nobody, packageOf, publish, user, type SomePackage, type World } from './support.ts';

const [a, b] = [user('a'), user('b')];
const keys = generateSigningKeys();
let world: World;
/** On one store: the same extensions under both policies. */
let registry: Registry;
let strict: Registry;

beforeAll(async () => {
  world = await makeWorld();
  registry = world.registry();
  strict = world.registry({ policy: 'signed' });
  await registry.keys.register(registry.keyOwner(a), { publicKey: keys.publicKey, name: 'laptop' }, world.now);
});
afterAll(() => world.close());

async function signed(caller: RegistryCaller, some: SomePackage, privateKey = keys.privateKey, by = registry) {
  const hash = hashOf(await packageOf(some));
  return await publish(by, caller, some, { signature: signPackage(hash, privateKey) });
}

it('a package signed with a registered key of its owner is known as signed', async () => {
  expect((await signed(a, { id: 'build/signed' })).version.signed).toBe(true);
  expect((await publish(registry, a, { id: 'build/unsigned' })).version.signed).toBe(false);
});

it('a signature by another key, of another package, of another owner or that is none refuses the publication', async () => {
  await expect(signed(a, { id: 'build/bad-key' }, generateSigningKeys().privateKey)).rejects.toThrow(BadUserInput);
  const other = signPackage(hashOf(Buffer.from('other')), keys.privateKey);
  await expect(publish(registry, a, { id: 'build/bad-hash' }, { signature: other })).rejects.toThrow(BadUserInput);
  await expect(signed(b, { id: 'build/bad-owner' })).rejects.toThrow(BadUserInput);
  await expect(publish(registry, a, { id: 'build/no-signature' }, { signature: 'AAAA' })).rejects.toThrow(BadUserInput);
  for (const id of ['build/bad-key', 'build/bad-hash', 'build/bad-owner', 'build/no-signature'])
    expect(await registry.extension({ caller: nobody, id })).toBeNull();
});

it('the policy "signed" publishes and resolves nothing else, and says so', async () => {
  await expect(publish(strict, a, { id: 'build/refused' })).rejects.toThrow('signed packages only');
  expect((await strict.resolve({ caller: nobody, uses: ['build/signed@1'] })).extensions).toHaveLength(1);
  await expect(strict.resolve({ caller: nobody, uses: ['build/unsigned@1'] })).rejects.toThrow(
    'signed extensions only',
  );
  await publish(registry, a, { id: 'build/signed', version: '1.1.0' });
  expect((await strict.resolve({ caller: nobody, uses: ['build/signed@1'] })).extensions).toMatchObject([
    { version: '1.0.0' },
  ]);
  expect((await registry.resolve({ caller: nobody, uses: ['build/signed@1'] })).extensions).toMatchObject([
    { version: '1.1.0' },
  ]);
});

it('what a removed key has signed counts as unsigned, by a lock too', async () => {
  const second = generateSigningKeys();
  const key = await registry.keys.register('user/a', { publicKey: second.publicKey }, world.now);
  const { version } = await signed(a, { id: 'build/later-lost' }, second.privateKey);
  const lock = [{ uses: 'build/later-lost@1', id: 'build/later-lost', version: '1.0.0', hash: version.packageHash }];
  expect((await strict.resolve({ caller: nobody, uses: ['build/later-lost@1'], lock })).extensions).toHaveLength(1);
  await registry.keys.remove('user/a', key.id);
  await expect(strict.resolve({ caller: nobody, uses: ['build/later-lost@1'] })).rejects.toThrow(
    'signed extensions only',
  );
  await expect(strict.resolve({ caller: nobody, uses: ['build/later-lost@1'], lock })).rejects.toThrow(
    'signed extensions only',
  );
});

it('keys are registered once, by PEM or by their bytes, seen and removed by their owner alone', async () => {
  const { publicKey } = generateKeyPairSync('ed25519');
  const pem = publicKey.export({ format: 'pem', type: 'spki' }).toString();
  for (const name of ['a\0b', 'a\u202Eb', 'a\nb', 'a'.repeat(101)])
    await expect(registry.keys.register('user/k', { publicKey: pem, name }, world.now)).rejects.toThrow('visible');
  const first = await registry.keys.register('user/k', { publicKey: pem, name: 'machine' }, world.now);
  expect(await registry.keys.register('user/k', { publicKey: first.publicKey, name: 'again' }, world.now)).toEqual(
    first,
  );
  expect(await registry.keys.of('user/k')).toEqual([first]);
  expect(await registry.keys.of('user/l')).toEqual([]);
  await expect(registry.keys.remove('user/l', first.id)).rejects.toThrow(NotFound);
  expect(await registry.keys.remove('user/k', first.id)).toBe(true);
  await expect(registry.keys.remove('user/k', first.id)).rejects.toThrow(NotFound);
  expect(() => registry.keyOwner(nobody)).toThrow(Unauthenticated);
});

it('a key is removed where the store cannot say that it has deleted it', async () => {
  const store = await openSqliteStore({ path: ':memory:', collections: [keysSpec] });
  const own = new SigningKeys(forgetful(store));
  const { id } = await own.register('user/k', { publicKey: generateSigningKeys().publicKey }, world.now);
  expect(await own.remove('user/k', id)).toBe(true);
  expect(await own.of('user/k')).toEqual([]);
  await expect(own.remove('user/k', id)).rejects.toThrow(NotFound);
  await store.close();
});

it('what is no Ed25519 public key is refused', async () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 })
    .publicKey.export({ format: 'pem', type: 'spki' })
    .toString();
  for (const publicKey of [
    '',
    'AAAA',
    'x'.repeat(10_000),
    rsa,
    keys.privateKey,
    createPublicKey(keys.privateKey).export({ format: 'pem', type: 'spki' }).toString().replace('MC', 'AA'),
  ]) {
    await expect(registry.keys.register('user/a', { publicKey }, world.now)).rejects.toThrow(BadUserInput);
  }
});

it('a tenant has no more than fifty keys where all are registered at the same moment', async () => {
  const registered = Array.from({ length: 70 }, () =>
    registry.keys.register('user/many', { publicKey: generateSigningKeys().publicKey }, world.now),
  );
  const ended = await Promise.allSettled(registered);
  const made = ended.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  expect(made.length).toBeLessThanOrEqual(50);
  for (const { id } of made) await registry.keys.remove('user/many', id);
  expect(await registry.keys.of('user/many')).toEqual([]);
});
