/**
 * Objects as plain files under a folder, for one machine (or a network file system whose renames are atomic).
 *
 * FOLDER-1 `objects/<key>` is a whole object or is not there: bytes are written under `incoming/` and renamed once they are
 *     synced and checked. The two folders lie on one file system.
 * FOLDER-2 An object is found by its name and read by its inode: one that takes the name meanwhile is not taken for it.
 * FOLDER-3 Folders are made as needed and never removed, so that no put loses the folder under its feet.
 * FOLDER-4 A twentieth of the disk, 1 GiB at most, is left free: what else lies on it, the broker and the database perhaps, goes on when
 *     somebody's files and logs have filled it.
 */
import { randomUUID } from 'node:crypto';
import { open, opendir, rename, rm, stat, statfs, unlink, type FileHandle } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { makeFolder } from '@penstock/async';
import { systemReason } from '@penstock/errors';
import { checkKey, expectedBytes, partOf, verifiedBytes } from '../checked-bytes.ts';
import { ObjectsFull, ObjectsUnavailable } from '../errors.ts';
import type { ExpectedBytes, ObjectHead, ObjectStore, ReadOptions, StoredObject } from '../port.ts';

/** Large enough that a hundred megabytes take some hundred calls, small enough that many readers hold little: two of these each. */
const READ_BYTES = 256 * 1024;
/** Pieces are copied into blocks of this, two in turn. */
const WRITE_BYTES = 512 * 1024;
/** The disk is told to begin after so many bytes: one that has all of them to take at the end keeps everybody waiting then. */
const SYNC_BYTES = 16 * 1024 * 1024;

const FULL_CODES: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT']);

/** FOLDER-4 */
const LEFT_FREE = { share: 1 / 20, bytesMax: 1024 ** 3 };

/** Makes the folder where it is missing; rejects with ObjectsUnavailable where that is not possible. */
export async function openFolderStore(folder: string): Promise<ObjectStore> {
  const store = new FolderStore(folder);
  await store.open();
  return store;
}

class FolderStore implements ObjectStore {
  readonly #objects: string;
  readonly #incoming: string;

  constructor(folder: string) {
    this.#objects = join(folder, 'objects');
    this.#incoming = join(folder, 'incoming');
  }

  async open(): Promise<void> {
    await attempt('making its folder', async () => {
      for (const folder of [this.#objects, this.#incoming]) await makeFolder(folder);
    });
  }

  async put(key: string, bytes: AsyncIterable<Uint8Array>, expected: ExpectedBytes): Promise<ObjectHead> {
    checkKey(key);
    const incoming = join(this.#incoming, randomUUID());
    const target = join(this.#objects, key);
    try {
      await this.checkRoom();
      const blockBytes = Math.min(WRITE_BYTES, expected.bytesMax);
      await writeSynced(incoming, expectedBytes(bytes, expected), blockBytes, () => this.checkRoom());
      await attempt('storing an object', async () => {
        await makeFolder(dirname(target));
        await rename(incoming, target);
        await syncFolder(dirname(target));
      });
    } catch (error) {
      await rm(incoming, { force: true }).catch(() => {});
      throw error;
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
    const { head, file } = found;
    const { from, end, size, sha256 } = partOf(head.size, options);
    const pieces = readPieces(join(this.#objects, key), file, from, end);
    return { head, bytes: verifiedBytes(key, pieces, size, sha256) };
  }

  async delete(key: string): Promise<boolean> {
    checkKey(key);
    return await attempt('deleting an object', async () => {
      const gone = await unlink(join(this.#objects, key)).then(() => true, absent);
      return gone === true;
    });
  }

  async *list(prefix: string): AsyncGenerator<ObjectHead, void> {
    for await (const path of filesUnder(this.#objects)) {
      const key = relative(this.#objects, path).split(sep).join('/');
      if (!key.startsWith(prefix)) continue;
      const head = await this.head(key);
      if (head !== null) yield head;
    }
  }

  async removeLeftovers(olderThanMs: number): Promise<number> {
    const before = Date.now() - olderThanMs;
    let removed = 0;
    for await (const path of filesUnder(this.#incoming)) {
      await attempt('removing a leftover', async () => {
        const found = await stat(path).catch(absent);
        if (found === null || found.mtimeMs > before) return;
        await rm(path, { force: true });
        removed += 1;
      });
    }
    return removed;
  }

  async ping(): Promise<void> {
    await attempt('looking at its folder', () => stat(this.#incoming));
  }

  /** FOLDER-4 */
  async checkRoom(): Promise<void> {
    const { bavail, blocks, bsize } = await attempt('looking at its disk', () => statfs(this.#incoming));
    const leftFree = Math.min(LEFT_FREE.bytesMax, blocks * bsize * LEFT_FREE.share);
    if (bavail * bsize < leftFree)
      throw new ObjectsFull(
        `its disk has ${Math.floor((bavail * bsize) / 1024 ** 2)} MiB free, and ${Math.ceil(leftFree / 1024 ** 2)} MiB are left to others on it`,
      );
  }

  /** `file`: tells this object from one that replaces it. */
  async #find(key: string): Promise<{ readonly head: ObjectHead; readonly file: string } | null> {
    checkKey(key);
    return await attempt('looking for an object', async () => {
      const found = await stat(join(this.#objects, key)).catch(absent);
      return found === null || !found.isFile()
        ? null
        : { head: { key, size: found.size, storedAt: Math.floor(found.mtimeMs) }, file: identityOf(found) };
    });
  }
}

/** While one block is written the next is read and summed, and the disk takes what was written before. */
async function writeSynced(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  blockBytes: number,
  goesOn: () => Promise<void>,
): Promise<void> {
  const file = await attempt('writing an object', () => open(path, 'wx', 0o600));
  const underway = new Set<Promise<void>>();
  const begin = (work: () => Promise<void>): Promise<void> => {
    const begun = attempt('writing an object', work).finally(() => underway.delete(begun));
    // Whoever waits for it is told; who has failed before does not wait.
    begun.catch(() => {});
    underway.add(begun);
    return begun;
  };
  try {
    let at = 0;
    let syncedAt = 0;
    let writing = Promise.resolve();
    let syncing = Promise.resolve();
    for await (const block of inBlocks(bytes, blockBytes)) {
      await writing;
      if (at - syncedAt >= SYNC_BYTES) {
        await syncing;
        await goesOn();
        syncing = begin(() => file.datasync());
        syncedAt = at;
      }
      const begun = at;
      writing = begin(() => writeWhole(file, block, begun));
      at += block.length;
    }
    await writing;
    await syncing;
    await attempt('writing an object', () => file.sync());
  } finally {
    await Promise.allSettled(underway);
    await file.close();
  }
}

async function writeWhole(file: FileHandle, block: Uint8Array, from: number): Promise<void> {
  for (let done = 0; done < block.length;) {
    const { bytesWritten } = await file.write(block, done, block.length - done, from + done);
    done += bytesWritten;
  }
}

/** Each block is used again for the next but one. */
async function* inBlocks(bytes: AsyncIterable<Uint8Array>, blockBytes: number): AsyncGenerator<Uint8Array, void> {
  let block: Uint8Array | undefined;
  let spare: Uint8Array | undefined;
  let filled = 0;
  for await (const piece of bytes) {
    for (let at = 0; at < piece.length;) {
      block ??= Buffer.allocUnsafeSlow(Math.max(1, blockBytes));
      const taken = Math.min(block.length - filled, piece.length - at);
      block.set(piece.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < block.length) continue;
      yield block;
      [block, spare] = [spare, block];
      filled = 0;
    }
  }
  if (block !== undefined && filled > 0) yield block.subarray(0, filled);
}

/** A rename is durable once its folder is; where a platform cannot sync folders it needs none. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => null);
  if (handle === null) return;
  await handle.sync().catch(() => {});
  await handle.close();
}

/** From the file that was found, opened when the first byte is wanted; once it is open, replacing it changes nothing here. */
async function* readPieces(
  path: string,
  expectedFile: string,
  from: number,
  to: number,
): AsyncGenerator<Uint8Array, void> {
  if (from >= to) return;
  const file = await attempt('reading an object', () => open(path, 'r'));
  try {
    const opened = await attempt('reading an object', () => file.stat());
    if (identityOf(opened) !== expectedFile) throw new ObjectsUnavailable('the object was replaced before it was read');
    const read = (at: number): Promise<Buffer> => {
      const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, to - at));
      const reading = attempt('reading an object', () => file.read(buffer, 0, buffer.length, at)).then(
        ({ bytesRead }) => buffer.subarray(0, bytesRead),
      );
      // One that nobody comes to wait for.
      reading.catch(() => {});
      return reading;
    };
    // The next piece is on its way while this one is used.
    let next = read(from);
    for (let at = from; at < to;) {
      const piece = await next;
      if (piece.length === 0) return;
      at += piece.length;
      if (at < to) next = read(at);
      yield piece;
    }
  } finally {
    await file.close();
  }
}

async function* filesUnder(folder: string): AsyncGenerator<string, void> {
  const entries = await attempt('listing a folder', () => opendir(folder).catch(absent));
  if (entries === null) return;
  for await (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesUnder(path);
    else if (entry.isFile()) yield path;
  }
}

/** A number of a file that is gone is soon given to another: not so with the same time and size. */
function identityOf({
  ino,
  mtimeMs,
  size,
}: {
  readonly ino: number;
  readonly mtimeMs: number;
  readonly size: number;
}): string {
  return `${ino} ${mtimeMs} ${size}`;
}

function absent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
  throw error;
}

async function attempt<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const problem = `${what} failed (${systemReason(error)})`;
    const isFull = FULL_CODES.has((error as NodeJS.ErrnoException).code);
    throw new (isFull ? ObjectsFull : ObjectsUnavailable)(problem, { cause: error });
  }
}
