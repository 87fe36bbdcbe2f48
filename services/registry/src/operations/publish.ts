/**
 * How an uploaded package becomes a version, and how a version is yanked.
 *
 *   1. The upload is found and its bytes are read again: hash, hostile contents, manifest.
 *   2. The texts of the version are stored under a new id.
 *   3. The extension's record is replaced by one that has the version: this one write is the publication.
 *   4. The upload is forgotten.
 *
 * PUBLISH-1 Killed before 3, nothing of the version can be seen, and what 1 and 2 left is swept; killed after 3, all of it can.
 * PUBLISH-2 A version's bytes never change: the same ones again are a success without a change, others are CONFLICT.
 * PUBLISH-3 A public id belongs to the tenant that published it first; nothing that looks like it can be published by others. A
 *    private id is its tenant's alone, so no answer here depends on another tenant's private extensions.
 * PUBLISH-4 A tenant has no more bytes of versions than its tier says, but for what is published at the same moment.
 */
import semver from 'semver';
import type { Tiers } from '@penstock/config';
import {
  inspectPackage,
  PACKAGE_LIMITS,
  PackageRefused,
  type PackageInfo,
  type PublishAnswer,
  type PublishRequest,
  type RegistryCaller,
  type VersionView,
  type Visibility,
  type YankRequest,
} from '@penstock/extension';
import { BadUserInput, Conflict, Forbidden, NotFound, QuotaExceeded, Unavailable } from '@penstock/errors';
import { BoundedQueue } from '@penstock/async';
import { manifestOffThread } from '@penstock/parse-pool';
import type { Catalogue } from '../catalogue/catalogue.ts';
import { extensionKey } from '../catalogue/names.ts';
import { megabytes } from '../catalogue/megabytes.ts';
import { VERSION_BYTES, type PackageBytes } from '../catalogue/package-bytes.ts';
import { versionView, type ExtensionRecord, type VersionRecord } from '../catalogue/records.ts';
import { mayUsePrivate, packageBytesMax, requirePublisher } from './rights.ts';
import type { Signature, SigningKeys } from '../catalogue/signatures.ts';
import { asUnavailable, UPLOAD_KEPT_MS, UPLOAD_USABLE_MS, type Upload, type Uploads } from '../catalogue/uploads.ts';

export interface PublisherOptions {
  readonly catalogue: Catalogue;
  readonly uploads: Uploads;
  readonly keys: SigningKeys;
  readonly bytes: Pick<PackageBytes, 'of'>;
  readonly tiers: Tiers;
  /** `SERVICE_EXTENSION_POLICY` */
  readonly policy: 'any' | 'signed';
  now(): number;
  /** By what is swept. */
  sharedNow(): Promise<number>;
  /** A record has changed in the store. */
  changed(record: ExtensionRecord): void;
  /** Called between the steps; a test that stops here leaves the store as a killed process would. */
  readonly afterStep?: ((step: PublishStep) => Promise<void> | void) | undefined;
}

export const PUBLISH_STEPS = ['inspected', 'texts stored', 'committed', 'upload forgotten'] as const;
export type PublishStep = (typeof PUBLISH_STEPS)[number];

const HASH = /^[0-9a-f]{64}$/;
/** All stand in one document, 400 bytes each; a version a day for five years. */
const VERSIONS_MAX = 2_000;
/** Unpacking the largest package keeps a processor busy for a second; a request to the registry is given up after a few. */
const INSPECTIONS_AT_ONCE = 2;
const INSPECTIONS_WAITING_MAX = 50;
/** Of one manifest, which takes a quarter of a second at most; the rest is waiting for other files. */
const READ_MS_MAX = 10_000;
/** Between the finding of an upload and the commit: far below the time for which its bytes outlive its usability (UPLOAD-2). */
const PUBLISH_MS_MAX = (UPLOAD_KEPT_MS - UPLOAD_USABLE_MS) / 4;

interface Candidate {
  readonly tenant: string;
  readonly packageHash: string;
  readonly scope: string;
  readonly upload: Upload;
  readonly info: PackageInfo;
  readonly changelog: string;
  readonly signature: Signature | null;
  /** PUBLISH-4 */
  readonly bytesMax: number;
  readonly startedAt: number;
}

export class Publisher {
  readonly #options: PublisherOptions;
  readonly #inspections = new BoundedQueue({
    atOnce: INSPECTIONS_AT_ONCE,
    waiting: {
      max: INSPECTIONS_WAITING_MAX,
      refusal: () => new Unavailable('Too many packages are being published at the moment.'),
    },
  });

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  async publish(request: PublishRequest): Promise<PublishAnswer> {
    const { caller, packageHash } = request;
    const tenant = requirePublisher(caller, this.#options.tiers);
    checkTexts(request);
    const startedAt = this.#options.now();
    const upload = await this.#options.uploads.find(tenant, packageHash);
    const object = upload === null ? null : await this.#options.uploads.open(upload, packageHash);
    if (upload === null || object === null) return await this.#published(tenant, request);
    const info = await this.#inspections
      .run(() => inspected(object.bytes, tenant))
      .catch((error: unknown) => this.#refused(tenant, packageHash, error));
    const signature = await this.#signatureOf(tenant, request);
    await this.#options.afterStep?.('inspected');
    const scope = await this.#scopeOf(tenant, info.manifest.id, request.visibility, caller);
    const changelog = request.changelog ?? info.changelog ?? '';
    const bytesMax = packageBytesMax(caller, this.#options.tiers);
    const candidate = { tenant, packageHash, scope, upload, info, changelog, signature, bytesMax, startedAt };
    return await this.#commit(candidate).catch((error: unknown) =>
      error instanceof OtherBytes ? this.#refused(tenant, packageHash, error) : Promise.reject(error),
    );
  }

  async yank({ caller, id, version, yanked }: YankRequest): Promise<VersionView> {
    if (caller.tenant === null) requirePublisher(caller, this.#options.tiers);
    const seen = await this.#options.catalogue.visible(id, caller.tenant);
    if (seen === null) throw new NotFound(`There is no extension '${id}'.`);
    if (seen.tenant !== caller.tenant && !caller.isAdmin) throw new Forbidden(`'${id}' belongs to somebody else.`);
    const wanted = (record: ExtensionRecord | null): VersionRecord => {
      const found = record?.versions.find((each) => each.version === version);
      if (found === undefined) throw new NotFound(`There is no version '${version}' of '${id}'.`);
      return found;
    };
    const record = await this.#options.catalogue.change(seen.key, (before) => {
      if (before === null || wanted(before).yanked === yanked) return null;
      const versions = before.versions.map((each) => (each.version === version ? { ...each, yanked } : each));
      return { ...before, versions, updatedAt: this.#options.now() };
    });
    if (record !== null) this.#options.changed(record);
    const found = wanted(record);
    return versionView(id, found, (await this.#options.catalogue.textsOf([found])).get(found.contentId) ?? null);
  }

  async #commit(candidate: Candidate): Promise<PublishAnswer> {
    const { catalogue, uploads } = this.#options;
    const { tenant, packageHash, scope, info, changelog } = candidate;
    const { id } = info.manifest;
    const key = extensionKey(scope, id);
    const texts = { readme: info.readme ?? '', changelog };
    // Refused before anything is written, where that is known already.
    const present = versionIn(await catalogue.read(key), candidate);
    if (present !== null) {
      const version = await this.#mended(key, present, candidate.upload);
      await uploads.forget(tenant, packageHash);
      return await this.#unchanged(id, version);
    }
    this.#checkRoom(candidate);
    const now = this.#options.now();
    const contentId = await catalogue.addContent(
      { extensionKey: key, scope, packageHash, createdAt: await this.#options.sharedNow() },
      { manifest: info.manifestText, ...texts },
    );
    await this.#options.afterStep?.('texts stored');
    const added: VersionRecord = {
      version: info.manifest.version,
      packageHash,
      sizeBytes: candidate.upload.sizeBytes,
      objectKey: candidate.upload.objectKey,
      contentId,
      yanked: false,
      publishedAt: now,
      signature: candidate.signature,
    };
    const record = await catalogue.change(key, (before) => {
      if (versionIn(before, candidate) !== null) return null;
      if (this.#options.now() - candidate.startedAt > PUBLISH_MS_MAX)
        throw new Unavailable('The package could not be published in time; try again.');
      return withVersion(before, added, candidate, key, now);
    });
    const committed = record?.versions.find((each) => each.version === added.version) ?? added;
    // Another publication of the same bytes was faster.
    if (committed.contentId !== contentId) return await this.#unchanged(id, committed);
    await this.#options.afterStep?.('committed');
    if (record !== null) this.#options.changed(record);
    await uploads.forget(tenant, packageHash);
    await this.#options.afterStep?.('upload forgotten');
    return { version: versionView(id, added, texts), created: true };
  }

  /** Keeps PUBLISH-4. */
  #checkRoom({ tenant, upload, bytesMax }: Candidate): void {
    const used = this.#options.bytes.of(tenant);
    const more = upload.sizeBytes + VERSION_BYTES;
    if (used + more > bytesMax)
      throw new QuotaExceeded(
        `Your extensions have ${megabytes(used)} MB, and ${megabytes(more)} MB more would be beyond the ${megabytes(bytesMax)} MB of your tier.`,
      );
  }

  /** What these bytes will never become does not wait among the tenant's uploads: who mends a package in forty steps goes on. */
  async #refused(tenant: string, packageHash: string, error: unknown): Promise<never> {
    if (error instanceof BadUserInput || error instanceof OtherBytes)
      await this.#options.uploads.forget(tenant, packageHash);
    throw error;
  }

  /** Answers a publication without an upload, which is one that is repeated after it has succeeded. */
  async #published(tenant: string, { packageHash, visibility }: PublishRequest): Promise<PublishAnswer> {
    const own = (await this.#options.catalogue.visibleOfPackage(packageHash, tenant)).find(
      ({ record }) => record.tenant === tenant,
    );
    if (own === undefined)
      throw new NotFound(
        `No package with this hash has been uploaded by you in the last hour: PUT /registry/packages/${packageHash} first.`,
      );
    const { extensionId, scope } = own.record;
    const present: Visibility = scope === '' ? 'public' : 'private';
    if (visibility !== undefined && visibility !== present) throw otherVisibility(extensionId, present, visibility);
    return await this.#unchanged(extensionId, own.version);
  }

  /** Gives a version whose bytes the storage has lost those that were uploaded again. */
  async #mended(key: string, present: VersionRecord, upload: Upload): Promise<VersionRecord> {
    if (await this.#options.uploads.has(present.objectKey)) return present;
    const mended = { ...present, objectKey: upload.objectKey };
    await this.#options.catalogue.change(key, (record) => {
      if (record === null || !record.versions.some(({ objectKey }) => objectKey === present.objectKey)) return null;
      return {
        ...record,
        versions: record.versions.map((each) => (each.objectKey === present.objectKey ? mended : each)),
      };
    });
    return mended;
  }

  async #unchanged(id: string, version: VersionRecord): Promise<PublishAnswer> {
    const texts = await this.#options.catalogue.textsOf([version]);
    return { version: versionView(id, version, texts.get(version.contentId) ?? null), created: false };
  }

  async #signatureOf(tenant: string, { packageHash, signature }: PublishRequest): Promise<Signature | null> {
    if (signature === undefined) {
      if (this.#options.policy === 'signed')
        throw new BadUserInput('This registry takes signed packages only: sign it, and register the public key.');
      return null;
    }
    const found = await this.#options.keys.signatureOf(tenant, packageHash, signature);
    if (found === null)
      throw new BadUserInput('The signature was made by none of your registered keys, or for another package.');
    return found;
  }

  /** Decides where the extension belongs, and whether this tenant may publish it there. */
  async #scopeOf(
    tenant: string,
    id: string,
    visibility: Visibility | undefined,
    caller: RegistryCaller,
  ): Promise<string> {
    const { catalogue } = this.#options;
    const [own, common] = await Promise.all([
      catalogue.read(extensionKey(tenant, id)),
      catalogue.read(extensionKey('', id)),
    ]);
    const wanted = visibility ?? (own?.extensionId === id ? 'private' : 'public');
    if (wanted === 'private' && !mayUsePrivate(caller, this.#options.tiers))
      throw new Forbidden(`The tier '${caller.tier}' may not have private extensions.`);
    const elsewhere = wanted === 'private' ? common : own;
    if (elsewhere?.extensionId === id && elsewhere.tenant === tenant) {
      throw otherVisibility(id, wanted === 'private' ? 'public' : 'private', wanted);
    }
    // What has been private for long stays its tenant's, whatever others have published meanwhile.
    if (wanted === 'public' || own?.extensionId !== id) checkName(id, tenant, common, wanted === 'private');
    return wanted === 'private' ? tenant : '';
  }
}

/** PUBLISH-2: these bytes will never be this version. */
class OtherBytes extends Conflict {}

function otherVisibility(id: string, present: Visibility, wanted: Visibility): Conflict {
  return new Conflict(
    `'${id}' is ${present} since its first version, and stays so: take another name for a ${wanted} one.`,
  );
}

/** PUBLISH-3; `present` is what stands under the key of this id or of one that looks like it. */
function checkName(id: string, tenant: string, present: ExtensionRecord | null, isPrivate: boolean): void {
  if (present === null || (present.extensionId === id && present.tenant === tenant)) return;
  if (present.extensionId === id) throw new Forbidden(`The name '${id}' belongs to somebody else.`);
  // A private name beside a public one of the same tenant deceives nobody.
  if (isPrivate && present.scope === '' && present.tenant === tenant) return;
  throw new BadUserInput(
    `The name '${id}' differs from '${present.extensionId}' in look-alike characters only; take another one.`,
  );
}

/** The version that is there with the same bytes; null: it can be added. */
function versionIn(
  record: ExtensionRecord | null,
  { tenant, packageHash, info, scope }: Candidate,
): VersionRecord | null {
  const { id, version } = info.manifest;
  checkName(id, tenant, record, scope !== '');
  const present = record?.versions.find((each) => semver.eq(each.version, version));
  if (present === undefined) {
    if ((record?.versions.length ?? 0) >= VERSIONS_MAX)
      throw new Conflict(`'${id}' has ${VERSIONS_MAX} versions; no more can be added.`);
    return null;
  }
  if (present.packageHash === packageHash) return present;
  throw new OtherBytes(
    `'${id}@${present.version}' is published with other bytes, and a version never changes: give this one a new version.`,
    { packageHash: present.packageHash },
  );
}

function withVersion(
  before: ExtensionRecord | null,
  added: VersionRecord,
  { tenant, scope, info }: Candidate,
  key: string,
  now: number,
): ExtensionRecord {
  const { id, description } = info.manifest;
  if (before === null)
    return {
      key,
      scope,
      extensionId: id,
      tenant,
      description,
      createdAt: now,
      updatedAt: now,
      generation: 0,
      versions: [added],
    };
  const isHighest = before.versions.every(({ version }) => semver.gt(added.version, version));
  return {
    ...before,
    description: isHighest ? description : before.description,
    updatedAt: now,
    versions: [...before.versions, added],
  };
}

async function inspected(bytes: AsyncIterable<Uint8Array>, tenant: string): Promise<PackageInfo> {
  try {
    return await inspectPackage(bytes, (manifest) => manifestOffThread(manifest, tenant, READ_MS_MAX));
  } catch (error) {
    if (error instanceof PackageRefused)
      throw new BadUserInput(`The package is refused: ${error.message}`, { fault: error.fault });
    throw asUnavailable(error);
  }
}

function checkTexts({ packageHash, changelog }: PublishRequest): void {
  if (!HASH.test(packageHash)) throw new BadUserInput("'packageHash' is to be a SHA-256 in lower-case hex.");
  if (Buffer.byteLength(changelog ?? '') > PACKAGE_LIMITS.changelogBytesMax)
    throw new BadUserInput(`'changelog' is longer than ${PACKAGE_LIMITS.changelogBytesMax / 1024} KiB.`);
}
