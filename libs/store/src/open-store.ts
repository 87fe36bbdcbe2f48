/** The store that an address names. */
import { StoreUsageError } from './errors.ts';
import { openMongoStore } from './mongodb/open-mongo-store.ts';
import type { CollectionSpec, DocumentStore } from './port.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';

/** As `SERVICE_STORE_URL` gives it (`libs/config`). */
export type StoreAddress = { readonly kind: 'sqlite'; readonly path: string } | { readonly kind: 'mongodb'; readonly url: string };

/** Rejects with the errors of the store's port. Undefined: there is no default for services that run apart. */
export async function openStore(address: StoreAddress | undefined, collections: readonly CollectionSpec[]): Promise<DocumentStore> {
  if (address === undefined) throw new StoreUsageError('of this service', 'SERVICE_STORE_URL names none');
  if (address.kind === 'sqlite') return await openSqliteStore({ path: address.path, collections });
  return await openMongoStore({ url: address.url, collections });
}
