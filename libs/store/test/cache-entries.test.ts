import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CacheScope } from '@penstock/run';
import {
  CacheEntries,
  openSqliteStore,
  runCollections,
  type CollectionSpec,
  type DocumentStore,
  type NewCacheEntry,
} from '../src/index.ts';

const SCOPE: CacheScope = { tenant: 't', repository: 'host/shop', pipeline: '', ref: 'refs/heads/main' };
const entryOf = (sha256: string): NewCacheEntry => ({
  scope: SCOPE,
  owner: 'k',
  key: 'deps',
  sha256,
  bytes: 1,
  limitBytes: null,
  createdAt: 1_000,
});

let folder: string;
let store: DocumentStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-cache-entries-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

/** Of which nothing is deleted before `meanwhile` has been. */
function slowToDelete(meanwhile: () => Promise<void>): DocumentStore {
  return {
    collection: <S extends CollectionSpec>(spec: S) => {
      const real = store.collection(spec);
      return {
        get: (id, options) => real.get(id, options),
        getMany: (ids, options) => real.getMany(ids, options),
        list: (selection) => real.list(selection),
        listFresh: (selection, known) => real.listFresh(selection, known),
        insert: (document) => real.insert(document),
        replaceNewer: (documents) => real.replaceNewer(documents),
        replaceStanding: (document) => real.replaceStanding(document),
        deleteWhere: (selection) => real.deleteWhere(selection),
        delete: async (...what) => {
          await meanwhile();
          return await real.delete(...what);
        },
      };
    },
    ping: () => store.ping(),
    close: () => store.close(),
  };
}

describe('an entry of caches', () => {
  it('stays where it stands for another archive by the time that a missing one’s is removed (CACHES-2)', async () => {
    const others = new CacheEntries(store);
    await others.add([entryOf('a'.repeat(64))]);
    const [old] = await others.ofTenant('t', 10);
    if (old === undefined) throw new Error('it was not added');
    const entries = new CacheEntries(
      slowToDelete(async () => {
        expect(await others.remove(old)).toBe(true);
        await others.add([entryOf('b'.repeat(64))]);
      }),
    );
    expect(await entries.remove(old)).toBe(false);
    expect((await others.find(SCOPE, 'deps'))?.sha256).toBe('b'.repeat(64));
    expect(await others.remove({ ...old, sha256: 'b'.repeat(64) })).toBe(true);
    expect(await others.find(SCOPE, 'deps')).toBeNull();
  });
});
