import { openMongoStore } from '../src/index.ts';
import { withMongoServer } from './mongodb/index.ts';
import { storeSuite } from '../src/testing/store-suite.ts';

await withMongoServer("the store's contract on MongoDB", (server) => {
  storeSuite(
    server.name,
    async () => {
      const database = server.freshDatabase();
      return {
        open: (collections) => openMongoStore({ url: database.url, collections }),
        remove: () => database.drop(),
      };
    },
    { concurrency: server.isAtomic, sortsByCodePoints: server.sortsByCodePoints },
  );
});
