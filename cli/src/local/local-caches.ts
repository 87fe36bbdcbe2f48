/**
 * Caches of local runs: archives in the user's cache folder, those of one folder apart from those of another. It owns
 *
 *   <scope>/<key>/about    its key and the hash of its archive; its time is that of the last use
 *   <scope>/<key>/archive  its time is that of its making
 *   .new-…, .old-…         what is being made or removed
 *
 *  LOCALCACHE-1 An entry is there as a whole or not at all: it is renamed into place, and out of it before it is removed. The first of a
 *     key stands.
 *  LOCALCACHE-2 What stands in the user's own folder gives way to nothing, and the user's own home is left alone.
 *  LOCALCACHE-3 At most `BYTES_MAX` are kept, and what was used within `UNUSED_MS_MAX`; the least recently used goes first.
 */
import { createHash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, readdir, readFile, realpath, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ArtifactsFailed,
  restoreCaches,
  saveCaches,
  type CachedStage,
  type CacheSource,
  type CacheTarget,
  type CacheToSave,
} from '@penstock/artifacts';
import { makeFolder } from '@penstock/async';
import { systemReason } from '@penstock/errors';
import type { StageUser } from '@penstock/executor';
import type { StageWork } from '@penstock/run';
import { printableText } from '../output/printable-text.ts';

export interface CachedLocally {
  /** The folder that the run was called in. */
  readonly run: string;
  /** The stage's workspace. */
  readonly folder: string;
  /** Undefined: it is the user's own. */
  readonly home: string | undefined;
  readonly user: StageUser | undefined;
  readonly signal: AbortSignal;
  readonly remark: (text: string) => void;
}

interface LocalEntry {
  readonly folder: string;
  readonly key: string;
  /** Of the archive. */
  readonly sha256: string;
  readonly bytes: number;
  readonly madeAt: number;
  readonly usedAt: number;
}

/** Of all archives together: several times the `node_modules` of a large repository. */
const BYTES_MAX = 5 * 1024 ** 3;
const UNUSED_MS_MAX = 30 * 24 * 3_600_000;
/** What a process that ended in the middle has left is older than any saving. */
const LEFTOVER_MS = 3_600_000;
/** What has put more there was no run. */
const ABOUT_BYTES_MAX = 4 * 1024;

export class LocalCaches {
  readonly #root: string;
  readonly #bytesMax: number;

  constructor(root: string, bytesMax = BYTES_MAX) {
    this.#root = root;
    this.#bytesMax = bytesMax;
  }

  /** Those that are to be saved when the stage has succeeded. Never rejects. */
  async restore(asked: NonNullable<StageWork['caches']>, stage: CachedLocally): Promise<readonly CacheToSave[]> {
    if (asked.length === 0 || stage.signal.aborted) return [];
    try {
      const { run, folder } = stage;
      const meant = asked.filter(({ paths }) => isHere(paths, stage));
      // In a copy of the files nothing is the user's own.
      return await restoreCaches(meant, { ...placeOf(stage), replace: folder !== run }, await this.#shelf(run));
    } catch (error) {
      if (stage.signal.aborted) return [];
      throw error;
    }
  }

  /** Never rejects. */
  async save(toSave: readonly CacheToSave[], stage: CachedLocally): Promise<void> {
    if (toSave.length === 0) return;
    const shelf = await this.#shelf(stage.run);
    await saveCaches(toSave, placeOf(stage), () => shelf);
  }

  async #shelf(of: string): Promise<LocalShelf> {
    const scope = sumOf(await realpath(of).catch(() => of));
    return new LocalShelf(this.#root, scope, this.#bytesMax);
  }
}

function placeOf({ folder, home, user, signal, remark }: CachedLocally): Omit<CachedStage, 'replace'> {
  return { folders: { workspace: folder, home }, user, signal, remark };
}

/** Whether any of the paths is looked at (LOCALCACHE-2). */
function isHere(paths: readonly string[], { home, remark }: CachedLocally): boolean {
  if (home !== undefined || !paths.every((path) => path.startsWith('!') || path.startsWith('~/'))) return true;
  remark(`a cache of ${paths.join(', ')} is left out: your own home stays as it is`);
  return false;
}

class LocalShelf implements CacheSource<LocalEntry>, CacheTarget<true> {
  readonly #root: string;
  readonly #scope: string;
  readonly #bytesMax: number;

  constructor(root: string, scope: string, bytesMax: number) {
    this.#root = root;
    this.#scope = join(root, scope);
    this.#bytesMax = bytesMax;
  }

  async find(key: string, prefixes: readonly string[]): Promise<LocalEntry | null> {
    const exact = await entryAt(this.#placeOf(key));
    if (exact?.key === key) return exact;
    if (prefixes.length === 0) return null;
    const entries = await entriesIn(this.#scope);
    for (const prefix of prefixes) {
      const alike = entries.filter((entry) => entry.key.startsWith(prefix));
      const newest = alike.toSorted((a, b) => b.madeAt - a.madeAt)[0];
      if (newest !== undefined) return newest;
    }
    return null;
  }

  async lend({ folder, sha256 }: LocalEntry, use: (descriptor: number) => Promise<void>): Promise<boolean> {
    const file = await open(join(folder, 'archive'), constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const hash = createHash('sha256');
      for await (const part of file.createReadStream({ start: 0, autoClose: false })) hash.update(part as Buffer);
      if (hash.digest('hex') !== sha256) {
        await this.#remove(folder);
        return false;
      }
      await use(file.fd);
    } finally {
      await file.close();
    }
    const now = new Date();
    await utimes(join(folder, 'about'), now, now).catch(() => {});
    return true;
  }

  /** Keeps LOCALCACHE-1. */
  async put(
    key: string,
    write: (take: (bytes: Buffer) => Promise<void>) => Promise<boolean>,
  ): Promise<true | null | undefined> {
    const draft = await this.#makeDraft();
    try {
      const archive = await open(join(draft, 'archive'), 'wx', 0o600);
      const hash = createHash('sha256');
      let bytes = 0;
      try {
        const isSomething = await write(async (part) => {
          bytes += part.length;
          if (bytes > this.#bytesMax)
            throw new ArtifactsFailed('artifacts', `all caches together may have ${this.#bytesMax} bytes`);
          hash.update(part);
          await archive.appendFile(part);
        });
        if (!isSomething) return undefined;
      } finally {
        await archive.sync();
        await archive.close();
      }
      const about = { key, sha256: hash.digest('hex') };
      await writeFile(join(draft, 'about'), JSON.stringify(about), { mode: 0o600 });
      await this.#makeRoom(bytes);
      const place = this.#placeOf(key);
      // What a power cut has left there is no entry, and would be in the way of every later one.
      if ((await entryAt(place)) === null) await this.#remove(place);
      await rename(draft, place);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOTEMPTY' || code === 'EEXIST') return null;
      throw error;
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }

  async #makeDraft(): Promise<string> {
    const draft = join(this.#root, `.new-${randomUUID()}`);
    try {
      await makeFolder(this.#scope);
      await mkdir(draft, { mode: 0o700 });
    } catch (error) {
      const why = `${printableText(this.#root)} cannot be written (${systemReason(error)})`;
      throw new ArtifactsFailed('artifacts', `${why}: let XDG_CACHE_HOME name a folder that can be`, { cause: error });
    }
    return draft;
  }

  reasonOf(error: unknown): string {
    if (error instanceof ArtifactsFailed) return error.message;
    if ((error as NodeJS.ErrnoException | null)?.code !== undefined) return systemReason(error);
    return error instanceof Error ? error.message : String(error);
  }

  /** A key may hold anything, and be longer than a name. */
  #placeOf(key: string): string {
    return join(this.#scope, sumOf(key));
  }

  /** Keeps LOCALCACHE-3. */
  async #makeRoom(bytes: number): Promise<void> {
    const scopes = await readdir(this.#root, { withFileTypes: true });
    const entries: LocalEntry[] = [];
    for (const scope of scopes) {
      const path = join(this.#root, scope.name);
      if (!scope.name.startsWith('.')) entries.push(...(await entriesIn(path)));
      else if ((await ageOf(path)) > LEFTOVER_MS) await rm(path, { recursive: true, force: true });
    }
    let sum = entries.reduce((all, entry) => all + entry.bytes, bytes);
    for (const entry of entries.toSorted((a, b) => a.usedAt - b.usedAt)) {
      if (sum <= this.#bytesMax && Date.now() - entry.usedAt <= UNUSED_MS_MAX) return;
      await this.#remove(entry.folder);
      sum -= entry.bytes;
    }
  }

  async #remove(folder: string): Promise<void> {
    const old = join(this.#root, `.old-${randomUUID()}`);
    // Another process may have been faster.
    if (
      await rename(folder, old).then(
        () => true,
        () => false,
      )
    )
      await rm(old, { recursive: true, force: true });
  }
}

async function entriesIn(scope: string): Promise<LocalEntry[]> {
  const names = await readdir(scope).catch(() => []);
  const entries: LocalEntry[] = [];
  for (const name of names) {
    const entry = await entryAt(join(scope, name));
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

/** Null: there is none, or what stands there was not put there by a run. */
async function entryAt(folder: string): Promise<LocalEntry | null> {
  try {
    const [about, archive] = await Promise.all([stat(join(folder, 'about')), stat(join(folder, 'archive'))]);
    if (about.size > ABOUT_BYTES_MAX) return null;
    const { key, sha256 } = JSON.parse(await readFile(join(folder, 'about'), 'utf8')) as Record<string, unknown>;
    if (typeof key !== 'string' || typeof sha256 !== 'string') return null;
    return { folder, key, sha256, bytes: archive.size, madeAt: archive.mtimeMs, usedAt: about.mtimeMs };
  } catch {
    return null;
  }
}

async function ageOf(path: string): Promise<number> {
  const made = await stat(path).catch(() => undefined);
  return made === undefined ? 0 : Date.now() - made.mtimeMs;
}

function sumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
