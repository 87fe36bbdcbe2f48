/**
 * Keeps the archives of caches: the one part of the system that reads and writes their bytes. Which there are stands in entries,
 * which the projector writes from committed successes; what is stored here is seen by nobody before that.
 *
 *  CACHEKEEPER-1 A runner stores only in the scope that the run's owner says its attempt may write, and reads only in those it may read.
 *  CACHEKEEPER-2 What is missing or damaged is not there: its entry goes, and who looked for it goes without.
 *  CACHEKEEPER-3 Where a key may keep so much, room is made before more is stored: what was not used for longest goes first.
 *  CACHEKEEPER-4 Archives that lie here and have no entry yet are bounded by key (UNSEALED-2).
 */
import {
  type BeginCacheAnswer,
  type BeginCacheRequest,
  type ByAttempt,
  type DeleteCacheAnswer,
  type DeleteCacheRequest,
  type DropCacheRequest,
  type FindCacheAnswer,
  type FindCacheRequest,
  type GetCacheRequest,
  type ListCachesAnswer,
  type ListCachesRequest,
  type OpenUploadAnswer,
  type OpenUploadRequest,
  type PartAnswer,
  type PutRequest,
} from '@penstock/artifacts';
import { machineTime, type Time } from '@penstock/async';
import type { Bus, LivingAttempt } from '@penstock/bus';
import { BadUserInput, Forbidden, QuotaExceeded } from '@penstock/errors';
import type { ObjectStore } from '@penstock/object-store';
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import type { CacheScope } from '@penstock/run';
import { cacheScopeId, StoreUnavailable, type CacheEntries, type CacheEntry } from '@penstock/store';
import { Contents } from '../artifacts/contents.ts';
import type { DirectDoor } from '../artifacts/direct-door.ts';
import type { Grants } from '../artifacts/grants.ts';
import { decoded, type IncomingUploads } from '../artifacts/incoming.ts';
import { Unsealed } from '../artifacts/unsealed.ts';
import { asUnavailable } from '../catalogue/uploads.ts';
import { DamageChecks } from './damage-checks.ts';
import { sweepCaches, type SweptCaches } from './cache-sweep.ts';

export interface CacheKeeperOptions {
  readonly bus: Bus;
  readonly entries: CacheEntries;
  readonly objects: ObjectStore;
  readonly grants: Pick<Grants, 'of'>;
  readonly incoming: IncomingUploads;
  /** For those who can read straight. */
  readonly door?: Pick<DirectDoor, 'toGet'> | undefined;
  readonly now: () => number;
  /** Default: the machine's. */
  readonly time?: Pick<Time, 'bootNow'> | undefined;
}

interface Turn {
  readonly runner: string;
  readonly by: ByAttempt;
  readonly until: number;
}

/** Who has begun to store a key is waited for no longer. */
const STORING_MS_MAX = 10 * 60_000;
const STORING_MAX = 1_000;
/** CACHEKEEPER-4: each is looked at where a key has too many. */
const UNSEALED_MAX = 1_000;
/** In one answer. */
const LISTED_MAX = 1_000;
/** Where a storage has lost its archives, their entries are read once for so many that are missing. */
const LOOKED_AT_ONCE = 100;
/** Of one archive, whatever its tier. */
const ARCHIVE_BYTES_MAX = 20 * 1024 ** 3;

export class CacheKeeper {
  readonly #options: CacheKeeperOptions;
  readonly #contents: Contents;
  readonly #damage: DamageChecks;
  readonly #time: Pick<Time, 'bootNow'>;
  /** CACHEKEEPER-4, by scope and hash. */
  readonly #unsealed: Unsealed;
  /** By scope and key: whose attempt has begun to store it, and until when that is believed. */
  readonly #storing = new Map<string, Turn>();

  constructor(options: CacheKeeperOptions) {
    this.#options = options;
    this.#time = options.time ?? machineTime;
    this.#contents = new Contents(options.objects, 'caches/', options.door);
    this.#unsealed = new Unsealed({
      ...options,
      groupsMax: UNSEALED_MAX,
      sealedOf: (key, archives) => orUnavailable(this.#sealedOf(key, [...archives.keys()])),
    });
    this.#damage = new DamageChecks({
      head: ({ scope, sha256 }) => this.#contents.head(cacheScopeId(scope), sha256),
      isWhole: ({ scope, sha256 }) => this.#contents.isWhole(cacheScopeId(scope), sha256),
      remove: (entry) => this.#remove(entry),
      time: this.#time,
    });
  }

  async find(runner: string, request: FindCacheRequest): Promise<FindCacheAnswer> {
    const { read } = await this.#scopes(runner, request);
    const key = checkedKey(request.key);
    const prefixes = request.restore.slice(0, PIPELINE_LIMITS.restoreMax).map(checkedKey);
    const entry = await orUnavailable(this.#found(read, key, prefixes));
    if (entry === null) return { found: null };
    const { id, scope, sha256, bytes } = entry;
    await orUnavailable(this.#options.entries.used(id, this.#options.now()));
    return { found: { id, scope: cacheScopeId(scope), key: entry.key, sha256, sizeBytes: bytes } };
  }

  async begin(runner: string, request: BeginCacheRequest): Promise<BeginCacheAnswer> {
    const attempt = await this.#options.grants.of(runner, request);
    const scope = writable(attempt);
    const key = checkedKey(request.key);
    checkSize(request.sizeBytes);
    const entry = await orUnavailable(this.#options.entries.find(scope, key));
    if (entry !== null && (await this.#isThere(entry))) return { wanted: false };
    await this.#contents.checkRoom();
    if (!(await this.#takeTurn(`${cacheScopeId(scope)} ${key}`, runner, request))) return { wanted: false };
    await this.#makeRoom(attempt, request.sizeBytes);
    return { wanted: true };
  }

  async put(runner: string, request: PutRequest): Promise<void> {
    const attempt = await this.#options.grants.of(runner, request);
    const scope = cacheScopeId(writable(attempt));
    const { sha256, data } = request;
    const bytes = decoded(data);
    await this.#contents.putWhole(scope, sha256, bytes, (work) =>
      this.#unsealed.store(attempt, `${scope}/${sha256}`, bytes.length, work),
    );
  }

  async open(runner: string, request: OpenUploadRequest): Promise<OpenUploadAnswer> {
    const attempt = await this.#options.grants.of(runner, request);
    const scope = cacheScopeId(writable(attempt));
    const { sha256, sizeBytes } = request;
    checkSize(sizeBytes);
    if (attempt.artifactBytes !== undefined && sizeBytes > attempt.artifactBytes) throw tooLarge(attempt.artifactBytes);
    if (await this.#contents.has(scope, sha256)) return { upload: null };
    await this.#contents.checkRoom();
    const archive = `${scope}/${sha256}`;
    await this.#unsealed.check(attempt, archive, sizeBytes);
    const { bus, incoming } = this.#options;
    const whose = { runner, tenant: attempt.tenant };
    return incoming.listen(bus, whose, request, (bytes) =>
      this.#unsealed.store(attempt, archive, sizeBytes, () => this.#contents.put(scope, sha256, bytes, sizeBytes)),
    );
  }

  async get(runner: string, request: GetCacheRequest): Promise<PartAnswer> {
    const { read, tenant } = await this.#scopes(runner, request);
    if (!read.some((scope) => cacheScopeId(scope) === request.scope))
      throw new Forbidden('This attempt does not read caches of that scope.');
    return await this.#contents.part(request.scope, request, tenant);
  }

  /** CACHEKEEPER-2. What a runner says of it is looked at, within bounds: it is not the runner's to remove. */
  async drop(runner: string, request: DropCacheRequest): Promise<void> {
    const { read } = await this.#scopes(runner, request);
    const entry = await orUnavailable(this.#options.entries.get(request.id));
    if (entry === null || !read.some((scope) => cacheScopeId(scope) === cacheScopeId(entry.scope))) return;
    await this.#damage.look(entry);
  }

  async list({ tenant, repository }: ListCachesRequest): Promise<ListCachesAnswer> {
    // Half a surrogate pair is in no name, and no store takes it.
    if (repository?.isWellFormed() === false) return { caches: [] };
    const entries = await orUnavailable(this.#options.entries.ofTenant(tenant, LISTED_MAX, repository));
    return {
      caches: entries
        .toSorted((a, b) => b.usedAt - a.usedAt)
        .map(({ id, scope, key, bytes, createdAt, usedAt }) => ({
          id,
          repository: scope.repository,
          pipeline: scope.pipeline,
          ref: scope.ref,
          key,
          sizeBytes: bytes,
          createdAt,
          usedAt,
        })),
    };
  }

  async delete({ tenant, id }: DeleteCacheRequest): Promise<DeleteCacheAnswer> {
    const entry = await orUnavailable(this.#options.entries.get(id));
    if (entry === null || entry.scope.tenant !== tenant) return { deleted: false };
    return { deleted: await this.#remove(entry) };
  }

  /** See `cache-sweep.ts`. */
  async sweep(olderThanMs?: number): Promise<SweptCaches> {
    const { objects, entries, now } = this.#options;
    const parts = { objects, entries, unsealed: this.#unsealed, remove: (entry: CacheEntry) => this.#remove(entry) };
    return await sweepCaches(parts, now(), olderThanMs);
  }

  /** Those that an entry of this key stands for, if they are no larger than it says, and those that are gone. */
  async #sealedOf(key: string, archives: readonly string[]): Promise<Map<string, number>> {
    const named = new Map<string, number>();
    for await (const { scope, sha256, bytes } of this.#options.entries.ofOwner(key))
      named.set(`${cacheScopeId(scope)}/${sha256}`, bytes);
    const sealed = new Map<string, number>();
    for (const archive of archives) {
      const [scope = '', sha256 = ''] = archive.split('/');
      const head = await this.#contents.head(scope, sha256);
      if (head === null || head.size <= (named.get(archive) ?? -1)) sealed.set(archive, Infinity);
    }
    return sealed;
  }

  async #scopes(
    runner: string,
    request: Parameters<Grants['of']>[1],
  ): Promise<NonNullable<LivingAttempt['caches']> & Pick<LivingAttempt, 'tenant'>> {
    const { caches = { write: null, read: [] }, tenant } = await this.#options.grants.of(runner, request);
    return { ...caches, tenant };
  }

  /** The exact key in any scope before the beginning of one in the first. */
  async #found(scopes: readonly CacheScope[], key: string, prefixes: readonly string[]): Promise<CacheEntry | null> {
    const { entries } = this.#options;
    const newest = (scope: CacheScope, prefix: string): Promise<CacheEntry[]> =>
      entries.newest(scope, prefix, LOOKED_AT_ONCE);
    for (const scope of scopes) {
      const entry = await entries.find(scope, key);
      if (entry !== null && (await this.#isThere(entry))) return entry;
    }
    for (const scope of scopes)
      for (const prefix of prefixes)
        for (let fitting = await newest(scope, prefix); fitting.length > 0; fitting = await newest(scope, prefix))
          // The entries of those that are missing are gone by the next look.
          for (const entry of fitting) if (await this.#isThere(entry)) return entry;
    return null;
  }

  /** CACHEKEEPER-2 */
  async #isThere(entry: CacheEntry): Promise<boolean> {
    if (await this.#contents.has(cacheScopeId(entry.scope), entry.sha256)) return true;
    await orUnavailable(this.#options.entries.remove(entry));
    return false;
  }

  /** The entry first: nobody is led to what is not there any more. */
  async #remove(entry: CacheEntry): Promise<boolean> {
    const { entries } = this.#options;
    const scope = cacheScopeId(entry.scope);
    const isRemoved = await orUnavailable(entries.remove(entry));
    if (!(await orUnavailable(entries.isNamed(scope, entry.sha256)))) await this.#contents.remove(scope, entry.sha256);
    return isRemoved;
  }

  async #takeTurn(what: string, runner: string, { ref, partition }: ByAttempt): Promise<boolean> {
    const known = this.#storing.get(what);
    if (known !== undefined && known.until > this.#time.bootNow() && (await this.#isStoring(known, ref))) return false;
    this.#storing.delete(what);
    this.#storing.set(what, { runner, by: { ref, partition }, until: this.#time.bootNow() + STORING_MS_MAX });
    for (const oldest of this.#storing.keys()) {
      if (this.#storing.size <= STORING_MAX) break;
      this.#storing.delete(oldest);
    }
    return true;
  }

  /** Beside this attempt, which is the only one of its stage: one that was killed in the middle stores nothing any more. */
  async #isStoring({ runner, by }: Turn, { runId, stage }: ByAttempt['ref']): Promise<boolean> {
    if (by.ref.runId === runId && by.ref.stage === stage) return false;
    try {
      await this.#options.grants.of(runner, by);
      return true;
    } catch (error) {
      // Whether it lives is not known while its owner is away.
      return !(error instanceof Forbidden);
    }
  }

  /** CACHEKEEPER-3 */
  async #makeRoom({ key, artifactBytes }: LivingAttempt, bytes: number): Promise<void> {
    if (artifactBytes === undefined) return;
    if (bytes > artifactBytes) throw tooLarge(artifactBytes);
    const kept = await orUnavailable(Array.fromAsync(this.#options.entries.ofOwner(key)));
    let sum = kept.reduce((all, entry) => all + entry.bytes, bytes);
    for (const entry of kept) {
      if (sum <= artifactBytes) return;
      await this.#remove(entry);
      sum -= entry.bytes;
    }
  }
}

function writable({ caches }: LivingAttempt): CacheScope {
  if (caches == null || caches.write === null) throw new Forbidden('This run writes no caches: it is not trusted.');
  return caches.write;
}

function checkedKey(key: unknown): string {
  if (typeof key !== 'string' || key === '' || key.length > PIPELINE_LIMITS.cacheKeyLengthMax || !key.isWellFormed())
    throw new BadUserInput(`A key of a cache is a text of 1 to ${PIPELINE_LIMITS.cacheKeyLengthMax} characters.`);
  return key;
}

function checkSize(sizeBytes: number): void {
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes <= 0 || sizeBytes > ARCHIVE_BYTES_MAX)
    throw new BadUserInput(`'sizeBytes' is to be a size, ${ARCHIVE_BYTES_MAX} at most.`);
}

function tooLarge(bytesMax: number): QuotaExceeded {
  return new QuotaExceeded(`All caches together may have ${(bytesMax / 1_000_000).toFixed(1)} MB.`);
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof StoreUnavailable ? asUnavailable(error) : error;
  }
}
