/**
 * Objects in a bucket of S3, or of whatever speaks like it. Credentials are those that the AWS tools find: `AWS_ACCESS_KEY_ID` and
 * `AWS_SECRET_ACCESS_KEY`, a profile, the role of the machine; none stands in the address.
 *
 *  S3-1 An object appears by the one call that ends its put: a small one by that which stores it, a larger one, whose parts nobody sees,
 *     by that which completes them. Neither is made before the bytes are those that were expected.
 *  S3-2 A part is held until it is taken: a put holds `PARTS_AT_ONCE + 1` parts at most, a read what its connection has buffered.
 *  S3-3 Bytes are read under the tag that was found with their head: one that takes the key meanwhile is not taken for it.
 */
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import type { S3Address } from '@penstock/config';
import { systemReason } from '@penstock/errors';
import { checkKey, expectedBytes, partOf, verifiedBytes } from '../checked-bytes.ts';
import { ObjectsFull, ObjectsUnavailable } from '../errors.ts';
import type { ExpectedBytes, ObjectHead, ObjectStore, ReadOptions, StoredObject } from '../port.ts';

/** 10,000 parts are the most that S3 takes: 80 GB. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_ONCE = 2;
const CONNECT_MS_MAX = 5_000;
/** Without a byte in either direction. */
const IDLE_MS_MAX = 30_000;
/** Until an answer begins: a storage may take its time to put the parts of a large object together. */
const ANSWER_MS_MAX = 120_000;
const TRIES_MAX = 3;
/** As MinIO says it of its disks. */
const INSUFFICIENT_STORAGE = 507;
/** Of a bucket that has all it may have, as Ceph and MinIO say it; S3 itself knows no such bound. */
const QUOTA_CODES: ReadonlySet<string> = new Set(['QuotaExceeded', 'XMinioAdminBucketQuotaExceeded']);

/** Rejects with ObjectsUnavailable where there is no such bucket, or none that these credentials see. */
export async function openS3Store(address: S3Address): Promise<ObjectStore> {
  const store = new S3Store(address);
  await store.ping();
  return store;
}

class S3Store implements ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  /** In front of every key. */
  readonly #prefix: string;

  constructor({ bucket, prefix, endpoint, region }: S3Address) {
    this.#bucket = bucket;
    this.#prefix = prefix;
    this.#client = new S3Client({
      ...(region === undefined ? {} : { region }),
      // One that is not Amazon's has rarely a host name for each bucket.
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
      // Who reads a whole object checks its SHA-256; and there are storages that give a part the sum of the whole.
      responseChecksumValidation: 'WHEN_REQUIRED',
      maxAttempts: TRIES_MAX,
      requestHandler: {
        connectionTimeout: CONNECT_MS_MAX,
        requestTimeout: ANSWER_MS_MAX,
        socketTimeout: IDLE_MS_MAX,
        throwOnRequestTimeout: true,
      },
    });
  }

  async put(key: string, bytes: AsyncIterable<Uint8Array>, expected: ExpectedBytes): Promise<ObjectHead> {
    checkKey(key);
    const source = new KeptFailure(copies(expectedBytes(bytes, expected)));
    const upload = new Upload({
      client: this.#client,
      params: { Bucket: this.#bucket, Key: this.#prefix + key, Body: Readable.from(source, { objectMode: false }) },
      partSize: PART_BYTES,
      queueSize: PARTS_AT_ONCE,
    });
    try {
      await upload.done();
    } catch (error) {
      // What the source says comes before what the storage makes of its end.
      throw source.failure ?? unavailable('storing an object', error);
    }
    const head = await this.head(key);
    if (head === null) throw new ObjectsUnavailable(`${key} went as soon as it was stored`);
    return head;
  }

  async head(key: string): Promise<ObjectHead | null> {
    return (await this.#find(key))?.head ?? null;
  }

  async get(key: string, options: ReadOptions = {}): Promise<StoredObject | null> {
    const found = await this.#find(key);
    if (found === null) return null;
    const { head, tag } = found;
    const { from, end, size, sha256 } = partOf(head.size, options);
    const pieces = this.#pieces(key, tag, from, end);
    return { head, bytes: verifiedBytes(key, pieces, size, sha256) };
  }

  async delete(key: string): Promise<boolean> {
    // S3 does not say whether there was one.
    if ((await this.#find(key)) === null) return false;
    await this.#call('deleting an object', () =>
      this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key })),
    );
    return true;
  }

  async *list(prefix: string): AsyncGenerator<ObjectHead, void> {
    for (let next: string | undefined, isFirst = true; isFirst || next !== undefined; isFirst = false) {
      const page = await this.#call('listing objects', () =>
        this.#client.send(
          new ListObjectsV2Command({
            Bucket: this.#bucket,
            Prefix: this.#prefix + prefix,
            ContinuationToken: next,
          }),
        ),
      );
      for (const { Key: key = '', Size: size = 0, LastModified: stored } of page.Contents ?? [])
        yield { key: key.slice(this.#prefix.length), size, storedAt: stored?.getTime() ?? 0 };
      next = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    }
  }

  async removeLeftovers(olderThanMs: number): Promise<number> {
    const before = Date.now() - olderThanMs;
    let removed = 0;
    let [key, upload]: (string | undefined)[] = [];
    for (let isMore = true; isMore;) {
      const request: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({
        Bucket: this.#bucket,
        Prefix: this.#prefix,
        KeyMarker: key,
        UploadIdMarker: upload,
      });
      // There are storages that answer so where there is none.
      const page: ListMultipartUploadsCommandOutput | null = await this.#call('listing unfinished puts', () =>
        this.#client.send(request).catch(absent),
      );
      if (page === null) break;
      for (const { Key: of, UploadId: id, Initiated: begun } of page.Uploads ?? []) {
        if ((begun?.getTime() ?? 0) > before) continue;
        const isGone = await this.#call('removing an unfinished put', () =>
          this.#client
            .send(new AbortMultipartUploadCommand({ Bucket: this.#bucket, Key: of, UploadId: id }))
            .then(() => true, absent),
        );
        if (isGone === true) removed += 1;
      }
      [key, upload] = [page.NextKeyMarker, page.NextUploadIdMarker];
      isMore = page.IsTruncated === true && key !== undefined;
    }
    return removed;
  }

  /** S3 has no question for it. */
  async checkRoom(): Promise<void> {}

  async ping(): Promise<void> {
    await this.#call(`looking at the bucket ${this.#bucket}`, () =>
      this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket })),
    );
  }

  /** `tag`: tells this object from one that replaces it. */
  async #find(key: string): Promise<{ readonly head: ObjectHead; readonly tag: string | undefined } | null> {
    checkKey(key);
    return await this.#call('looking for an object', async () => {
      const found = await this.#client
        .send(new HeadObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key }))
        .catch(absent);
      if (found === null) return null;
      const { ContentLength: size = 0, LastModified: stored, ETag: tag } = found;
      return { head: { key, size, storedAt: stored?.getTime() ?? 0 }, tag };
    });
  }

  /** Keeps S3-3. */
  async *#pieces(key: string, tag: string | undefined, from: number, to: number): AsyncGenerator<Uint8Array, void> {
    if (from >= to) return;
    const { Body: body, ETag: read } = await this.#call('reading an object', () =>
      this.#client.send(
        new GetObjectCommand({
          Bucket: this.#bucket,
          Key: this.#prefix + key,
          Range: `bytes=${from}-${to - 1}`,
          IfMatch: tag,
        }),
      ),
    );
    const stream = body as Readable;
    if (read !== tag) {
      // Not every storage looks at the condition.
      stream.destroy();
      throw new ObjectsUnavailable('the object was replaced before it was read');
    }
    try {
      for await (const piece of stream) yield piece as Uint8Array;
    } catch (error) {
      throw unavailable('reading an object', error);
    } finally {
      stream.destroy();
    }
  }

  async #call<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw unavailable(what, error);
    }
  }
}

/** The same bytes; remembers what their source has thrown, and not what it is ended with by who reads it. */
class KeptFailure implements AsyncIterable<Uint8Array> {
  readonly #bytes: AsyncIterable<Uint8Array>;
  failure: unknown;

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#bytes = bytes;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    const source = this.#bytes[Symbol.asyncIterator]();
    try {
      for (let next = await this.#next(source); next.done !== true; next = await this.#next(source)) yield next.value;
    } finally {
      await source.return?.();
    }
  }

  async #next(source: AsyncIterator<Uint8Array>): Promise<IteratorResult<Uint8Array>> {
    try {
      return await source.next();
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}

function absent(error: unknown): null {
  if (error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404 && error.name !== 'NoSuchBucket')
    return null;
  throw error;
}

function unavailable(what: string, error: unknown): ObjectsUnavailable {
  const why = error instanceof S3ServiceException ? `${error.name} ${error.message}`.trim() : systemReason(error);
  return new (isFull(error) ? ObjectsFull : ObjectsUnavailable)(`${what} failed (${why})`, { cause: error });
}

function isFull(error: unknown): boolean {
  if (!(error instanceof S3ServiceException)) return false;
  return error.$metadata.httpStatusCode === INSUFFICIENT_STORAGE || QUOTA_CODES.has(error.name);
}

/** The upload gathers pieces until they are a part. */
async function* copies(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  for await (const piece of bytes) yield Uint8Array.from(piece);
}
