/**
 * The port to object storage: large, immutable-by-habit sequences of bytes under keys. It offers what a plain folder,
 * JetStream and every S3-like service can do, and nothing else: no appending, no renaming, no conditions.
 *
 * Contract of every call:
 * - Keys are lower-case letters, digits and `_-.` in parts parted by `/`, at most 200 characters. A key is never the beginning
 *   of another up to a `/` (`a` beside `a/b`): a folder could not hold both.
 * - It may be made at any time, concurrently with any other, from several processes.
 * - A put is seen whole or not at all. Of several puts of one key the last to end stands. One that fails, or whose process
 *   dies, changes nothing; what it left behind is invisible and goes with `removeLeftovers`.
 * - The source of a put may take a piece back, and write something else there, when the next one is asked for.
 * - A settled put or delete is seen by every `get` and `head` begun later; `list` may lag by moments.
 * - Who reads while its object is replaced or deleted reads the old bytes to their end, or fails with ObjectsUnavailable;
 *   never a mixture.
 * - ObjectsUnavailable is worth a retry, its kind ObjectsFull after minutes only. HashMismatch and ObjectTooLarge are about the bytes given, ObjectDamaged about
 *   those stored; ObjectUsageError is a mistake of the caller's. What the source of a put throws is thrown on as it is.
 */

export interface ObjectStore {
  /** Reads the source to its end, then stores it under the key if it is what was expected. */
  put(key: string, bytes: AsyncIterable<Uint8Array>, expected: ExpectedBytes): Promise<ObjectHead>;

  head(key: string): Promise<ObjectHead | null>;

  /** Null: there is none. The bytes are read as they are asked for; to stop early is fine. */
  get(key: string, options?: ReadOptions): Promise<StoredObject | null>;

  /** Whether there was one. */
  delete(key: string): Promise<boolean>;

  /** Every object whose key begins so, in no particular order, read in pages. */
  list(prefix: string): AsyncIterable<ObjectHead>;

  /** Removes what puts that never ended have left, if it is older than this; how many such puts. */
  removeLeftovers(olderThanMs: number): Promise<number>;

  /** Settles when the storage can answer. */
  ping(): Promise<void>;

  /** Rejects with ObjectsFull where it is known, before its bytes are read, that a put would. */
  checkRoom(): Promise<void>;
}

export interface ExpectedBytes {
  /** Lower-case hex; any other sum is a HashMismatch. */
  readonly sha256: string;
  /** More is ObjectTooLarge, noticed as soon as it is read. */
  readonly bytesMax: number;
}

export interface ObjectHead {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since 1970, by the storage's clock. */
  readonly storedAt: number;
}

export interface ReadOptions {
  /** The first byte wanted; default 0. Behind the end there is nothing to read. */
  readonly from?: number | undefined;
  /** The first byte not wanted any more; default: the end. */
  readonly to?: number | undefined;
  /**
   * For reads of the whole: the sum that is expected. The last piece is handed out only once it is right, so that who has
   * read to the end has the right bytes; else the reading fails with ObjectDamaged.
   */
  readonly sha256?: string | undefined;
}

export interface StoredObject {
  readonly head: ObjectHead;
  /** To be read once. */
  readonly bytes: AsyncIterable<Uint8Array>;
}
