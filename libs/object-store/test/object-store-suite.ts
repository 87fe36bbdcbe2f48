/** What every adapter of the object storage port keeps to; `make` gives a fresh, empty storage that is opened anew each time. */
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HashMismatch, ObjectDamaged, ObjectsUnavailable, ObjectTooLarge, ObjectUsageError } from '../src/errors.ts';
import type { ExpectedBytes, ObjectHead, ObjectStore, StoredObject } from '../src/port.ts';

export interface StorageUnderTest {
  open(): Promise<ObjectStore>;
  /** Of a put that never ends: when it has taken so many, it has left something. Default: a few chunks. */
  readonly unfinishedBytes?: number | undefined;
  /** Changes bytes of a stored object behind the adapter's back. */
  damage(key: string): Promise<void>;
  remove(): Promise<void>;
}

const MIB = 1024 * 1024;

export function objectStoreSuite(name: string, make: () => Promise<StorageUnderTest>): void {
  describe(`object storage: ${name}`, () => {
    let storage: StorageUnderTest;
    let store: ObjectStore;
    beforeAll(async () => {
      storage = await make();
      store = await storage.open();
    });
    afterAll(() => storage.remove());

    const put = (key: string, bytes: Buffer): Promise<ObjectHead> => store.put(key, pieces(bytes), expectedOf(bytes));
    const get = async (key: string, options: Parameters<ObjectStore['get']>[1] = {}): Promise<Buffer | null> => {
      const object = await store.get(key, options);
      return object === null ? null : await joined(object);
    };

    it('what was put is read again, whole, by any process', async () => {
      const bytes = randomBytes(3 * MIB + 17);
      const head = await put('whole/a', bytes);
      expect(head).toMatchObject({ key: 'whole/a', size: bytes.length });
      expect(Math.abs(head.storedAt - Date.now())).toBeLessThan(60_000);
      const other = await storage.open();
      expect((await other.head('whole/a'))?.size).toBe(bytes.length);
      const object = await other.get('whole/a', { sha256: sumOf(bytes) });
      expect(Buffer.compare(await joined(object as StoredObject), bytes)).toBe(0);
    });

    it('an empty object is an object', async () => {
      await put('empty', Buffer.alloc(0));
      expect(await store.head('empty')).toMatchObject({ size: 0 });
      expect(await get('empty', { sha256: sumOf(Buffer.alloc(0)) })).toHaveLength(0);
    });

    it('what is not there is null, and deleting it says so', async () => {
      expect(await store.head('nothing')).toBeNull();
      expect(await store.get('nothing')).toBeNull();
      expect(await store.delete('nothing')).toBe(false);
    });

    it('a range is exactly the bytes asked for, at every border', async () => {
      const bytes = randomBytes(MIB + 1000);
      await put('ranges', bytes);
      const borders = [
        0,
        1,
        128 * 1024 - 1,
        128 * 1024,
        256 * 1024 - 1,
        256 * 1024,
        256 * 1024 + 1,
        MIB,
        bytes.length - 1,
        bytes.length,
        bytes.length + 5,
      ];
      for (const from of borders) {
        for (const to of [from, from + 1, from + 300_000, bytes.length + 10]) {
          expect(
            Buffer.compare((await get('ranges', { from, to })) as Buffer, bytes.subarray(from, to)),
            `${from} to ${to}`,
          ).toBe(0);
        }
      }
      expect(Buffer.compare((await get('ranges', { from: 700_000 })) as Buffer, bytes.subarray(700_000))).toBe(0);
    });

    it('bytes with another sum, too many of them, or a source that fails leave nothing, also of what was there before', async () => {
      const before = randomBytes(300_000);
      await put('refused', before);
      const bytes = randomBytes(600_000);
      await expect(
        store.put('refused', pieces(bytes), { ...expectedOf(bytes), sha256: sumOf(before) }),
      ).rejects.toThrow(HashMismatch);
      await expect(
        store.put('refused', pieces(bytes), { ...expectedOf(bytes), bytesMax: bytes.length - 1 }),
      ).rejects.toThrow(ObjectTooLarge);
      await expect(store.put('refused', failing(bytes), expectedOf(bytes))).rejects.toThrow('the line broke');
      expect(Buffer.compare((await get('refused')) as Buffer, before)).toBe(0);
      await expect(store.put('refused-new', failing(bytes), expectedOf(bytes))).rejects.toThrow('the line broke');
      expect(await store.head('refused-new')).toBeNull();
      expect(await store.removeLeftovers(0)).toBe(0);
    });

    it('replacing is whole: readers see the old or the new bytes', async () => {
      const versions = [randomBytes(700_000), randomBytes(500_000)] as const;
      await put('replaced', versions[0]);
      const sums = new Set(versions.map(sumOf));
      const seen: string[] = [];
      const reading = (async () => {
        for (let read = 0; read < 10; read++) {
          const bytes = await get('replaced').catch((error: unknown) => {
            if (error instanceof ObjectsUnavailable) return null;
            throw error;
          });
          if (bytes !== null) seen.push(sumOf(bytes));
        }
      })();
      for (let write = 1; write <= 6; write++) await put('replaced', versions[write % 2] as Buffer);
      await reading;
      expect(seen.filter((sum) => !sums.has(sum))).toEqual([]);
      expect(Buffer.compare((await get('replaced')) as Buffer, versions[0])).toBe(0);
    });

    it('what is replaced between being found and being read is never a mixture', async () => {
      const [first, second] = [randomBytes(700_000), randomBytes(500_000)];
      await put('found', first);
      const object = (await store.get('found')) as StoredObject;
      await put('found', second);
      const read = await joined(object).catch((error: unknown) => error);
      expect(
        read instanceof ObjectsUnavailable || (Buffer.isBuffer(read) && sumOf(read) === sumOf(first)),
        String(read),
      ).toBe(true);
    });

    it('puts of one key at once leave one of them, whole', async () => {
      const candidates = Array.from({ length: 4 }, () => randomBytes(400_000));
      await Promise.all(candidates.map((bytes) => put('contested', bytes)));
      const stored = (await get('contested')) as Buffer;
      expect(candidates.map(sumOf)).toContain(sumOf(stored));
      await store.removeLeftovers(0);
      expect(sumOf((await get('contested')) as Buffer)).toBe(sumOf(stored));
    });

    it('a deleted object is gone at once', async () => {
      await put('deleted', randomBytes(300_000));
      expect(await store.delete('deleted')).toBe(true);
      expect(await store.head('deleted')).toBeNull();
      expect(await store.get('deleted')).toBeNull();
      expect(await store.delete('deleted')).toBe(false);
    });

    it('a listing has every object of its prefix once, with its size', async () => {
      const keys = ['listed/b/2', 'listed/a', 'listed/b/1', 'listed-not'];
      for (const [index, key] of keys.entries()) await put(key, randomBytes(index + 1));
      const found = await Array.fromAsync(store.list('listed/'));
      expect(found.map(({ key, size }) => [key, size]).toSorted()).toEqual([
        ['listed/a', 2],
        ['listed/b/1', 3],
        ['listed/b/2', 1],
      ]);
      expect(await Array.fromAsync(store.list('nowhere/'))).toEqual([]);
    });

    it('damage is noticed before the last byte is handed out', async () => {
      const bytes = randomBytes(600_000);
      await put('damaged', bytes);
      await storage.damage('damaged');
      const read: Uint8Array[] = [];
      const object = (await store.get('damaged', { sha256: sumOf(bytes) })) as StoredObject;
      await expect(
        (async () => {
          for await (const piece of object.bytes) read.push(piece);
        })(),
      ).rejects.toThrow(ObjectDamaged);
      expect(Buffer.concat(read).length).toBeLessThan(bytes.length);
    });

    it('a put that never ended is invisible, and its leftover goes once it is old', async () => {
      const stuck = Promise.withResolvers<void>();
      const over = Promise.withResolvers<void>();
      const { unfinishedBytes = 500_000 } = storage;
      const bytes = randomBytes(unfinishedBytes + 100_000);
      async function* source(): AsyncGenerator<Uint8Array, void> {
        yield bytes.subarray(0, unfinishedBytes);
        stuck.resolve();
        await over.promise;
        throw new Error('the sender is gone');
      }
      const put = store.put('stuck', source(), expectedOf(bytes));
      await stuck.promise;
      expect(await store.head('stuck')).toBeNull();
      expect(await Array.fromAsync(store.list('stuck'))).toEqual([]);
      expect(await store.removeLeftovers(60_000)).toBe(0);
      // The source may be ahead of what is under way to the storage.
      await expect.poll(() => store.removeLeftovers(-60_000), { timeout: 20_000 }).toBe(1);
      expect(await store.removeLeftovers(-60_000)).toBe(0);
      // An open file that nobody closes is an error of the process once it is collected.
      over.resolve();
      await expect(put).rejects.toBeInstanceOf(Error);
    });

    it.each([
      '',
      '/a',
      'a/',
      'a//b',
      '../a',
      'a/../b',
      'A',
      'a b',
      'a/.b',
      '.',
      'a..b',
      'ä',
      `a${'a'.repeat(200)}`,
      'a\0',
    ])('%j is no key', async (key) => {
      await expect(store.head(key)).rejects.toThrow(ObjectUsageError);
      await expect(put(key, Buffer.from('x'))).rejects.toThrow(ObjectUsageError);
    });

    it('a sum that is none is a mistake of the caller', async () => {
      await expect(store.put('sum', pieces(Buffer.from('x')), { sha256: 'ABC', bytesMax: 10 })).rejects.toThrow(
        ObjectUsageError,
      );
    });

    it('can be asked whether the storage answers', async () => {
      await expect(store.ping()).resolves.toBeUndefined();
    });
  });
}

function sumOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

function expectedOf(bytes: Uint8Array): ExpectedBytes {
  return { sha256: sumOf(bytes), bytesMax: 64 * MIB };
}

async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += 70_001) yield bytes.subarray(at, at + 70_001);
}

async function* failing(bytes: Buffer): AsyncGenerator<Uint8Array, void> {
  yield bytes.subarray(0, bytes.length - 1);
  throw new Error('the line broke');
}

async function joined(object: StoredObject): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(object.bytes));
}
