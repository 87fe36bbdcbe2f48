/**
 * Caches of a stage: laid out in its folders before it starts, and saved once it has succeeded, before its result is told. An
 * archive lies in a file of the runner's own meanwhile, which no stage can reach.
 *
 *  STAGECACHE-1 Nothing that goes wrong with a cache fails a stage: a line of its log says so, and it goes without.
 *  STAGECACHE-2 Nothing of an archive is laid out before all of it was received and has the hash that was found.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync } from 'node:fs';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ArtifactsFailed,
  collectFiles,
  filesText,
  leftOutLines,
  packCache,
  unpackCache,
  type BeginCacheAnswer,
  type BeginCacheRequest,
  type DropCacheRequest,
  type FindCacheAnswer,
  type FindCacheRequest,
  type FoundCache,
} from '@penstock/artifacts';
import type { Bus, Job } from '@penstock/bus';
import { ServiceError, systemReason } from '@penstock/errors';
import { removeTree, type StageFolders, type StageUser } from '@penstock/executor';
import { PIPELINE_LIMITS } from '@penstock/pipeline';
import type { CacheText, SavedCache } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';
import { StorageCalls } from '../artifacts/storage-calls.ts';
import type { CacheToSave } from '../workspace/preparation.ts';

export interface StageCachesOptions {
  readonly bus: Bus;
  readonly runnerId: string;
  /** This object's alone: archives on their way. */
  readonly folder: string;
  readonly log: Log;
}

export interface CachedStage {
  readonly job: Job;
  readonly folders: Pick<StageFolders, 'workspace' | 'home'>;
  readonly user: StageUser | undefined;
  readonly signal: AbortSignal;
  readonly remark: (text: string) => void;
}

/** Of all that a stage saves: its result waits for it. */
const SAVE_MS_MAX = 10 * 60_000;
/** Of the files that a hash is made of. */
const HASHED_BYTES_MAX = 1024 ** 3;

export class StageCaches {
  readonly #options: StageCachesOptions;

  constructor(options: StageCachesOptions) {
    this.#options = options;
    const { folder, log } = options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder))
      removeTree(join(folder, name)).catch((error: unknown) =>
        log.warn({ err: error }, 'an unfinished archive could not be removed'),
      );
  }

  /** Those that are to be saved when the stage has succeeded. @throws the signal's reason */
  async restore(stage: CachedStage): Promise<readonly CacheToSave[]> {
    const { job, signal, remark } = stage;
    const hashes = new Map<string, Promise<string>>();
    const toSave = new Map<string, CacheToSave>();
    for (const { key: text, paths, restore } of job.caches ?? []) {
      try {
        const key = checkedKey(await this.#text(text, stage, hashes));
        const prefixes: string[] = [];
        for (const each of restore) prefixes.push(checkedKey(await this.#text(each, stage, hashes)));
        const found = await this.#restoreOne(stage, key, prefixes, paths);
        if (found !== key && !toSave.has(key)) toSave.set(key, { key, paths });
      } catch (error) {
        signal.throwIfAborted();
        remark(`a cache is left out: ${reasonOf(error)}`);
        if (!isTold(error)) this.#options.log.warn({ err: error, runId: job.runId }, 'a cache could not be looked up');
      }
    }
    return [...toSave.values()];
  }

  /** Those that were stored. Never rejects. */
  async save(toSave: readonly CacheToSave[], stage: CachedStage): Promise<readonly SavedCache[]> {
    const { job, remark, signal } = stage;
    const bounded = { ...stage, signal: AbortSignal.any([signal, AbortSignal.timeout(SAVE_MS_MAX)]) };
    const saved: SavedCache[] = [];
    for (const { key, paths } of toSave) {
      try {
        const one = await this.#saveOne(bounded, key, paths);
        if (one !== undefined) saved.push(one);
      } catch (error) {
        const why = bounded.signal.aborted && !signal.aborted ? 'it took too long' : reasonOf(error);
        remark(`the cache ${quoted(key)} is not saved: ${why}`);
        if (!isTold(error) && !bounded.signal.aborted)
          this.#options.log.warn({ err: error, runId: job.runId }, 'a cache could not be saved');
        if (bounded.signal.aborted) break;
      }
    }
    return saved;
  }

  /** The key of what was laid out; undefined: nothing was. */
  async #restoreOne(
    stage: CachedStage,
    key: string,
    prefixes: readonly string[],
    paths: readonly string[],
  ): Promise<string | undefined> {
    const { signal, remark } = stage;
    const calls = this.#calls(stage, signal);
    try {
      const { found } = await calls.ask<FindCacheRequest, FindCacheAnswer>('find', { key, restore: prefixes });
      if (found === null) {
        remark(`no cache ${quoted(key)} is there yet`);
        return undefined;
      }
      const isLaidOut = await this.#layOut(stage, calls, found, paths);
      return isLaidOut ? found.key : undefined;
    } catch (error) {
      signal.throwIfAborted();
      remark(`the cache ${quoted(key)} cannot be had: ${reasonOf(error)}; the stage goes on without it`);
      if (!isTold(error)) this.#options.log.warn({ err: error }, 'a cache could not be restored');
      return undefined;
    }
  }

  /** False: it is damaged, or not there any more. */
  async #layOut(
    { folders, user, signal, remark }: CachedStage,
    calls: StorageCalls,
    { id, scope, key, sha256, sizeBytes }: FoundCache,
    paths: readonly string[],
  ): Promise<boolean> {
    return await this.#withFile(async (file) => {
      const hash = createHash('sha256');
      let received = 0;
      for await (const bytes of calls.read(sha256, { scope })) {
        received += bytes.length;
        if (received > sizeBytes) break;
        hash.update(bytes);
        await file.appendFile(bytes);
      }
      if (received !== sizeBytes || hash.digest('hex') !== sha256) {
        remark(`the cache ${quoted(key)} is damaged; the stage goes on without it`);
        await calls.ask<DropCacheRequest, null>('drop', { id });
        return false;
      }
      const { workspace, home } = folders;
      const archive = await open(`/proc/self/fd/${file.fd}`, 'r');
      try {
        const { files, bytes } = await unpackCache({ workspace, home, paths, user, signal }, archive.fd, true);
        remark(`restored the cache ${quoted(key)}: ${filesText(files, bytes)}`);
      } finally {
        await archive.close();
      }
      return true;
    });
  }

  async #saveOne(stage: CachedStage, key: string, paths: readonly string[]): Promise<SavedCache | undefined> {
    const { folders, user, signal, remark } = stage;
    const { workspace, home } = folders;
    const calls = this.#calls(stage, signal);
    return await this.#withFile(async (file, path) => {
      const hash = createHash('sha256');
      let sizeBytes = 0;
      const packed = await packCache({ workspace, home, paths, user, signal }, async (bytes) => {
        sizeBytes += bytes.length;
        hash.update(bytes);
        await file.appendFile(bytes);
      });
      for (const line of leftOutLines({ ...packed, files: [], folders: [] })) remark(line);
      if (packed.files === 0) {
        remark(`the cache ${quoted(key)} is not saved: there is nothing at its paths`);
        return undefined;
      }
      const { wanted } = await calls.ask<BeginCacheRequest, BeginCacheAnswer>('begin', { key, sizeBytes });
      if (!wanted) {
        remark(`the cache ${quoted(key)} is there by now, or being saved by another stage`);
        return undefined;
      }
      const sha256 = hash.digest('hex');
      await calls.store(sha256, sizeBytes, () => createReadStream(path));
      remark(`saved the cache ${quoted(key)}: ${filesText(packed.files, packed.bytes)}`);
      return { key, sha256, bytes: sizeBytes };
    });
  }

  /** With its hashes reckoned, of the working folder as it is. */
  async #text(text: CacheText, stage: CachedStage, hashes: Map<string, Promise<string>>): Promise<string> {
    let whole = '';
    for (const part of text) {
      if (typeof part === 'string') {
        whole += part;
        continue;
      }
      const id = JSON.stringify(part.hash);
      const known = hashes.get(id) ?? hashOf(part.hash, stage);
      hashes.set(id, known);
      whole += await known;
    }
    return whole;
  }

  #calls({ job }: CachedStage, signal: AbortSignal): StorageCalls {
    const { bus, runnerId } = this.#options;
    const { runId, stage, attempt, session, credit, partition } = job;
    const ref = { runId, stage, attempt, session, credit };
    return new StorageCalls(bus, runnerId, { ref, partition }, signal, 'cache-');
  }

  async #withFile<T>(work: (file: FileHandle, path: string) => Promise<T>): Promise<T> {
    const path = join(this.#options.folder, randomUUID());
    const file = await open(path, 'wx', 0o600);
    try {
      return await work(file, path);
    } finally {
      await file.close();
      await rm(path, { force: true });
    }
  }
}

async function hashOf(patterns: readonly string[], { folders, user, signal, remark }: CachedStage): Promise<string> {
  const collection = await collectFiles({
    folder: folders.workspace,
    patterns,
    user,
    bytesMax: HASHED_BYTES_MAX,
    signal,
  });
  try {
    const { files } = collection.listing;
    if (files.length === 0) remark(`no file matches hash(${patterns.map(quoted).join(', ')})`);
    const hash = createHash('sha256');
    for (const { path, sha256 } of files) hash.update(`${path}\0${sha256}\n`);
    return hash.digest('hex');
  } finally {
    await collection.close();
  }
}

function checkedKey(key: string): string {
  const { cacheKeyLengthMax } = PIPELINE_LIMITS;
  if (key === '' || key.length > cacheKeyLengthMax || !key.isWellFormed() || /\p{Cc}/u.test(key))
    throw new ArtifactsFailed('artifacts', `its key is no text of 1 to ${cacheKeyLengthMax} characters on one line`);
  return key;
}

function quoted(text: string): string {
  return `'${text}'`;
}

function isTold(error: unknown): boolean {
  return error instanceof ServiceError || (error instanceof ArtifactsFailed && error.cause === undefined);
}

function reasonOf(error: unknown): string {
  if (error instanceof ServiceError || error instanceof ArtifactsFailed) return error.message;
  return (error as NodeJS.ErrnoException | null)?.code === undefined
    ? 'the runner met an error of its own'
    : systemReason(error);
}
