/** The store that an address names. */
import { StoreUsageError } from './errors.ts';
import { openMongoStore } from './mongodb/open-mongo-store.ts';
import type { CollectionSpec, DocumentStore } from './port.ts';
import { openSqliteStore } from './sqlite/sqlite-store.ts';

/** As `SERVICE_STORE_URL` gives it (`libs/config`). */
export type StoreAddress =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'mongodb'; readonly url: string };

/**
 * Rejects as the adapters do. Undefined: there is no default for services that run apart. `deadlineMs` is of each call;
 * default: the adapter's, 10 s.
 */
export async function openStore(
  address: StoreAddress | undefined,
  collections: readonly CollectionSpec[],
  deadlineMs?: number,
): Promise<DocumentStore> {
  if (address === undefined)
    throw new StoreUsageError(
      'of this service',
      'SERVICE_STORE_URL is not set: name the database, as in mongodb://host/name',
    );
  const options = { collections, ...(deadlineMs === undefined ? {} : { deadlineMs }) };
  return address.kind === 'sqlite'
    ? await openSqliteStore({ path: address.path, ...options })
    : await openMongoStore({ url: address.url, ...options });
}

/**
 * `sqlite:<path>` or `mongodb://…` (`mongodb+srv://…` too). An address of no known form is a StoreUsageError, which does
 * not quote it.
 */
export function storeAddressOf(url: string): StoreAddress {
  if (/^mongodb(\+srv)?:/.test(url)) return { kind: 'mongodb', url };
  const path = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (path === undefined)
    throw new StoreUsageError(
      '(unreadable address)',
      "the address of the store has to be 'sqlite:<path>' or 'mongodb://…'",
    );
  return { kind: 'sqlite', path };
}
