import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteStore } from '../src/index.ts';
import { storeSuite } from '../src/testing/store-suite.ts';

storeSuite(
  'SQLite',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'penstock-store-'));
    return {
      open: (collections) => openSqliteStore({ path: join(folder, 'store.db'), collections, synchronous: 'normal' }),
      remove: () => rm(folder, { recursive: true }),
    };
  },
  { concurrency: true },
);
