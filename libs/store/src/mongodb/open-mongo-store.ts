/** The store that an address names. The driver is loaded only where it is used: it takes 0.15 s and 37 MB to load. */
import { StoreUsageError } from '../errors.ts';
import type { CollectionSpec, DocumentStore } from '../port.ts';
import { openSqliteStore } from '../sqlite/sqlite-store.ts';
import type { MongoStoreOptions } from './mongo-store.ts';

export type { MongoStoreOptions } from './mongo-store.ts';

export interface StoreUrlOptions {
  readonly collections: readonly CollectionSpec[];
  /** Of each call; default: the adapter's, 10 s. */
  readonly deadlineMs?: number | undefined;
}

/**
 * `sqlite:<path>` or `mongodb://…` (`mongodb+srv://…` too), as SERVICE_STORE_URL has it. Rejects as the adapters do; an
 * address of no known form is a StoreUsageError, which does not quote it.
 */
export async function openStoreUrl(url: string, options: StoreUrlOptions): Promise<DocumentStore> {
  if (/^mongodb(\+srv)?:/.test(url)) return openMongoStore({ url, ...options });
  const path = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (path === undefined) throw new StoreUsageError('(unreadable address)', "the address of the store has to be 'sqlite:<path>' or 'mongodb://…'");
  return openSqliteStore({ path, ...options });
}

/** See `mongo-store.ts`. */
export async function openMongoStore(options: MongoStoreOptions): Promise<DocumentStore> {
  const adapter = await import('./mongo-store.ts');
  return adapter.openMongoStore(options);
}
