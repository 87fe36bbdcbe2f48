import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ByAttempt, FoundCache } from '@penstock/artifacts';
import type { Bus, LivingAttempt } from '@penstock/bus';
import { BadUserInput, Forbidden, QuotaExceeded } from '@penstock/errors';
import { openFolderStore, type ObjectStore } from '@penstock/object-store';
import type { CacheScope, RunId } from '@penstock/run';
import { CacheEntries, cacheScopeId, openSqliteStore, runCollections, type DocumentStore } from '@penstock/store';
import { IncomingUploads } from '../src/artifacts/incoming.ts';
import { CacheKeeper } from '../src/caches/cache-keeper.ts';

const RUN = '01976d3a-0000-7000-8000-000000000001' as RunId;
const MAIN: CacheScope = { tenant: 't', repository: 'host/shop', pipeline: '', ref: 'refs/heads/main' };
const BRANCH: CacheScope = { ...MAIN, ref: 'refs/heads/topic' };
const OTHERS: CacheScope = { ...MAIN, tenant: 'u' };
const DAY = 86_400_000;
const by = (runner = 'here'): ByAttempt => ({
  ref: { runId: RUN, stage: runner, attempt: 1, session: 's', credit: 1 },
  partition: 0,
});
const sumOf = (text: string): string => createHash('sha256').update(text).digest('hex');

let folder: string;
let store: DocumentStore;
let objects: ObjectStore;
let entries: CacheEntries;
let keeper: CacheKeeper;
let incoming: IncomingUploads;
let now: number;
/** By runner. */
let living: Map<string, LivingAttempt>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-cache-keeper-'));
  store = await openSqliteStore({ path: join(folder, 'store.db'), collections: runCollections });
  objects = await openFolderStore(join(folder, 'objects'));
  entries = new CacheEntries(store);
  incoming = new IncomingUploads();
  now = Date.now();
  const attempt = { tenant: 't', key: 'k', expireMs: DAY, artifactBytes: 100 };
  living = new Map([
    ['here', { ...attempt, caches: { write: BRANCH, read: [BRANCH, MAIN] } }],
    ['main', { ...attempt, caches: { write: MAIN, read: [MAIN] } }],
    ['untrusted', { ...attempt, caches: { write: null, read: [MAIN] } }],
    ['old', { ...attempt }],
  ]);
  const grants = {
    of: async (runner: string) => {
      const found = living.get(runner);
      if (found === undefined) throw new Forbidden('no');
      return found;
    },
  };
  keeper = new CacheKeeper({ bus: {} as Bus, entries, objects, grants, incoming, now: () => now });
});
afterEach(async () => {
  incoming.close();
  await store.close();
  await rm(folder, { recursive: true });
});

/** As a success that was committed leaves it. */
async function saved(runner: string, key: string, content: string, at = now): Promise<void> {
  const scope = living.get(runner)?.caches?.write ?? MAIN;
  const sha256 = sumOf(content);
  expect(await keeper.begin(runner, { ...by(runner), key, sizeBytes: content.length })).toEqual({ wanted: true });
  await keeper.put(runner, { ...by(runner), sha256, data: Buffer.from(content).toString('base64') });
  const entry = { scope, owner: 'k', key, sha256, bytes: content.length, limitBytes: 100, createdAt: at };
  await entries.add([entry]);
}

async function find(runner: string, key: string, restore: readonly string[] = []): Promise<string | undefined> {
  const { found } = await keeper.find(runner, { ...by(runner), key, restore });
  return found === null ? undefined : await read(runner, found);
}

async function read(runner: string, { scope, sha256 }: FoundCache): Promise<string> {
  const { data } = await keeper.get(runner, { ...by(runner), scope, sha256, offset: 0 });
  return Buffer.from(String(data), 'base64').toString('utf8');
}

const keys = async (): Promise<string[]> =>
  (await keeper.list({ tenant: 't' })).caches.map(({ key }) => key).toSorted();
const archives = async (): Promise<number> => (await Array.fromAsync(objects.list('caches/'))).length;

describe('what is found', { timeout: 60_000 }, () => {
  it('is the exact key in any scope of the run, in their order, before the newest that a beginning fits', async () => {
    await saved('main', 'npm-1', 'of main', now - 3);
    await saved('main', 'npm-2', 'newer of main', now - 1);
    await saved('here', 'npm-0', 'of the branch', now - 2);
    expect(await find('here', 'npm-1', ['npm-'])).toBe('of main');
    expect(await find('here', 'npm-9', ['npm-'])).toBe('of the branch');
    expect(await find('main', 'npm-9', ['npm-'])).toBe('newer of main');
    expect(await find('main', 'npm-0')).toBeUndefined();
    expect(await find('here', 'npm-9', ['yarn-', 'n'])).toBe('of the branch');
    expect(await find('here', 'npm-9', ['pnpm-'])).toBeUndefined();
  });

  it('of several that save one key the first stands, and is not saved again', async () => {
    await saved('main', 'a', 'first');
    const again = {
      scope: MAIN,
      owner: 'k',
      key: 'a',
      sha256: sumOf('second'),
      bytes: 6,
      limitBytes: 100,
      createdAt: now,
    };
    await entries.add([again]);
    expect(await find('main', 'a')).toBe('first');
    expect(await keeper.begin('main', { ...by('main'), key: 'a', sizeBytes: 6 })).toEqual({ wanted: false });
  });

  it('while one stage stores a key another one need not', async () => {
    const begin = async (stage: string): Promise<boolean> => {
      const { ref, partition } = by(stage);
      return (await keeper.begin('main', { ref, partition, key: 'a', sizeBytes: 6 })).wanted;
    };
    expect(await begin('one')).toBe(true);
    expect(await begin('two')).toBe(false);
    expect(await begin('one')).toBe(true);
  });

  it('an attempt that was lost while it stored a key leaves it to the next one, of its stage or of another', async () => {
    const begin = async (runner: string, attempt: number): Promise<boolean> => {
      const { ref, partition } = by(runner);
      return (await keeper.begin(runner, { ref: { ...ref, attempt }, partition, key: 'a', sizeBytes: 6 })).wanted;
    };
    living.set('other', { ...(living.get('main') as LivingAttempt) });
    living.set('third', { ...(living.get('main') as LivingAttempt) });
    expect(await begin('main', 1)).toBe(true);
    // The second attempt of the same stage: there is no first one any more.
    expect(await begin('main', 2)).toBe(true);
    expect(await begin('other', 1)).toBe(false);
    living.delete('main');
    expect(await begin('other', 1)).toBe(true);
    expect(await begin('third', 1)).toBe(false);
  });

  it('what is missing or damaged is none: its entry goes, and the next that fits is found', async () => {
    await saved('main', 'npm-1', 'older', now - 2);
    await saved('main', 'npm-2', 'newer', now - 1);
    await objects.delete(`caches/${cacheScopeId(MAIN)}/${sumOf('newer')}`);
    expect(await find('main', 'npm-2', ['npm-'])).toBe('older');
    expect(await keys()).toEqual(['npm-1']);
    const { found } = await keeper.find('main', { ...by('main'), key: 'npm-1', restore: [] });
    await keeper.drop('main', { ...by('main'), id: found?.id ?? '' });
    expect(await keys()).toEqual(['npm-1']);
    await writeFile(join(folder, 'objects/objects/caches', cacheScopeId(MAIN), sumOf('older')), 'other');
    await keeper.drop('main', { ...by('main'), id: found?.id ?? '' });
    expect(await keys()).toEqual([]);
    expect(await archives()).toBe(0);
  });
});

describe('many entries of one scope', { timeout: 60_000 }, () => {
  it('whose archives the storage has lost are read once for all of them, not once for each', async () => {
    for (let index = 0; index < 30; index += 1) await saved('main', `npm-${index}`, `lost ${index}`, now - index);
    await saved('main', 'npm-kept', 'kept', now - 100);
    for (let index = 0; index < 30; index += 1)
      await objects.delete(`caches/${cacheScopeId(MAIN)}/${sumOf(`lost ${index}`)}`);
    const looks = vi.spyOn(entries, 'newest');
    expect(await find('main', 'npm', ['npm-'])).toBe('kept');
    expect(looks).toHaveBeenCalledOnce();
    expect(await keys()).toEqual(['npm-kept']);
  });

  it('are not all read for each that is deleted, and an archive that another one stands for stays', async () => {
    await saved('main', 'a', 'same');
    await saved('main', 'b', 'same');
    const whole = vi.spyOn(entries, 'namedIn');
    const [first, second] = (await keeper.list({ tenant: 't' })).caches;
    expect(await keeper.delete({ tenant: 't', id: first?.id ?? '' })).toEqual({ deleted: true });
    expect(await archives()).toBe(1);
    expect(await keeper.delete({ tenant: 't', id: second?.id ?? '' })).toEqual({ deleted: true });
    expect(await archives()).toBe(0);
    expect(whole).not.toHaveBeenCalled();
  });
});

describe('who may', { timeout: 60_000 }, () => {
  it('writes only where the owner of the run says, and nowhere without trust', async () => {
    for (const runner of ['untrusted', 'old']) {
      await expect(keeper.begin(runner, { ...by(), key: 'a', sizeBytes: 1 })).rejects.toThrow(Forbidden);
      await expect(keeper.put(runner, { ...by(), sha256: sumOf('x'), data: 'eA==' })).rejects.toThrow(Forbidden);
      await expect(keeper.open(runner, { ...by(), sha256: sumOf('x'), sizeBytes: 1 })).rejects.toThrow(Forbidden);
    }
    await expect(keeper.begin('nobody', { ...by(), key: 'a', sizeBytes: 1 })).rejects.toThrow(Forbidden);
    await keeper.put('here', { ...by(), sha256: sumOf('x'), data: 'eA==' });
    expect(await Array.fromAsync(objects.list(`caches/${cacheScopeId(MAIN)}`))).toEqual([]);
  });

  it('reads only the scopes of its run', async () => {
    await saved('here', 'a', 'of the branch');
    await saved('main', 'b', 'of main');
    expect(await find('untrusted', 'b')).toBe('of main');
    expect(await find('old', 'b')).toBeUndefined();
    const request = { ...by(), scope: cacheScopeId(BRANCH), sha256: sumOf('of the branch'), offset: 0 };
    await expect(keeper.get('main', request)).rejects.toThrow(Forbidden);
    const [entry] = (await keeper.list({ tenant: 't' })).caches.filter(({ key }) => key === 'a');
    await keeper.drop('main', { ...by(), id: entry?.id ?? '' });
    expect(await keys()).toEqual(['a', 'b']);
  });

  it('lists none of a repository that cannot be, and deletes none that cannot be', async () => {
    expect(await keeper.list({ tenant: 't', repository: 'acme/\ud800' })).toEqual({ caches: [] });
    for (const id of ['', 'x'.repeat(2_000), '\ud800'])
      expect(await keeper.delete({ tenant: 't', id })).toEqual({ deleted: false });
  });

  it('lists and deletes those of its own tenant', async () => {
    await saved('main', 'a', 'x');
    await entries.add([
      { scope: OTHERS, owner: 'u', key: 'theirs', sha256: sumOf('y'), bytes: 1, limitBytes: null, createdAt: now },
    ]);
    const { caches } = await keeper.list({ tenant: 't' });
    expect(caches).toMatchObject([{ key: 'a', repository: 'host/shop', ref: MAIN.ref, sizeBytes: 1, usedAt: now }]);
    expect((await keeper.list({ tenant: 't', repository: 'host/other' })).caches).toEqual([]);
    expect(await keeper.delete({ tenant: 'u', id: caches[0]?.id ?? '' })).toEqual({ deleted: false });
    expect(await keeper.delete({ tenant: 't', id: 'nothing' })).toEqual({ deleted: false });
    expect(await keeper.delete({ tenant: 't', id: caches[0]?.id ?? '' })).toEqual({ deleted: true });
    expect(await archives()).toBe(0);
    expect((await keeper.list({ tenant: 'u' })).caches).toHaveLength(1);
  });

  it.each(['', 'x'.repeat(513), '\ud800', 7])('a key %j is none', async (key) => {
    await expect(keeper.begin('main', { ...by(), key: key as string, sizeBytes: 1 })).rejects.toThrow(BadUserInput);
    await expect(keeper.find('main', { ...by(), key: key as string, restore: [] })).rejects.toThrow(BadUserInput);
  });
});

describe('CACHEKEEPER-4: archives without an entry', { timeout: 60_000 }, () => {
  const bytes = 512 * 1024;
  /** Archives of their own contents, 32 of which may lie there. */
  const put = async (count: number): Promise<Buffer[]> => {
    const archives = Array.from({ length: count }, () => randomBytes(bytes));
    for (const data of archives)
      await keeper.put('main', { ...by(), sha256: createHash('sha256').update(data).digest('hex'), data });
    return archives;
  };
  const enter = async (archives: readonly Buffer[], size: number): Promise<void> => {
    for (const [index, data] of archives.entries()) {
      const sha256 = createHash('sha256').update(data).digest('hex');
      const entry = { scope: MAIN, owner: 'k', key: `${index}`, sha256, bytes: size, limitBytes: null, createdAt: now };
      await entries.add([entry]);
    }
  };

  it('are bounded by key; those that have one by now, or are gone, are none', async () => {
    const archives = await put(32);
    await enter(archives.slice(0, 2), bytes);
    for await (const { key } of objects.list(`caches/${cacheScopeId(MAIN)}/`))
      if (
        createHash('sha256')
          .update(archives[2] as Buffer)
          .digest('hex') === key.split('/').at(-1)
      )
        await objects.delete(key);
    await put(3);
    await expect(put(1)).rejects.toThrow('16.8 MB may lie there');
    living.set('other', { ...(living.get('main') as LivingAttempt), key: 'o' });
    await keeper.put('other', { ...by(), sha256: sumOf('x'), data: 'eA==' });
    await keeper.sweep(-60_000);
    await put(30);
  });

  it('are also those whose entry says that they are smaller', async () => {
    await enter(await put(32), 1);
    await expect(put(1)).rejects.toThrow(QuotaExceeded);
  });
});

describe('what goes', { timeout: 60_000 }, () => {
  it('where a key may keep no more, what was not used for longest goes first; what is larger alone is refused', async () => {
    await saved('main', 'a', 'a'.repeat(40), now - 30);
    await saved('main', 'b', 'b'.repeat(40), now - 20);
    now += 10;
    expect(await find('main', 'a')).toBeDefined();
    await saved('main', 'c', 'c'.repeat(40));
    expect(await keys()).toEqual(['a', 'c']);
    await expect(keeper.begin('main', { ...by(), key: 'd', sizeBytes: 101 })).rejects.toThrow(QuotaExceeded);
    expect(await keys()).toEqual(['a', 'c']);
  });

  it('the sweep removes archives that nothing stands for, once they are old, and entries that nobody uses', async () => {
    await saved('main', 'a', 'kept');
    await keeper.put('main', { ...by(), sha256: sumOf('lost'), data: Buffer.from('lost').toString('base64') });
    expect(await keeper.sweep()).toEqual({ entries: 0, archives: 0 });
    expect(await keeper.sweep(-60_000)).toEqual({ entries: 0, archives: 1 });
    expect(await find('main', 'a')).toBe('kept');
    now += 31 * DAY;
    expect(await keeper.sweep()).toMatchObject({ entries: 1 });
    expect([await keys(), await archives()]).toEqual([[], 0]);
  });

  it('the sweep removes an archive that its entry says to be smaller than it is', async () => {
    const more = { scope: MAIN, owner: 'k', key: 'b', sha256: sumOf('lie'), bytes: 1, limitBytes: 100, createdAt: now };
    await keeper.put('main', { ...by(), sha256: sumOf('lie'), data: Buffer.from('lie').toString('base64') });
    await entries.add([more]);
    expect(await keeper.sweep(-60_000)).toEqual({ entries: 0, archives: 1 });
    expect(await find('main', 'b')).toBeUndefined();
  });

  it('the sweep brings a key below its limit', async () => {
    await saved('main', 'a', 'a'.repeat(60), now - 20);
    const more = { scope: MAIN, owner: 'k', key: 'b', sha256: sumOf('b'), bytes: 60, limitBytes: 100, createdAt: now };
    await entries.add([more]);
    expect(await keeper.sweep()).toMatchObject({ entries: 1 });
    expect(await keys()).toEqual(['b']);
  });
});
