import { createHash } from 'node:crypto';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { canMount, SmallDisk } from '@penstock/testkit';
import { expect, it } from 'vitest';
import { ObjectsFull, ObjectsUnavailable } from '../src/errors.ts';
import { openFolderStore } from '../src/index.ts';
import { objectStoreSuite } from './object-store-suite.ts';

objectStoreSuite('folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-objects-'));
  return {
    open: () => openFolderStore(join(folder, 'objects-of-a-test')),
    damage: async (key) => {
      const file = await open(join(folder, 'objects-of-a-test', 'objects', key), 'r+');
      await file.write(Buffer.from('damaged'), 0, 7, 1000);
      await file.close();
    },
    remove: () => rm(folder, { recursive: true }),
  };
});

it.runIf(process.platform === 'linux')('a folder that no file system makes is told at once', async () => {
  await expect(openFolderStore('/proc/penstock/objects')).rejects.toBeInstanceOf(ObjectsUnavailable);
});

const MIB = 1024 ** 2;

it.runIf(canMount('what a folder of objects leaves free of its disk'))(
  'FOLDER-4: a twentieth of the disk is left free, also by an object that is being stored; what is there is read and deleted',
  async () => {
    const disk = new SmallDisk(80 * MIB);
    try {
      const store = await openFolderStore(join(disk.folder, 'data'));
      const put = (key: string, bytes: number): Promise<unknown> => {
        const content = Buffer.alloc(bytes, key);
        const expected = { sha256: createHash('sha256').update(content).digest('hex'), bytesMax: bytes };
        const pieces = Array.from({ length: Math.ceil(bytes / MIB) }, (_, at) =>
          content.subarray(at * MIB, (at + 1) * MIB),
        );
        return store.put(
          key,
          (async function* given() {
            yield* pieces;
          })(),
          expected,
        );
      };
      await put('first', MIB);
      disk.fill(19 * MIB);
      await expect(put('long', 30 * MIB)).rejects.toThrow(/left to others/);
      await put('short', MIB);
      disk.empty();
      disk.fill(3 * MIB);
      await expect(put('other', 10)).rejects.toBeInstanceOf(ObjectsFull);
      await expect(store.checkRoom()).rejects.toBeInstanceOf(ObjectsFull);
      expect(await store.head('first')).toMatchObject({ size: MIB });
      expect(await store.head('long')).toBeNull();
      expect(await store.delete('short')).toBe(true);
      expect(await store.delete('first')).toBe(true);
      await put('other', 10);
      await store.checkRoom();
    } finally {
      disk.remove();
    }
  },
);
