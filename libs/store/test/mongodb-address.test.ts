import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { openMongoStore, openStore, storeAddressOf, type DocumentStore } from '../src/index.ts';
import { readAddress } from '../src/mongodb/address.ts';

/** Async, so that an address of no known form rejects as well. */
const open = async (url: string, deadlineMs?: number): Promise<DocumentStore> =>
  openStore(storeAddressOf(url), [], deadlineMs);

describe('the address of a store', () => {
  it.each([
    ['mongodb://localhost', 'mongodb://localhost/penstock', 'penstock'],
    ['mongodb://localhost:27017/ci', 'mongodb://localhost:27017/ci', 'ci'],
    ['mongodb://u:p@a:1,b:2,c:3/ci?replicaSet=rs0&w=1', 'mongodb://a:1,b:2,c:3/ci', 'ci'],
    ['mongodb://u:p%40%2F@[::1]:27017/?tls=true', 'mongodb://[::1]:27017/penstock', 'penstock'],
    ['mongodb+srv://u:p@cluster0.example.net/ci', 'mongodb+srv://cluster0.example.net/ci', 'ci'],
  ])('%s is told as %s', (url, label, database) => {
    expect(readAddress(url)).toEqual({ label, database });
  });

  it('takes another database than the one it names', () => {
    expect(readAddress('mongodb://h/ci', 'other')).toEqual({ label: 'mongodb://h/other', database: 'other' });
  });

  it.each([
    'mongodb://zoe:s3cret',
    'mongodb://zoe:s3/cr@et@host/db',
    'mongodb://zoe:s3cret@',
    'mongodb://zoe:s3cret@host:99999/db',
    'mongodb://zoe:s3cret@host/db?nonsense=s3cret',
    'mongodb://zoe:%@host',
    'mongodb://zoe:s3cret@host/d b',
    'mongodb://zoe:s3cret@host/?tls=maybe',
    'postgres://zoe:s3cret@host/db',
    'mongodb://zoe:s3cret@ho st/db',
    'mongodb://zoe:s3cret@host/?authMechanism=PLAIN&authSource=s3cret',
    'zoe:s3cret',
  ])('%s: whatever is wrong with an address, its error quotes no part of the credentials', async (url) => {
    const error: unknown = await open(url, 300).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ tag: expect.stringMatching(/^Store(UsageError|Unavailable)$/) as unknown });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toMatch(/zoe|s3|cr@et/);
  });

  it('of no known kind is the caller’s mistake', async () => {
    await expect(open('postgres://host/db')).rejects.toMatchObject({
      tag: 'StoreUsageError',
      message: expect.stringContaining("'sqlite:<path>' or 'mongodb://…'") as unknown,
    });
    await expect(openMongoStore({ url: 'sqlite:x', collections: [] })).rejects.toMatchObject({
      tag: 'StoreUsageError',
    });
  });

  it('sqlite:<path> opens the file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'penstock-store-'));
    const store = await open(`sqlite:${join(folder, 'store.db')}`);
    await expect(store.ping()).resolves.toBeUndefined();
    await store.close();
    await rm(folder, { recursive: true });
  });
});
