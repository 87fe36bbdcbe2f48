/**
 * The archives of caches as a runner has them: they come from the service that keeps them, and go to it, by way of a file of the
 * runner's own that no stage can reach.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, mkdirSync, readdirSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  ArtifactsFailed,
  letGo,
  restoreCaches,
  saveCaches,
  type BeginCacheAnswer,
  type BeginCacheRequest,
  type CachedStage,
  type CacheSource,
  type CacheTarget,
  type CacheToSave,
  type DropCacheRequest,
  type FindCacheAnswer,
  type FindCacheRequest,
  type FoundCache,
} from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { ServiceError, systemReason } from '@penstock/errors';
import { removeTree } from '@penstock/executor';
import type { SavedCache } from '@penstock/run';
import type { Log } from '@penstock/telemetry/log';
import { StorageCalls } from '../artifacts/storage-calls.ts';
import type { StorageLine } from '../artifacts/storage-line.ts';

export interface StageCachesOptions {
  readonly storage: StorageLine;
  /** This object's alone: archives on their way. */
  readonly folder: string;
  readonly log: Log;
}

/** An archive on its way. */
interface ArchiveFile {
  readonly descriptor: number;
  append(bytes: Uint8Array): Promise<void>;
  /** All of it. */
  read(): AsyncIterable<Uint8Array>;
}

export interface KeptArchivesOptions {
  readonly storage: StorageLine;
  readonly log: Log;
  /** Makes an empty one, which is gone when the work has ended. */
  readonly withFile: <T>(work: (file: ArchiveFile) => Promise<T>) => Promise<T>;
}

/** What stands in a stage's folders gives way. */
export type CachedJob = Omit<CachedStage, 'replace'> & { readonly job: Job };

export class StageCaches {
  readonly #options: KeptArchivesOptions;

  constructor(options: StageCachesOptions) {
    const { storage, folder, log } = options;
    this.#options = { storage, log, withFile: (work) => withFileIn(folder, work) };
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder))
      removeTree(join(folder, name)).catch((error: unknown) =>
        log.warn({ err: error }, 'an unfinished archive could not be removed'),
      );
  }

  /** Those that are to be saved when the stage has succeeded. @throws the signal's reason */
  async restore(stage: CachedJob): Promise<readonly CacheToSave[]> {
    const kept = new KeptArchives(this.#options, stage.job, stage.signal);
    return await restoreCaches(stage.job.caches ?? [], { ...stage, replace: true }, kept);
  }

  /** Those that were stored. Never rejects. */
  async save(toSave: readonly CacheToSave[], stage: CachedJob): Promise<readonly SavedCache[]> {
    return await saveCaches(toSave, stage, (signal) => new KeptArchives(this.#options, stage.job, signal));
  }
}

/** The archives that one attempt has and leaves. */
export class KeptArchives implements CacheSource<FoundCache>, CacheTarget<SavedCache> {
  readonly #options: KeptArchivesOptions;
  readonly #runId: string;
  readonly #calls: StorageCalls;

  constructor(options: KeptArchivesOptions, job: Job, signal: AbortSignal) {
    this.#options = options;
    const { runId, stage, attempt, session, credit, partition } = job;
    this.#runId = runId;
    const ref = { runId, stage, attempt, session, credit };
    this.#calls = new StorageCalls(options.storage, { ref, partition }, signal, 'cache-');
  }

  async find(key: string, restore: readonly string[]): Promise<FoundCache | null> {
    return (await this.#calls.ask<FindCacheRequest, FindCacheAnswer>('find', { key, restore })).found;
  }

  async lend(
    { id, scope, sha256, sizeBytes }: FoundCache,
    use: (descriptor: number) => Promise<void>,
  ): Promise<boolean> {
    return await this.#options.withFile(async (file) => {
      const hash = createHash('sha256');
      let received = 0;
      for await (const bytes of this.#calls.read(sha256, { scope })) {
        received += bytes.length;
        if (received > sizeBytes) break;
        hash.update(bytes);
        await file.append(bytes);
        letGo(bytes);
      }
      if (received !== sizeBytes || hash.digest('hex') !== sha256) {
        await this.#calls.ask<DropCacheRequest, null>('drop', { id });
        return false;
      }
      await use(file.descriptor);
      return true;
    });
  }

  async put(
    key: string,
    write: (take: (bytes: Buffer) => Promise<void>) => Promise<boolean>,
  ): Promise<SavedCache | null | undefined> {
    return await this.#options.withFile(async (file) => {
      const hash = createHash('sha256');
      let sizeBytes = 0;
      const isSomething = await write(async (bytes) => {
        sizeBytes += bytes.length;
        hash.update(bytes);
        await file.append(bytes);
      });
      if (!isSomething) return undefined;
      const { wanted } = await this.#calls.ask<BeginCacheRequest, BeginCacheAnswer>('begin', { key, sizeBytes });
      if (!wanted) return null;
      const sha256 = hash.digest('hex');
      await this.#calls.store(sha256, sizeBytes, () => file.read());
      return { key, sha256, bytes: sizeBytes };
    });
  }

  reasonOf(error: unknown): string {
    const isTold = error instanceof ServiceError || (error instanceof ArtifactsFailed && error.cause === undefined);
    if (!isTold && !isAbort(error))
      this.#options.log.warn({ err: error, runId: this.#runId }, 'a cache could not be restored or saved');
    if (error instanceof ServiceError || error instanceof ArtifactsFailed) return error.message;
    return (error as NodeJS.ErrnoException | null)?.code === undefined
      ? 'the runner met an error of its own'
      : systemReason(error);
  }
}

async function withFileIn<T>(folder: string, work: (file: ArchiveFile) => Promise<T>): Promise<T> {
  const path = join(folder, randomUUID());
  const file = await open(path, 'wx', 0o600);
  try {
    return await work({
      descriptor: file.fd,
      append: (bytes) => file.appendFile(bytes),
      read: () => readFile(path),
    });
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
}

/** Opened when the first byte is wanted: of what is kept already none is, and nobody would close it. */
async function* readFile(path: string): AsyncGenerator<Uint8Array, void> {
  yield* createReadStream(path);
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError');
}
