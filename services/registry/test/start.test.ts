/** Registries on a real broker: asked by others, and together on one store. */
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { connectBus, subjects, type Bus } from '@penstock/bus';
import { loadTiers } from '@penstock/config';
import {
  PACKAGE_PART_BYTES,
  type ExtensionKeyView,
  type ExtensionView,
  type PackagePart,
  type PublishAnswer,
  type ResolveAnswer,
  type VersionView,
} from '@penstock/extension';
import { BadUserInput, NotFound } from '@penstock/errors';
import { callService } from '@penstock/service';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { Catalogue } from '../src/catalogue/catalogue.ts';
import { startRegistry, type RunningRegistry } from '../src/start.ts';
import { hashOf, makeWorld, nobody, packageOf, publish, service, upload, user, type World } from './support.ts';
import { silentLog } from '@penstock/telemetry/log';

let world: World;
let broker: TestBroker;
const buses: Bus[] = [];
let asking: Bus;
let first: RunningRegistry;
let second: RunningRegistry;

beforeAll(async () => {
  [world, broker] = await Promise.all([makeWorld(), startTestBroker()]);
  asking = await connect();
  first = await start();
  second = await start();
});
afterAll(async () => {
  await first.close();
  await second.close();
  for (const bus of buses) await bus.close();
  await broker.stop();
  await world.close();
});

async function connect(): Promise<Bus> {
  const bus = await connectBus({ servers: broker.url, name: `registry-${buses.length}` });
  buses.push(bus);
  return bus;
}

async function start(): Promise<RunningRegistry> {
  const { store, objects } = world;
  return await startRegistry({
    bus: await connect(),
    store,
    objects,
    tiers: loadTiers(),
    policy: 'any',
    logRetentionMs: 1e9,
    partitions: 1,
    log: silentLog,
  });
}

const ask = <Rep>(verb: string, body: unknown): Promise<Rep> =>
  callService<unknown, Rep>(asking, 'registry', verb, body);

/** Resolves after the next news of a registry has reached everybody who heard it before. */
async function nextNews(): Promise<void> {
  const heard = Promise.withResolvers<void>();
  const subscription = asking.subscribe(subjects.registryChanged, () => heard.resolve());
  await asking.flush();
  await heard.promise;
  subscription.stop();
}

it('every verb answers, and refusals keep their code', async () => {
  const bytes = await packageOf({ id: 'build/asked', note: 'x'.repeat(600_000) });
  const packageHash = await upload(first.registry, service, bytes);
  const { version } = await ask<PublishAnswer>('publish', { caller: service, packageHash, changelog: 'new' });
  expect(version).toMatchObject({ extensionId: 'build/asked', changelog: 'new' });
  expect(await ask<ExtensionView>('extension', { caller: nobody, id: 'build/asked' })).toMatchObject({
    id: 'build/asked',
  });
  expect(await ask<VersionView[]>('versions', { caller: nobody, id: 'build/asked', limit: 5, texts: true })).toEqual([
    version,
  ]);
  expect((await ask<ResolveAnswer>('resolve', { caller: nobody, uses: ['build/asked@1'] })).extensions).toMatchObject([
    { hash: packageHash },
  ]);
  expect(
    await ask<VersionView>('yank', { caller: service, id: 'build/asked', version: '1.0.0', yanked: true }),
  ).toMatchObject({ yanked: true });
  await expect(ask('resolve', { caller: nobody, uses: ['build/asked@1'] })).rejects.toThrow(BadUserInput);
  const key = await ask<ExtensionKeyView>('registerKey', {
    caller: user('a'),
    publicKey: Buffer.alloc(32, 7).toString('base64'),
  });
  expect(await ask<ExtensionKeyView[]>('keys', { caller: user('a') })).toEqual([key]);
  expect(await ask('removeKey', { caller: user('a'), id: key.id })).toBe(true);
  await expect(ask('removeKey', { caller: user('a'), id: key.id })).rejects.toThrow(NotFound);
});

it('runners read a package in parts, a yanked one too, and what no version has is NOT_FOUND', async () => {
  const bytes = await packageOf({ id: 'build/asked', note: 'x'.repeat(600_000) });
  const hash = hashOf(bytes);
  const parts: Buffer[] = [];
  for (let offset = 0, size = 1; offset < size;) {
    const part = await ask<PackagePart>('package', { hash, offset });
    const data = Buffer.from(part.data, 'base64');
    expect(data.length).toBeLessThanOrEqual(PACKAGE_PART_BYTES);
    parts.push(data);
    offset += data.length;
    size = part.size;
  }
  expect(parts).toHaveLength(2);
  expect(hashOf(Buffer.concat(parts))).toBe(hash);
  expect(await ask<PackagePart>('package', { hash, offset: bytes.length + 1 })).toEqual({
    data: '',
    size: bytes.length,
  });
  const waiting = await upload(first.registry, service, await packageOf({ id: 'build/waiting' }));
  await expect(ask('package', { hash: waiting, offset: 0 })).rejects.toThrow(NotFound);
  // What is no hash costs no look at the store: it might be read as a condition that all packages fulfil.
  const listing = vi.spyOn(Catalogue.prototype, 'anyOfPackage');
  for (const hash of [{ gt: '' }, { in: [waiting] }, undefined, null, 7, ''])
    await expect(ask('package', { hash, offset: 0 })).rejects.toThrow(NotFound);
  expect(listing).not.toHaveBeenCalled();
  listing.mockRestore();
});

it('what one registry publishes another one finds at once by id, and in a search once it has heard of it', async () => {
  const news = nextNews();
  await publish(first.registry, service, { id: 'test/elsewhere', description: 'unusual' });
  expect(await second.registry.extension({ caller: nobody, id: 'test/elsewhere' })).not.toBeNull();
  await news;
  // Its own handling of the same news reads the record from the store: it is done when a read begun after it is.
  await expect
    .poll(() => second.registry.search({ caller: nobody, query: 'unusual', limit: 5 }).map(({ id }) => id))
    .toEqual(['test/elsewhere']);
});

it('downloads of several registries are counted together', async () => {
  const { version } = await publish(first.registry, service, { id: 'test/counted' });
  for (const { registry } of [first, second, first]) {
    const found = await registry.findPackage(nobody, version.packageHash);
    await Array.fromAsync((await found?.read()) ?? []);
  }
  await Promise.all([first.registry.close(), second.registry.close()]);
  await expect
    .poll(async () => {
      const views = await Promise.all(
        [first, second].map(({ registry }) => registry.extension({ caller: nobody, id: 'test/counted' })),
      );
      return views.map((view) => view?.downloadCount);
    })
    .toEqual([3, 3]);
});

it('a registry that starts later knows what is there, also after the broker was away', async () => {
  const third = await start();
  expect(third.registry.search({ caller: nobody, query: 'elsewhere', limit: 5 })).toHaveLength(1);
  await third.close();
  const reconnected = once(asking.events, 'reconnected');
  await broker.kill();
  await publish(first.registry, service, { id: 'test/meanwhile' });
  await broker.restart();
  await reconnected;
  await expect
    .poll(() => second.registry.search({ caller: nobody, query: 'meanwhile', limit: 5 }).length, { timeout: 10_000 })
    .toBe(1);
});

it('what comes along is published once, signed, and with other bytes of the same version not at all', async () => {
  const warnings: string[] = [];
  const { store, objects } = world;
  const strict = await startRegistry({
    bus: await connect(),
    store,
    objects,
    tiers: loadTiers(),
    policy: 'signed',
    logRetentionMs: 1e9,
    partitions: 1,
    log: { ...silentLog, warn: (_fields, message) => warnings.push(message) },
  });
  const bytes = await packageOf({ id: 'utility/along' });
  const packages = [
    { name: 'along', bytes },
    { name: 'broken', bytes: Buffer.from('no package') },
  ];
  await strict.publishBuiltIns(packages);
  expect(warnings).toHaveLength(1);
  const keys = (await strict.registry.keys.of('service')).length;
  await strict.publishBuiltIns([packages[0] as (typeof packages)[0]]);
  expect(await strict.registry.keys.of('service')).toHaveLength(keys);
  expect((await strict.registry.resolve({ caller: nobody, uses: ['utility/along@1'] })).extensions).toMatchObject([
    { hash: hashOf(bytes) },
  ]);
  await strict.publishBuiltIns([
    { name: 'along', bytes: await packageOf({ id: 'utility/along', note: 'changed without a new version' }) },
  ]);
  expect(warnings).toHaveLength(2);
  expect((await strict.registry.resolve({ caller: nobody, uses: ['utility/along@1'] })).extensions).toMatchObject([
    { hash: hashOf(bytes) },
  ]);
  await strict.close();
});
