/**
 * Packages on their way in: their bytes are stored under a key of their own, then a document says so. It owns both until a
 * version names the key.
 *
 * UPLOAD-1 Each upload has a key of its own, so what a sweep removes is never what a later upload has stored.
 * UPLOAD-2 An upload can become a version for `UPLOAD_USABLE_MS`; only `UPLOAD_KEPT_MS` after it was stored is it swept. A publish
 *    takes far less than the time between.
 *    All registries go by one clock for it: that of the machine where it is published may be an hour ahead of the one that took the bytes.
 * UPLOAD-3 The answer is the same whether or not somebody has these bytes in the registry already.
 * UPLOAD-4 It has a place among its tenant's before its bytes come: of many at the same moment no more are stored than there may be.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { PACKAGE_BYTES_MAX } from '@penstock/extension';
import { BadUserInput, QuotaExceeded, Unavailable } from '@penstock/errors';
import {
  HashMismatch,
  ObjectsFull,
  ObjectsUnavailable,
  type ObjectStore,
  type StoredObject,
} from '@penstock/object-store';
import { insertWithin, StoreUnavailable, type Collection, type DocumentStore } from '@penstock/store';
import { uploadsSpec } from './collections.ts';

export interface Upload {
  readonly objectKey: string;
  readonly sizeBytes: number;
}

export const UPLOAD_USABLE_MS = 60 * 60_000;
export const UPLOAD_KEPT_MS = 2 * 60 * 60_000;
/** How many a tenant may have in the time that they are kept: a build publishes a handful. Each has 50 MiB at most, so this bounds the storage too. */
export const UPLOADS_OF_TENANT_MAX = 40;
export const OBJECT_PREFIX = 'packages/';
const SALT_MAX = 2 ** 47;
/** Longer than a runner waits with its slot: room is made by people. */
const FULL_RETRY_SECS = 300;

export class Uploads {
  readonly #uploads: Collection<typeof uploadsSpec>;
  readonly #objects: ObjectStore;
  readonly #now: () => Promise<number>;

  /** `now`: by a clock that all registries share. */
  constructor(store: DocumentStore, objects: ObjectStore, now: () => Promise<number>) {
    this.#uploads = store.collection(uploadsSpec);
    this.#objects = objects;
    this.#now = now;
  }

  /** Reads the bytes to their end. `BadUserInput` where they have another hash; ObjectTooLarge from `PACKAGE_BYTES_MAX` on. */
  async receive(tenant: string, packageHash: string, bytes: AsyncIterable<Uint8Array>): Promise<Upload> {
    const objectKey = `${OBJECT_PREFIX}${packageHash.slice(0, 2)}/${packageHash}.${randomUUID()}`;
    const place = await this.#takePlace(tenant, packageHash, objectKey);
    const head = await this.#objects
      .put(objectKey, bytes, { sha256: packageHash, bytesMax: PACKAGE_BYTES_MAX })
      .catch(async (error: unknown) => {
        // What stays is forgotten in time.
        await place.giveBack().catch(() => {});
        if (error instanceof HashMismatch)
          throw new BadUserInput(`The bytes received have the SHA-256 ${error.actual}, not the announced one.`, {
            expected: error.expected,
            actual: error.actual,
          });
        throw asUnavailable(error);
      });
    const document = {
      id: idOf(tenant, packageHash),
      tenant,
      packageHash,
      objectKey,
      sizeBytes: head.size,
      // Later than the place, whatever the clock says: that has no size.
      uploadedAt: Math.max(await this.#now(), place.takenAt),
      salt: randomInt(1, SALT_MAX),
    };
    // A later upload of the same bytes that was faster serves as well.
    await this.#uploads.replaceNewer([document]);
    return { objectKey, sizeBytes: head.size };
  }

  /**
   * UPLOAD-4. Whoever looks for an upload before its bytes are there finds it without them. One that has the place of an earlier upload of
   * these bytes has none to give back.
   */
  async #takePlace(
    tenant: string,
    packageHash: string,
    objectKey: string,
  ): Promise<{ readonly takenAt: number; readonly giveBack: () => Promise<void> }> {
    const takenAt = await this.#now();
    const id = idOf(tenant, packageHash);
    const place = { id, tenant, packageHash, objectKey, sizeBytes: 0, uploadedAt: takenAt, salt: 0 };
    const refusal = (): Error =>
      new QuotaExceeded(
        `${UPLOADS_OF_TENANT_MAX} packages have been uploaded and not published; they are forgotten after ${UPLOAD_KEPT_MS / 3_600_000} hours.`,
      );
    const limit = { where: { tenant }, max: UPLOADS_OF_TENANT_MAX, refusal };
    const isKnown = (await this.#uploads.get(id)) !== null;
    const taken = isKnown ? 'duplicate' : await insertWithin(this.#uploads, place, limit);
    const giveBack = async (): Promise<void> => {
      if (taken === 'inserted') await this.#uploads.delete(id, { objectKey });
    };
    return { takenAt, giveBack };
  }

  /** Null: nothing, or nothing recent enough, was uploaded by this tenant under this hash. */
  async find(tenant: string, packageHash: string): Promise<Upload | null> {
    const upload = await this.#uploads.get(idOf(tenant, packageHash));
    return upload === null || upload.uploadedAt < (await this.#now()) - UPLOAD_USABLE_MS ? null : upload;
  }

  async open(upload: Upload, packageHash: string): Promise<StoredObject | null> {
    return await this.#objects.get(upload.objectKey, { sha256: packageHash }).catch((error: unknown) => {
      throw asUnavailable(error);
    });
  }

  /** Whether the storage has these bytes. */
  async has(objectKey: string): Promise<boolean> {
    const head = await this.#objects.head(objectKey).catch((error: unknown) => {
      throw asUnavailable(error);
    });
    return head !== null;
  }

  /** It has become a version, or is none any more. */
  async forget(tenant: string, packageHash: string): Promise<void> {
    await this.#uploads.delete(idOf(tenant, packageHash));
  }

  /** Forgets all of a tenant's; their bytes are then nobody's. */
  async forgetAll(tenant: string): Promise<number> {
    return await this.#uploads.deleteWhere({ where: { tenant }, limit: 1_000 });
  }

  /** Forgets those of before `time`; their bytes are then nobody's. */
  async forgetBefore(time: number): Promise<number> {
    return await this.#uploads.deleteWhere({
      where: { uploadedAt: { lt: time } },
      orderBy: { field: 'uploadedAt', direction: 'asc' },
      limit: 1_000,
    });
  }
}

/** What passes by itself becomes `Unavailable`; anything else stays as it is. */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof ObjectsFull)
    return new Unavailable(
      "The server's object storage has no room left; whoever runs the server has to make some (its log says how much is missing).",
      { cause: error, retryAfterSecs: FULL_RETRY_SECS },
    );
  if (error instanceof ObjectsUnavailable)
    return new Unavailable("The server's object storage does not answer; try again.", { cause: error });
  return error instanceof StoreUnavailable
    ? new Unavailable('The server cannot reach its database at the moment; try again.', { cause: error })
    : error;
}

function idOf(tenant: string, packageHash: string): string {
  return `${tenant}|${packageHash}`;
}
