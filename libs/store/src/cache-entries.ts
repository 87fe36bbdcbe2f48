/**
 * What later runs find of a stage's files: for each scope and key the archive that was first told of. Entries are written by the
 * projector, from committed successes alone, and read by who moves the archives.
 *
 *  CACHES-1 An entry never changes what it stands for: of several successes that name one key, the first that is written stands.
 *  CACHES-2 It goes by its hash: who has found an archive missing removes no entry that stands for another by now.
 */
import { createHash, randomInt } from 'node:crypto';
import type { CacheScope } from '@penstock/run';
import type { Collection, CollectionSpec, DocumentOf, DocumentStore } from './port.ts';

export const cachesSpec = {
  name: 'cache_entries',
  fields: {
    /** `cacheScopeId` */
    scope: 'string',
    tenant: 'string',
    /** Whose limit it counts against. */
    key: 'string',
    repository: 'string',
    pipeline: 'string',
    ref: 'string',
    cacheKey: 'string',
    sha256: 'string',
    bytes: 'integer',
    /** Of all archives of the key, as the run knew it; -1: any number. */
    limitBytes: 'integer',
    /** Milliseconds since 1970. */
    createdAt: 'integer',
    usedAt: 'integer',
    /** Tells uses of one millisecond apart. */
    salt: 'integer',
  },
  parts: [],
  indexes: [
    ['scope', 'cacheKey'],
    ['scope', 'sha256'],
    ['tenant'],
    ['tenant', 'repository'],
    ['key', 'usedAt'],
    ['usedAt'],
  ],
  version: ['usedAt', 'salt'],
} as const satisfies CollectionSpec;

export interface CacheEntry {
  readonly id: string;
  readonly scope: CacheScope;
  /** Whose limit it counts against. */
  readonly owner: string;
  readonly key: string;
  readonly sha256: string;
  readonly bytes: number;
  /** Null: any number. */
  readonly limitBytes: number | null;
  readonly createdAt: number;
  readonly usedAt: number;
}

export type NewCacheEntry = Omit<CacheEntry, 'id' | 'usedAt'>;

const PAGE = 500;
/** Looked at for the newest of those that begin alike. */
const ALIKE_MAX = 10_000;
const SALT_MAX = 2 ** 47;

/** The same for the same scope, and a plain name: 64 characters of hex. */
export function cacheScopeId({ tenant, repository, pipeline, ref }: CacheScope): string {
  return sumOf([tenant, repository, pipeline, ref]);
}

function entryId(scope: CacheScope, key: string): string {
  return sumOf([cacheScopeId(scope), key]);
}

function sumOf(texts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(texts)).digest('hex');
}

export class CacheEntries {
  readonly #entries: Collection<typeof cachesSpec>;

  /** The store has to be opened with `runCollections` among its collections. */
  constructor(store: DocumentStore) {
    this.#entries = store.collection(cachesSpec);
  }

  /** CACHES-1. Any number. */
  async add(entries: readonly NewCacheEntry[]): Promise<void> {
    for (const { scope, owner, key, sha256, bytes, limitBytes, createdAt } of entries)
      await this.#entries.insert({
        id: entryId(scope, key),
        scope: cacheScopeId(scope),
        tenant: scope.tenant,
        key: owner,
        repository: scope.repository,
        pipeline: scope.pipeline,
        ref: scope.ref,
        cacheKey: key,
        sha256,
        bytes,
        limitBytes: limitBytes ?? -1,
        createdAt,
        usedAt: createdAt,
        salt: randomInt(SALT_MAX),
      });
  }

  async find(scope: CacheScope, key: string): Promise<CacheEntry | null> {
    const row = await this.#entries.get(entryId(scope, key));
    return row === null ? null : entryOf(row);
  }

  /** Those whose key begins so, the newest first; `count` at most. */
  async newest(scope: CacheScope, prefix: string, count: number): Promise<CacheEntry[]> {
    let newest: DocumentOf<typeof cachesSpec>[] = [];
    let seen = 0;
    for (let after: { readonly id: string; readonly value: string } | undefined; seen < ALIKE_MAX;) {
      const page = await this.#entries.list({
        where: { scope: cacheScopeId(scope), cacheKey: { gte: prefix } },
        orderBy: { field: 'cacheKey', direction: 'asc' },
        limit: PAGE,
        after,
      });
      const alike = page.filter(({ cacheKey }) => cacheKey.startsWith(prefix));
      newest = [...newest, ...alike].sort((a, b) => b.createdAt - a.createdAt).slice(0, count);
      seen += page.length;
      const last = page.at(-1);
      if (alike.length < PAGE || last === undefined) break;
      after = { id: last.id, value: last.cacheKey };
    }
    return newest.map(entryOf);
  }

  async get(id: string): Promise<CacheEntry | null> {
    const row = await this.#entries.get(id);
    return row === null ? null : entryOf(row);
  }

  /** It was restored at this time. */
  async used(id: string, at: number): Promise<void> {
    const row = await this.#entries.get(id);
    if (row !== null && row.usedAt < at) await this.#entries.replaceNewer([{ ...row, usedAt: at }]);
  }

  /** CACHES-2. Whether it was there. */
  async remove({ id, sha256 }: Pick<CacheEntry, 'id' | 'sha256'>): Promise<boolean> {
    return await this.#entries.delete(id, { sha256 });
  }

  /** Of a tenant, by their ids; at most `limit`. */
  async ofTenant(tenant: string, limit: number, repository?: string): Promise<CacheEntry[]> {
    const entries: CacheEntry[] = [];
    for (let after: { readonly id: string } | undefined; entries.length < limit;) {
      const page = await this.#entries.list({
        where: { tenant, ...(repository === undefined ? {} : { repository }) },
        limit: Math.min(PAGE, limit - entries.length),
        after,
      });
      entries.push(...page.map(entryOf));
      if (page.length < PAGE) break;
      after = page.at(-1);
    }
    return entries;
  }

  /** Of whose limit this is, the least recently used first. */
  async *ofOwner(owner: string): AsyncGenerator<CacheEntry, void> {
    for (let after: { readonly id: string; readonly value: number } | undefined; ;) {
      const page = await this.#entries.list({
        where: { key: owner },
        orderBy: { field: 'usedAt', direction: 'asc' },
        limit: PAGE,
        after,
      });
      for (const row of page) yield entryOf(row);
      const last = page.at(-1);
      if (page.length < PAGE || last === undefined) return;
      after = { id: last.id, value: last.usedAt };
    }
  }

  /** All there are, those not used for longest first. */
  async *all(): AsyncGenerator<CacheEntry, void> {
    for (let after: { readonly id: string; readonly value: number } | undefined; ;) {
      const page = await this.#entries.list({
        where: { usedAt: { gte: 0 } },
        orderBy: { field: 'usedAt', direction: 'asc' },
        limit: PAGE,
        after,
      });
      for (const row of page) yield entryOf(row);
      const last = page.at(-1);
      if (page.length < PAGE || last === undefined) return;
      after = { id: last.id, value: last.usedAt };
    }
  }

  /** Whether an entry of this scope stands for the archive. */
  async isNamed(scopeId: string, sha256: string): Promise<boolean> {
    return (await this.#entries.list({ where: { scope: scopeId, sha256 }, limit: 1 })).length > 0;
  }

  /** The archives that entries of this scope stand for, and how large they are said to be. */
  async namedIn(scopeId: string): Promise<Map<string, number>> {
    const named = new Map<string, number>();
    for (let after: { readonly id: string; readonly value: string } | undefined; ;) {
      const page = await this.#entries.list({
        where: { scope: scopeId },
        orderBy: { field: 'cacheKey', direction: 'asc' },
        limit: PAGE,
        after,
      });
      for (const { sha256, bytes } of page) named.set(sha256, Math.max(bytes, named.get(sha256) ?? 0));
      const last = page.at(-1);
      if (page.length < PAGE || last === undefined) return named;
      after = { id: last.id, value: last.cacheKey };
    }
  }
}

function entryOf(row: DocumentOf<typeof cachesSpec>): CacheEntry {
  const { id, tenant, repository, pipeline, ref, key, cacheKey, sha256, bytes, limitBytes, createdAt, usedAt } = row;
  return {
    id,
    scope: { tenant, repository, pipeline, ref },
    owner: key,
    key: cacheKey,
    sha256,
    bytes,
    limitBytes: limitBytes < 0 ? null : limitBytes,
    createdAt,
    usedAt,
  };
}
