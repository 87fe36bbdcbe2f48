/** Caches on a disk that other stages write to. */
import { closeSync, mkdirSync, openSync, readdirSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packCache, unpackCache } from '@penstock/artifacts';
import { canMount, SmallDisk } from '@penstock/testkit';
import { expect, it } from 'vitest';

const MIB = 1024 ** 2;

it.runIf(canMount('what the restoring of a cache leaves free of its disk'))(
  'UNPACKER-3: one that holds more than the disk has is not restored, and nothing of it is left there',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'penstock-cache-room-'));
    const disk = new SmallDisk(400 * MIB);
    try {
      // Of nothing, as it is packed: a megabyte stands for gigabytes.
      writeFileSync(join(folder, 'large'), '');
      truncateSync(join(folder, 'large'), 600 * MIB);
      const archive = openSync(join(folder, 'archive'), 'w+');
      await packCache({ workspace: folder, paths: ['large'] }, (bytes) => void writeSync(archive, bytes));
      const workspace = join(disk.folder, 'workspace');
      mkdirSync(workspace);
      await expect(unpackCache({ workspace, paths: ['large'] }, archive, true)).rejects.toThrow('left to others');
      closeSync(archive);
      expect(readdirSync(workspace)).toEqual([]);
    } finally {
      disk.remove();
      await rm(folder, { recursive: true });
    }
  },
);
