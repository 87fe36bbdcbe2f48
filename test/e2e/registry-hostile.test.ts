/** Hostile packages at the registry's door: each is refused with a message of its own, and nothing of it is kept. */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loadTiers } from '@penstock/config';
import { BadUserInput } from '@penstock/errors';
import { openFolderStore } from '@penstock/object-store';
import { registryCollections } from '@penstock/registry';
import { extensionsSpec, Registry } from '@penstock/registry/testing';
import { openSqliteStore, type DocumentStore, runCollections } from '@penstock/store';
import { silentLog } from '@penstock/telemetry/log';

const MANIFEST = 'id: build/hostile\nversion: 1.0.0\ndescription: Means no good\nrun: "true"\n';
const caller = { tenant: 'service', tier: 'enterprise', isAdmin: false };

let folder: string;
let store: DocumentStore;
let registry: Registry;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-hostile-'));
  store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [...registryCollections, ...runCollections],
    synchronous: 'normal',
  });
  registry = new Registry({
    store,
    objects: await openFolderStore(join(folder, 'objects')),
    tiers: loadTiers(),
    policy: 'any',
    log: silentLog,
  });
});
afterAll(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

type Entry = readonly [header: Partial<Header> & { readonly name: string }, body?: string | Buffer];

async function archiveOf(...entries: readonly Entry[]): Promise<Buffer> {
  const tar = pack();
  for (const [header, body = ''] of entries) tar.entry(header, body);
  tar.finalize();
  return gzipSync(Buffer.concat(await Array.fromAsync(tar as AsyncIterable<Buffer>)));
}

function packageOf(...entries: readonly Entry[]): Promise<Buffer> {
  return archiveOf([{ name: 'extension.yaml' }, MANIFEST], ...entries);
}

const CASES: readonly (readonly [what: string, make: () => Promise<Buffer>])[] = [
  ['a path that leads out', () => packageOf([{ name: '../outside' }, 'x'])],
  ['a path that leads out from within', () => packageOf([{ name: 'a/../../outside' }, 'x'])],
  ['an absolute path', () => packageOf([{ name: '/etc/passwd' }, 'x'])],
  ['a symbolic link', () => packageOf([{ name: 'link', type: 'symlink', linkname: '/etc/passwd' }])],
  ['a hard link', () => packageOf([{ name: 'hard', type: 'link', linkname: 'extension.yaml' }])],
  ['a device', () => packageOf([{ name: 'device', type: 'character-device', devmajor: 1, devminor: 3 }])],
  ['a setuid bit', () => packageOf([{ name: 'root', mode: 0o4755 }, 'x'])],
  ['a name twice', () => packageOf([{ name: 'twice' }, '1'], [{ name: 'twice' }, '2'])],
  ['names that differ in their case alone', () => packageOf([{ name: 'Twice' }, '1'], [{ name: 'twice' }, '2'])],
  ['a bomb', () => packageOf([{ name: 'zeros' }, Buffer.alloc(120 * 1024 * 1024)])],
  ['folders 10,000 deep', () => packageOf([{ name: `${'d/'.repeat(10_000)}file` }, 'x'])],
  [
    'too many files',
    () => packageOf(...Array.from({ length: 10_100 }, (_, index): Entry => [{ name: `f${index}` }, ''])),
  ],
  ['no manifest', () => archiveOf([{ name: 'readme.md' }, '#'])],
  ['no archive', () => Promise.resolve(Buffer.from('no archive'))],
  [
    'half an archive',
    async () => {
      const whole = await packageOf([{ name: 'big' }, randomBytes(100_000)]);
      return whole.subarray(0, whole.length / 2);
    },
  ],
];
const messages = new Map<string, string>();

it.each(CASES)('%s is refused', async (what, make) => {
  const bytes = await make();
  const packageHash = createHash('sha256').update(bytes).digest('hex');
  await registry.upload(
    caller,
    packageHash,
    (async function* whole() {
      yield bytes;
    })(),
  );
  const error: unknown = await registry.publish({ caller, packageHash }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(BadUserInput);
  const { message } = error as BadUserInput;
  expect(message).toMatch(/^The package is refused: /);
  // What is shown of the package is short and printable.
  expect(message.length).toBeLessThan(400);
  messages.set(what, message);
  expect(await registry.findPackage(caller, packageHash)).toBeNull();
  expect(await store.collection(extensionsSpec).list({ limit: 1 })).toEqual([]);
  for (const spec of registryCollections.filter(({ name }) => name === 'registry_contents'))
    expect(await store.collection(spec).list({ limit: 1 })).toEqual([]);
});

it('each has a message of its own', () => {
  expect(messages.size).toBe(CASES.length);
  // What is no archive and what is half of one are the same to a reader.
  expect(new Set(messages.values()).size, [...messages.values()].join('\n')).toBe(messages.size - 1);
});
