/** The runs repository's own tests once more, with MongoDB in the place of the SQLite file that they open. */
import { vi } from 'vitest';
import type * as store from '../src/index.ts';
import { withMongoServer, type TestMongoServer } from './mongodb/index.ts';

const place = vi.hoisted(() => ({ server: undefined as TestMongoServer | undefined }));

vi.mock('../src/index.ts', async (importOriginal) => {
  const original = await importOriginal<typeof store>();
  return {
    ...original,
    openSqliteStore: async ({ collections }: store.SqliteStoreOptions) => {
      const database = place.server?.freshDatabase();
      if (database === undefined) throw new Error('no server');
      const opened = await original.openMongoStore({ url: database.url, collections });
      return {
        collection: opened.collection.bind(opened),
        ping: opened.ping.bind(opened),
        close: () => opened.close().then(() => database.drop()),
      };
    },
  };
});

await withMongoServer("the runs repository's tests on MongoDB", (server) => {
  place.server = server;
});
if (place.server !== undefined) {
  await import('./runs-repository.test.ts');
  await import('./deleted-runs.test.ts');
  await import('./damaged-runs.test.ts');
  await import('./damaged-schedules.test.ts');
  await import('./hook-documents.test.ts');
  await import('./log-archive.test.ts');
}
