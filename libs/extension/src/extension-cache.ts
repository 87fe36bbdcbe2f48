/**
 * Unpacked packages by hash, shared by all processes that are given the same folder. Owns that folder:
 *
 *   <hash>/package/…   the files of the package, read-only
 *   <hash>/bytes       how much they take; its time is that of the last use
 *   .new-…, .old-…     what is being made or removed
 *
 * 1. A folder `<hash>` is there as a whole or not at all: it is renamed into place, and out of it before it is removed.
 * 2. The hash is checked over all bytes before the first is unpacked.
 * 3. At most `bytesMax` are kept. The least recently used go first; none that is held, or was asked for within `keepMs`,
 *    goes, since a stage may be working with it: where that leaves no room, the new one is refused. To other processes a
 *    holder says so by the time of use, again and again.
 * 4. Several that ask for one hash at once share one fetch; several processes may each fetch it, and one of them is kept.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { makeFolder } from '@penstock/async';
import { CacheFull, PackageRefused } from './errors.ts';
import { PACKAGE_LIMITS } from './package-limits.ts';
import { removeFolder, unpackPackage } from './unpack-package.ts';

export interface ExtensionCacheOptions {
  readonly bytesMax: number;
  /** How long a package is safe after it was asked for; default 1 h. For longer it must be held. */
  readonly keepMs?: number | undefined;
  /** Milliseconds since 1970; default: the clock. */
  readonly now?: (() => number) | undefined;
}

const HASH = /^[0-9a-f]{64}$/;
/** The default of a stage's `timeout`. */
const KEEP_MS_DEFAULT = 3_600_000;
/** How often within `keepMs` a holder says that it is still there. */
const SIGNS_OF_LIFE = 3;
/** What a process that ended in the middle has left is older than any download. */
const LEFTOVER_MS = 3_600_000;

export class ExtensionCache {
  readonly #folder: string;
  readonly #bytesMax: number;
  readonly #keepMs: number;
  readonly #now: () => number;
  readonly #underWay = new Map<string, Promise<string>>();
  readonly #held = new Map<string, number>();
  #holding: NodeJS.Timeout | undefined;
  /** Making room is one at a time, so that two do not count the same bytes as free. */
  #room: Promise<void> = Promise.resolve();

  constructor(folder: string, options: ExtensionCacheOptions) {
    this.#folder = folder;
    this.#bytesMax = options.bytesMax;
    this.#keepMs = options.keepMs ?? KEEP_MS_DEFAULT;
    this.#now = options.now ?? Date.now;
  }

  /**
   * The folder with the package's files. `fetch` is called where it is not there yet; its bytes must have the hash. Throws
   * PackageRefused for bytes that have another, or that are no sound package; CacheFull; and what `fetch` throws.
   */
  async ensure(hash: string, fetch: () => AsyncIterable<Uint8Array>): Promise<string> {
    if (!HASH.test(hash)) throw new PackageRefused('hash', 'a package is named by its SHA-256 in lower-case hex');
    const known = await this.find(hash);
    if (known !== undefined) return known;
    let making = this.#underWay.get(hash);
    if (making === undefined) {
      making = this.#make(hash, fetch).finally(() => this.#underWay.delete(hash));
      this.#underWay.set(hash, making);
    }
    return await making;
  }

  /** Does what `ensure` does; the package stays until `release` is called, however long that takes. */
  async hold(
    hash: string,
    fetch: () => AsyncIterable<Uint8Array>,
  ): Promise<{ readonly folder: string; readonly release: () => void }> {
    this.#held.set(hash, (this.#held.get(hash) ?? 0) + 1);
    this.#holding ??= setInterval(() => void this.#showLife(), this.#keepMs / SIGNS_OF_LIFE).unref();
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      const count = (this.#held.get(hash) ?? 1) - 1;
      if (count > 0) this.#held.set(hash, count);
      else this.#held.delete(hash);
      if (this.#held.size > 0) return;
      clearInterval(this.#holding);
      this.#holding = undefined;
    };
    try {
      return { folder: await this.ensure(hash, fetch), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #showLife(): Promise<void> {
    for (const hash of this.#held.keys()) await this.find(hash).catch(() => undefined);
  }

  /** The folder, where the package is there already. */
  async find(hash: string): Promise<string | undefined> {
    if (!HASH.test(hash)) return undefined;
    const place = join(this.#folder, hash);
    const now = new Date(this.#now());
    try {
      await utimes(join(place, 'bytes'), now, now);
      return join(place, 'package');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      throw error;
    }
  }

  async #make(hash: string, fetch: () => AsyncIterable<Uint8Array>): Promise<string> {
    await makeFolder(this.#folder);
    const draft = join(this.#folder, `.new-${randomUUID()}`);
    await mkdir(draft, { mode: 0o700 });
    try {
      const packed = join(draft, 'packed');
      await download(fetch(), packed, hash);
      const { unpackedBytes } = await unpackPackage(createReadStream(packed), join(draft, 'package'), { hash });
      await rm(packed);
      await writeFile(join(draft, 'bytes'), String(unpackedBytes));
      await this.#makeRoom(unpackedBytes);
      await this.#place(draft, hash);
    } finally {
      await removeFolder(draft);
    }
    return join(this.#folder, hash, 'package');
  }

  async #place(draft: string, hash: string): Promise<void> {
    try {
      const now = new Date(this.#now());
      await utimes(join(draft, 'bytes'), now, now);
      await rename(draft, join(this.#folder, hash));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Another process was faster: what it has put there has the same hash.
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    }
  }

  async #makeRoom(bytes: number): Promise<void> {
    const turn = this.#room.then(async () => await this.#evict(bytes));
    this.#room = turn.catch(() => {});
    await turn;
  }

  async #evict(wanted: number): Promise<void> {
    const entries = await this.#entries();
    let total = entries.reduce((sum, entry) => sum + entry.bytes, 0);
    const before = this.#now() - this.#keepMs;
    for (const entry of entries.toSorted((left, right) => left.usedAt - right.usedAt)) {
      if (total + wanted <= this.#bytesMax) return;
      if (entry.usedAt > before) break;
      if (this.#held.has(entry.hash)) continue;
      if (await this.#remove(entry)) total -= entry.bytes;
    }
    if (total + wanted > this.#bytesMax) {
      throw new CacheFull(
        `the cache of extensions has no room: ${wanted} bytes are wanted, ${total} of at most ${this.#bytesMax} are taken by packages that may be in use`,
      );
    }
  }

  async #remove(entry: { readonly hash: string; readonly usedAt: number }): Promise<boolean> {
    const old = join(this.#folder, `.old-${randomUUID()}`);
    try {
      await rename(join(this.#folder, entry.hash), old);
    } catch {
      return false;
    }
    // Somebody has asked for it since it was chosen: it goes back, and is seen as missing for that moment only.
    if (
      Math.abs((await stat(join(old, 'bytes'))).mtimeMs - entry.usedAt) > 1 &&
      (await rename(old, join(this.#folder, entry.hash)).then(
        () => true,
        () => false,
      ))
    )
      return false;
    await removeFolder(old);
    return true;
  }

  async #entries(): Promise<{ readonly hash: string; readonly bytes: number; readonly usedAt: number }[]> {
    const entries = [];
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      if (HASH.test(name)) {
        try {
          const bytes = Number(await readFile(join(path, 'bytes'), 'utf8'));
          entries.push({
            hash: name,
            bytes: Number.isFinite(bytes) ? bytes : 0,
            usedAt: (await stat(join(path, 'bytes'))).mtimeMs,
          });
        } catch {
          // It was removed meanwhile.
        }
      } else if (/^\.(new|old)-/.test(name)) {
        const age = await stat(path).then(
          ({ mtimeMs }) => Date.now() - mtimeMs,
          () => 0,
        );
        if (age > LEFTOVER_MS) await removeFolder(path).catch(() => {});
      }
    }
    return entries;
  }
}

/** Writes the bytes into a file, and refuses them where their hash is another. */
async function download(bytes: AsyncIterable<Uint8Array>, path: string, hash: string): Promise<void> {
  const digest = createHash('sha256');
  let size = 0;
  await pipeline(
    bytes,
    async function* measure(source: AsyncIterable<Uint8Array>) {
      for await (const chunk of source) {
        size += chunk.length;
        if (size > PACKAGE_LIMITS.bytesMax)
          throw new PackageRefused('bytes', `the package is larger than ${PACKAGE_LIMITS.bytesMax / 1024 / 1024} MiB`);
        digest.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(path, { flags: 'wx', mode: 0o600 }),
  );
  const found = digest.digest('hex');
  if (found !== hash) throw new PackageRefused('hash', `the package has the SHA-256 ${found}, not ${hash}`);
}
