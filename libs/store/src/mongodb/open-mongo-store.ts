/** The driver is loaded only where it is used: it takes 0.15 s and 37 MB to load. */
import type { DocumentStore } from '../port.ts';
import type { MongoStoreOptions } from './mongo-store.ts';

export type { MongoStoreOptions } from './mongo-store.ts';

/** See `mongo-store.ts`. */
export async function openMongoStore(options: MongoStoreOptions): Promise<DocumentStore> {
  const adapter = await import('./mongo-store.ts');
  return adapter.openMongoStore(options);
}
