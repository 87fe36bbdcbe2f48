/** The store of a cluster: one database of a MongoDB server, behind the driver (docs/adr/0008-mongodb.md says why it is so). */
import { checkSpec } from '../checks.ts';
import { StoreUsageError } from '../errors.ts';
import type { Collection, CollectionSpec, DocumentStore } from '../port.ts';
import { readAddress } from './address.ts';
import { MongoCollection } from './mongo-collection.ts';
import { MongoLink } from './mongo-link.ts';
import { ensureSchema } from './schema.ts';
import { checkServer } from './server-floor.ts';

export interface MongoStoreOptions {
  /** `mongodb://user:password@host:port,…/database?options` as MongoDB documents it; the concerns for reads and writes in it are not used. */
  readonly url: string;
  /** Default: the one in the address, else `penstock`. Made with its first document. */
  readonly database?: string | undefined;
  readonly collections: readonly CollectionSpec[];
  /** Of each call; default 10 s, as long as a replica set takes to agree on another primary. */
  readonly deadlineMs?: number | undefined;
}

const DEADLINE_MS = 10_000;

/**
 * Rejects with StoreUnavailable (no server answers, or it refuses the user), StoreIncompatible (too old a server, another
 * program's database, a newer release's) or StoreUsageError (an address that cannot be read); none shows credentials.
 */
export async function openMongoStore(options: MongoStoreOptions): Promise<DocumentStore> {
  const { url, collections } = options;
  const address = readAddress(url, options.database);
  for (const spec of collections) checkSpec(address.label, spec);
  const names = collections.map(({ name }) => name);
  if (new Set(names).size !== names.length)
    throw new StoreUsageError(address.label, `a collection is declared twice: ${names.join(', ')}`);
  const link = new MongoLink(url, address, options.deadlineMs ?? DEADLINE_MS);
  try {
    link.setReadConcern(await link.call(checkServer));
    await ensureSchema(link, collections);
    return new MongoStore(link, new Map(collections.map((spec) => [spec.name, spec])));
  } catch (error) {
    await link.close();
    throw error;
  }
}

class MongoStore implements DocumentStore {
  readonly #link: MongoLink;
  readonly #declared: ReadonlyMap<string, CollectionSpec>;

  constructor(link: MongoLink, declared: ReadonlyMap<string, CollectionSpec>) {
    this.#link = link;
    this.#declared = declared;
  }

  collection<S extends CollectionSpec>(spec: S): Collection<S> {
    if (this.#declared.get(spec.name) !== spec)
      throw new StoreUsageError(
        this.#link.label,
        `the collection '${spec.name}' was not declared when the store was opened`,
      );
    return new MongoCollection(this.#link, spec);
  }

  async ping(): Promise<void> {
    await this.#link.call((call) => call.retry(() => call.manage({ ping: 1 })));
  }

  close(): Promise<void> {
    return this.#link.close();
  }
}
