import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ObjectsUnavailable } from '../src/errors.ts';
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
