/**
 * The registry, complete but for its doors: what `calls.ts` answers on the bus and `routes.ts` over HTTP. It owns the index in
 * memory, the counting of downloads and the sweeping.
 *
 * REGISTRY-1 What is asked for by id, range or hash is read from the store; only searches and suggestions come from memory.
 * REGISTRY-2 A change of this registry's own is in its index before it is answered; the others hear of it (`announce`).
 */
import { Readable } from 'node:stream';
import { BoundedQueue } from '@penstock/async';
import type { Tiers } from '@penstock/config';
import {
  PACKAGE_PART_BYTES,
  type ExtensionRequest,
  type ExtensionView,
  type ForgetTenantAnswer,
  type ForgetTenantRequest,
  type PackagePart,
  type PackageRequest,
  type PublishAnswer,
  type PublishRequest,
  type RegistryCaller,
  type ResolveAnswer,
  type ResolveRequest,
  type SearchRequest,
  type VersionsRequest,
  type VersionView,
  type YankRequest,
} from '@penstock/extension';
import { BadUserInput, NotFound } from '@penstock/errors';
import type { ObjectStore } from '@penstock/object-store';
import type { DocumentStore } from '@penstock/store';
import type { ByteRange } from '@penstock/http';
import { Catalogue } from '../catalogue/catalogue.ts';
import { Downloads } from '../catalogue/downloads.ts';
import { PARTS_AT_ONCE } from '../catalogue/parts-at-once.ts';
import { Publisher, type PublishStep } from './publish.ts';
import {
  byPrecedence,
  extensionView,
  versionView,
  type ExtensionRecord,
  type VersionRecord,
} from '../catalogue/records.ts';
import { Resolver } from './resolve.ts';
import { requirePublisher } from './rights.ts';
import { QUERY_LENGTH_MAX, SearchIndex } from '../search/search-index.ts';
import { SigningKeys } from '../catalogue/signatures.ts';
import { sweep, type Swept } from './sweep.ts';
import { PackageBytes } from '../catalogue/package-bytes.ts';
import { asUnavailable, Uploads, type Upload } from '../catalogue/uploads.ts';
import type { Log } from '@penstock/telemetry/log';

export interface RegistryOptions {
  /** Opened with `registryCollections` among its collections. */
  readonly store: DocumentStore;
  readonly objects: ObjectStore;
  readonly tiers: Tiers;
  /** `SERVICE_EXTENSION_POLICY` */
  readonly policy: 'any' | 'signed';
  readonly log: Log;
  /** For the other registries. */
  readonly announce?: ((news: RegistryNews) => void) | undefined;
  /** Milliseconds since 1970; default the system clock. */
  readonly now?: (() => number) | undefined;
  /** The same by a clock that all registries share; default `now`. */
  readonly sharedNow?: (() => Promise<number>) | undefined;
  /** See `PublisherOptions`. */
  readonly afterStep?: ((step: PublishStep) => Promise<void> | void) | undefined;
}

/** What one registry tells the others. */
export interface RegistryNews {
  /** Extensions that have changed in the store, by key. */
  readonly keys?: readonly string[] | undefined;
  readonly downloads?: readonly (readonly [key: string, count: number])[] | undefined;
}

export interface FoundPackage {
  readonly size: number;
  readonly isPublic: boolean;
  /** All of it counts as a download, and ends only if the bytes have the hash. */
  read(range?: ByteRange): Promise<Readable>;
}

const HASH = /^[0-9a-f]{64}$/;
const VERSIONS_LIMIT_MAX = 100;
const FORGOTTEN_AT_ONCE = 100;

export class Registry {
  readonly keys: SigningKeys;
  readonly #options: RegistryOptions;
  readonly #catalogue: Catalogue;
  readonly #uploads: Uploads;
  readonly #downloads: Downloads;
  readonly #index: SearchIndex;
  readonly #bytes = new PackageBytes();
  readonly #publisher: Publisher;
  readonly #resolver: Resolver;
  readonly #sharedNow: () => Promise<number>;
  readonly #parts = new BoundedQueue({ atOnce: PARTS_AT_ONCE });

  constructor(options: RegistryOptions) {
    const { store, objects, tiers, policy } = options;
    const now = options.now ?? Date.now;
    this.#options = { ...options, now };
    this.keys = new SigningKeys(store);
    this.#catalogue = new Catalogue(store);
    this.#sharedNow = options.sharedNow ?? (async () => now());
    this.#uploads = new Uploads(store, objects, this.#sharedNow);
    this.#downloads = new Downloads(store, {
      log: options.log,
      changed: (downloads) => {
        this.#index.reorder();
        options.announce?.({ downloads });
      },
    });
    this.#index = new SearchIndex((key) => this.#downloads.count(key));
    this.#publisher = new Publisher({
      catalogue: this.#catalogue,
      uploads: this.#uploads,
      keys: this.keys,
      bytes: this.#bytes,
      tiers,
      policy,
      now,
      sharedNow: this.#sharedNow,
      afterStep: options.afterStep,
      changed: (record) => {
        this.#put(record);
        options.announce?.({ keys: [record.key] });
      },
    });
    this.#resolver = new Resolver({ catalogue: this.#catalogue, index: this.#index, keys: this.keys, tiers, policy });
  }

  /** Reads everything that the index holds; again after messages may have been missed, also those that something is gone. */
  async load(): Promise<void> {
    await this.#downloads.load();
    const unseen = new Set(this.#index.keys());
    for await (const record of this.#catalogue.all()) {
      const standing = (await this.#catalogue.rekeyed(record)) ?? record;
      this.#put(standing);
      unseen.delete(standing.key);
    }
    // What was published behind the place that was read is there all the same.
    for (const key of unseen) if ((await this.#catalogue.read(key)) === null) this.#remove(key);
    this.#index.reorder();
  }

  /** What another registry has announced. */
  async learn({ keys = [], downloads = [] }: RegistryNews): Promise<void> {
    this.#downloads.learn(downloads);
    this.#index.reorder();
    for (const key of keys) {
      const record = await this.#catalogue.read(key);
      if (record === null) this.#remove(key);
      else this.#put(record);
    }
  }

  search({ caller, query = '', category, limit }: SearchRequest): ExtensionView[] {
    if (query.length > QUERY_LENGTH_MAX)
      throw new BadUserInput(`'query' is longer than ${QUERY_LENGTH_MAX} characters.`);
    return this.#index.search({ tenant: caller.tenant, query, category, limit });
  }

  async extension({ caller, id }: ExtensionRequest): Promise<ExtensionView | null> {
    const record = await this.#catalogue.visible(id, caller.tenant);
    return record === null ? null : extensionView(record, this.#downloads.count(record.key));
  }

  async versions({ caller, id, limit, texts }: VersionsRequest): Promise<VersionView[]> {
    const record = await this.#catalogue.visible(id, caller.tenant);
    if (record === null) return [];
    const versions = byPrecedence(record.versions).slice(0, Math.min(limit, VERSIONS_LIMIT_MAX));
    const known = texts ? await this.#catalogue.textsOf(versions) : new Map();
    return versions.map((version) => versionView(record.extensionId, version, known.get(version.contentId) ?? null));
  }

  /** The caller is asked for its rights before a byte is read. */
  async upload(caller: RegistryCaller, packageHash: string, bytes: AsyncIterable<Uint8Array>): Promise<Upload> {
    return await this.#uploads.receive(requirePublisher(caller, this.#options.tiers), packageHash, bytes);
  }

  publish(request: PublishRequest): Promise<PublishAnswer> {
    return this.#publisher.publish(request);
  }

  yank(request: YankRequest): Promise<VersionView> {
    return this.#publisher.yank(request);
  }

  resolve(request: ResolveRequest): Promise<ResolveAnswer> {
    return this.#resolver.resolve(request);
  }

  /** The tenant whose keys the caller may see and change. */
  keyOwner(caller: RegistryCaller): string {
    return requirePublisher(caller, this.#options.tiers);
  }

  /** Null: no version that the caller may see has this package. */
  async findPackage(caller: RegistryCaller, hash: string): Promise<FoundPackage | null> {
    const [found] = await this.#catalogue.visibleOfPackage(hash, caller.tenant);
    if (found === undefined) return null;
    const { record, version } = found;
    return {
      size: version.sizeBytes,
      isPublic: record.scope === '',
      read: async (range) => {
        const bytes = await this.#bytesOf(version, range);
        if (range === undefined) this.#noteDownload(record);
        return Readable.from(bytes, { objectMode: false });
      },
    };
  }

  /** What a tenant alone has; public extensions stay, others use them. To be asked again until there is nothing. */
  async forgetTenant({ tenant }: ForgetTenantRequest): Promise<ForgetTenantAnswer> {
    if (tenant === '') throw new BadUserInput("'tenant' is empty.");
    const keys = await this.#catalogue.removePrivate(tenant, FORGOTTEN_AT_ONCE);
    for (const key of keys) {
      this.#remove(key);
      await this.#downloads.forget(key);
    }
    if (keys.length > 0) this.#options.announce?.({ keys });
    return { extensions: keys.length, uploads: await this.#uploads.forgetAll(tenant) };
  }

  /** Serves runners, which were given the hash with a job. */
  packagePart(request: PackageRequest): Promise<PackagePart> {
    return this.#parts.run(() => this.#packagePart(request));
  }

  async #packagePart({ hash, offset }: PackageRequest): Promise<PackagePart> {
    // Asked by a stranger's machine: what is no text would be taken for a condition that all packages may fulfil.
    const found = typeof hash === 'string' && HASH.test(hash) ? await this.#catalogue.anyOfPackage(hash) : null;
    if (found === null) throw new NotFound(`No version has the package ${hash}.`);
    if (!Number.isSafeInteger(offset) || offset < 0) throw new BadUserInput("'offset' is to be a number of bytes.");
    const pieces = await Array.fromAsync(
      await this.#bytesOf(found.version, { from: offset, to: offset + PACKAGE_PART_BYTES }),
    );
    if (offset === 0) this.#noteDownload(found.record);
    return { data: Buffer.concat(pieces).toString('base64'), size: found.version.sizeBytes };
  }

  /** See `sweep.ts`. */
  async sweep(): Promise<Swept> {
    const swept = await sweep(
      { catalogue: this.#catalogue, uploads: this.#uploads, objects: this.#options.objects },
      // What this machine has stored may bear its own time.
      Math.min(await this.#sharedNow(), (this.#options.now ?? Date.now)()),
    );
    if (swept.objects + swept.texts > 0)
      this.#options.log.info({ ...swept }, 'removed what unfinished publications had left');
    return swept;
  }

  /** Writes the downloads that are not counted yet. */
  close(): Promise<void> {
    return this.#downloads.flush();
  }

  #put(record: ExtensionRecord): void {
    this.#index.put(record);
    this.#bytes.put(record);
  }

  #remove(key: string): void {
    this.#index.remove(key);
    this.#bytes.remove(key);
  }

  #noteDownload(record: ExtensionRecord): void {
    this.#downloads.note(record.key);
  }

  async #bytesOf(
    { objectKey, packageHash }: VersionRecord,
    range: ByteRange | undefined,
  ): Promise<AsyncIterable<Uint8Array>> {
    const object = await this.#options.objects
      .get(objectKey, range ?? { sha256: packageHash })
      .catch((error: unknown) => {
        throw asUnavailable(error);
      });
    if (object === null)
      throw new Error(`the bytes of the package ${packageHash} are missing from the storage (${objectKey})`);
    return object.bytes;
  }
}
