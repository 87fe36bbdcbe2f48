/**
 * Objects in a JetStream stream `OBJ_<bucket>`. Chunks have a subject each (`$O.<bucket>.C.<id>.<number>`), so that any
 * range is read by its chunks alone and without a consumer; one message a key (`$O.<bucket>.M.<key>`) names the id.
 *
 * CHUNKS-1 The message of the key is published after the acknowledgement of every chunk: it is the commit.
 * CHUNKS-2 Each put has an id of its own. Replacing purges the chunks of the id before, after the commit; two puts of one key at
 *     the same time leave the loser's chunks as a leftover.
 * CHUNKS-3 The key's message is read from the stream's leader, so never an older one than was acknowledged. Chunks never change
 *     and are read from any replica, from the leader where a replica does not have them yet.
 */
import { randomUUID } from 'node:crypto';
import {
  DiscardPolicy,
  jetstreamManager,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type JetStreamManager,
} from '@nats-io/jetstream';
import { connectionOf, type Bus } from '@penstock/bus';
import { checkKey, expectedBytes, partOf, verifiedBytes } from '../checked-bytes.ts';
import { ObjectDamaged, ObjectsFull, ObjectsUnavailable } from '../errors.ts';
import type { ExpectedBytes, ObjectHead, ObjectStore, ReadOptions, StoredObject } from '../port.ts';

export interface NatsStoreOptions {
  readonly bus: Bus;
  /** Letters, digits, `_` and `-`. */
  readonly bucket: string;
  /** Copies; default 3 where the broker names a cluster, else 1. */
  readonly replicas?: number | undefined;
  /** Of the whole bucket; default: whatever the broker's own limit leaves. */
  readonly bytesMax?: number | undefined;
}

/** A quarter of the broker's payload limit: several fit into its buffers, and a range of a few bytes reads no megabyte. */
const CHUNK_BYTES = 256 * 1024;
const CALL_MS_MAX = 5_000;
/** Of one object, in each direction: the broker's disk and the way there wait for each other else. */
const CHUNKS_AT_ONCE = 4;
/** Objects asked for at a time in a listing. */
const LIST_BATCH = 16;
const NO_MESSAGE = 10037;
const STREAM_NOT_FOUND = 10059;
const STREAM_NAME_IN_USE = 10058;
/** The two of the broker's storage. */
const FULL_CODES = [10023, 10047];
/** Whatever its store has failed of, in words: a broker that is ending says so with this code, too. */
const STORE_FAILED = 10077;
const FULL_WORDS = /maximum (?:bytes|messages) exceeded|no space left/u;

interface StoredMessage {
  readonly data: Uint8Array;
  readonly time: Date;
}

interface KeyMessage {
  readonly id: string;
  readonly size: number;
  readonly chunkBytes: number;
  readonly chunks: number;
}

/**
 * Makes the stream where it is missing, which needs the right to; a service of the generated broker configuration has it not,
 * and finds the one that the set-up has made by the same call. Rejects with ObjectsUnavailable while that is not so.
 */
export async function openNatsStore(options: NatsStoreOptions): Promise<ObjectStore> {
  const connection = connectionOf(options.bus);
  const manager = await attempt('reaching JetStream', () =>
    jetstreamManager(connection, { checkAPI: false, timeout: CALL_MS_MAX }),
  );
  const replicas = options.replicas ?? (connection.info?.cluster === undefined ? 1 : 3);
  await attempt('making the bucket', () => makeStream(manager, options, replicas));
  return new NatsStore(manager, options.bucket);
}

async function makeStream(
  manager: JetStreamManager,
  { bucket, bytesMax }: NatsStoreOptions,
  replicas: number,
): Promise<void> {
  const name = `OBJ_${bucket}`;
  // Looked for first: in an installation where the set-up makes the streams, a service may not.
  if (await exists(manager, name)) return;
  try {
    await manager.streams.add({
      name,
      subjects: [`$O.${bucket}.C.>`, `$O.${bucket}.M.>`],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_msgs_per_subject: 1,
      max_bytes: bytesMax ?? -1,
      num_replicas: replicas,
      allow_direct: true,
    });
  } catch (error) {
    // Another process was faster.
    if (!hasCode(error, STREAM_NAME_IN_USE)) throw error;
  }
}

function hasCode(error: unknown, code: number): boolean {
  return error instanceof JetStreamApiError && error.code === code;
}

function isFull(error: unknown): boolean {
  if (FULL_CODES.some((code) => hasCode(error, code))) return true;
  return hasCode(error, STORE_FAILED) && FULL_WORDS.test((error as JetStreamApiError).message);
}

async function exists(manager: JetStreamManager, name: string): Promise<boolean> {
  try {
    await manager.streams.info(name);
    return true;
  } catch (error) {
    if (hasCode(error, STREAM_NOT_FOUND)) return false;
    throw error;
  }
}

class NatsStore implements ObjectStore {
  readonly #manager: JetStreamManager;
  readonly #stream: string;
  readonly #subjects: {
    chunk(id: string, number: number | '*' | '>'): string;
    key(key: string): string;
    readonly keys: string;
  };

  constructor(manager: JetStreamManager, bucket: string) {
    this.#manager = manager;
    this.#stream = `OBJ_${bucket}`;
    this.#subjects = {
      chunk: (id, number) => `$O.${bucket}.C.${id}.${number}`,
      key: (key) => `$O.${bucket}.M.${Buffer.from(key).toString('base64url')}`,
      keys: `$O.${bucket}.M.>`,
    };
  }

  async put(key: string, bytes: AsyncIterable<Uint8Array>, expected: ExpectedBytes): Promise<ObjectHead> {
    checkKey(key);
    const id = randomUUID();
    const underway: Promise<void>[] = [];
    let committed = false;
    try {
      let size = 0;
      let chunks = 0;
      for await (const chunk of inChunks(expectedBytes(bytes, expected))) {
        const stored = this.#publish(this.#subjects.chunk(id, chunks), chunk);
        // Whoever fails first is waited for first.
        stored.catch(() => {});
        underway.push(stored);
        size += chunk.length;
        chunks += 1;
        if (underway.length >= CHUNKS_AT_ONCE) await underway.shift();
      }
      await Promise.all(underway);
      const before = await this.#keyMessage(key);
      const message: KeyMessage = { id, size, chunkBytes: CHUNK_BYTES, chunks };
      await this.#publish(this.#subjects.key(key), Buffer.from(JSON.stringify(message)));
      committed = true;
      if (before !== null && before.message.id !== id) await this.#purgeChunks(before.message.id).catch(() => {});
      const after = await this.#keyMessage(key);
      return { key, size, storedAt: after?.storedAt ?? Date.now() };
    } catch (error) {
      // None comes after the purge. Whatever this leaves behind goes with `removeLeftovers`.
      await Promise.allSettled(underway);
      if (!committed) await this.#purgeChunks(id).catch(() => {});
      throw error;
    }
  }

  async head(key: string): Promise<ObjectHead | null> {
    checkKey(key);
    const found = await this.#keyMessage(key);
    return found === null ? null : { key, size: found.message.size, storedAt: found.storedAt };
  }

  async get(key: string, options: ReadOptions = {}): Promise<StoredObject | null> {
    checkKey(key);
    const found = await this.#keyMessage(key);
    if (found === null) return null;
    const { message, storedAt } = found;
    const { from, end, size, sha256 } = partOf(message.size, options);
    const bytes = verifiedBytes(key, this.#pieces(key, message, from, end), size, sha256);
    return { head: { key, size: message.size, storedAt }, bytes };
  }

  async delete(key: string): Promise<boolean> {
    checkKey(key);
    const found = await this.#keyMessage(key);
    if (found === null) return false;
    const { purged } = await attempt('deleting an object', () =>
      this.#manager.streams.purge(this.#stream, { filter: this.#subjects.key(key) }),
    );
    await this.#purgeChunks(found.message.id);
    return purged > 0;
  }

  async *list(prefix: string): AsyncGenerator<ObjectHead, void> {
    const subjects = await this.#subjectsLike(this.#subjects.keys);
    const wanted = subjects.filter((subject) => keyOfSubject(subject).startsWith(prefix));
    for (let from = 0; from < wanted.length; from += LIST_BATCH) {
      const heads = await Promise.all(
        wanted.slice(from, from + LIST_BATCH).map((subject) => this.head(keyOfSubject(subject))),
      );
      yield* heads.filter((head) => head !== null);
    }
  }

  async removeLeftovers(olderThanMs: number): Promise<number> {
    // Chunks first: an id that is committed afterwards is among the keys read then, or too young.
    const firstChunks = await this.#subjectsLike(this.#subjects.chunk('*', 0));
    const known = new Set<string>();
    const keys = await this.#subjectsLike(this.#subjects.keys);
    for (let from = 0; from < keys.length; from += LIST_BATCH) {
      const found = await Promise.all(
        keys.slice(from, from + LIST_BATCH).map((subject) => this.#keyMessage(keyOfSubject(subject))),
      );
      for (const each of found) if (each !== null) known.add(each.message.id);
    }
    let removed = 0;
    for (const subject of firstChunks) {
      const id = subject.split('.').at(-2) ?? '';
      if (known.has(id)) continue;
      const chunk = await this.#message(subject, 'leader');
      if (chunk === null || chunk.time.getTime() > Date.now() - olderThanMs) continue;
      await this.#purgeChunks(id);
      removed += 1;
    }
    return removed;
  }

  /** Only the broker knows, and only when it stores. */
  async checkRoom(): Promise<void> {}

  async ping(): Promise<void> {
    await attempt('asking for the bucket', () => this.#manager.streams.info(this.#stream));
  }

  async *#pieces(key: string, message: KeyMessage, from: number, to: number): AsyncGenerator<Uint8Array, void> {
    const { id, chunkBytes } = message;
    const read = async (number: number): Promise<StoredMessage | null> => {
      const subject = this.#subjects.chunk(id, number);
      return (await this.#message(subject, 'replica')) ?? (await this.#message(subject, 'leader'));
    };
    const ahead: ReturnType<typeof read>[] = [];
    let asked = Math.floor(from / chunkBytes);
    for (let at = from; at < to;) {
      const number = Math.floor(at / chunkBytes);
      for (; ahead.length < CHUNKS_AT_ONCE && asked * chunkBytes < to; asked += 1) {
        const next = read(asked);
        // Of those that nobody comes to wait for.
        next.catch(() => {});
        ahead.push(next);
      }
      const chunk = (await ahead.shift()) ?? null;
      if (chunk === null) throw await this.#missing(key, message);
      const start = at - number * chunkBytes;
      const piece = chunk.data.subarray(start, Math.min(chunk.data.length, to - number * chunkBytes));
      if (piece.length === 0) return;
      at += piece.length;
      yield piece;
    }
  }

  /** A chunk that is not there: the object was replaced or deleted meanwhile, or is broken. */
  async #missing(key: string, { id }: KeyMessage): Promise<Error> {
    const now = await this.#keyMessage(key);
    return now?.message.id === id
      ? new ObjectDamaged(key, 'a chunk is missing')
      : new ObjectsUnavailable(`${key} was replaced or deleted while it was read`);
  }

  async #keyMessage(key: string): Promise<{ readonly message: KeyMessage; readonly storedAt: number } | null> {
    const stored = await this.#message(this.#subjects.key(key), 'leader');
    return stored === null ? null : { message: parseKeyMessage(stored.data), storedAt: stored.time.getTime() };
  }

  async #message(subject: string, from: 'leader' | 'replica'): Promise<StoredMessage | null> {
    return await attempt('reading', async () => {
      try {
        return await (from === 'leader' ? this.#manager.streams : this.#manager.direct).getMessage(this.#stream, {
          last_by_subj: subject,
        });
      } catch (error) {
        if (hasCode(error, NO_MESSAGE)) return null;
        throw error;
      }
    });
  }

  async #publish(subject: string, data: Uint8Array): Promise<void> {
    await attempt('storing', () => this.#manager.jetstream().publish(subject, data, { timeout: CALL_MS_MAX }));
  }

  async #purgeChunks(id: string): Promise<void> {
    await attempt('deleting chunks', () =>
      this.#manager.streams.purge(this.#stream, { filter: this.#subjects.chunk(id, '>') }),
    );
  }

  async #subjectsLike(filter: string): Promise<string[]> {
    const info = await attempt('listing', () => this.#manager.streams.info(this.#stream, { subjects_filter: filter }));
    return Object.keys(info.state.subjects ?? {});
  }
}

/** The same bytes in pieces of CHUNK_BYTES, the last one shorter; an empty object has none. */
async function* inChunks(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  let chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let filled = 0;
  for await (const piece of bytes) {
    for (let at = 0; at < piece.length;) {
      const taken = Math.min(CHUNK_BYTES - filled, piece.length - at);
      chunk.set(piece.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < CHUNK_BYTES) continue;
      yield chunk;
      // The one handed out may still be on its way to the broker.
      chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield chunk.subarray(0, filled);
}

function keyOfSubject(subject: string): string {
  return Buffer.from(subject.slice(subject.lastIndexOf('.') + 1), 'base64url').toString('utf8');
}

function parseKeyMessage(data: Uint8Array): KeyMessage {
  return JSON.parse(Buffer.from(data).toString('utf8')) as KeyMessage;
}

async function attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const problem = `${what} failed (${error instanceof Error ? error.message : String(error)})`;
    throw new (isFull(error) ? ObjectsFull : ObjectsUnavailable)(problem, { cause: error });
  }
}
