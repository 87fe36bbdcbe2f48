/**
 * What a stage leaves, kept once its processes are gone and before its result is told: so a SUCCESS has its artifacts. It
 * owns nothing between two stages.
 */
import {
  ArtifactsFailed,
  collectFiles,
  encodeManifest,
  isKeptAfter,
  keptLine,
  leftOutLines,
  MANIFEST_BYTES_MAX,
  nothingMatchesLine,
  notTakenTogether,
  type Collection,
  type CollectOptions,
  type KeptFile,
  type NotTaken,
} from '@penstock/artifacts';
import type { AttemptRef, Job, ResultRequest } from '@penstock/bus';
import { ServiceError } from '@penstock/errors';
import type { AttemptVerdict, StageUser } from '@penstock/executor';
import { StorageCalls } from './storage-calls.ts';
import type { StorageLine } from './storage-line.ts';

export interface StageArtifactsOptions {
  readonly storage: StorageLine;
  /** Reads the folders of stages; default: a process of its own. */
  readonly collect?: ((options: CollectOptions) => Promise<LeftFiles>) | undefined;
}

/** What a stage has left, as it is read. */
export type LeftFiles = Pick<Collection, 'listing' | 'read' | 'lend' | 'close'>;

export interface LeftByStage {
  readonly job: Job;
  readonly ref: AttemptRef;
  /** Its working folder. */
  readonly folder: string;
  /** Why there is nothing in it, or not everything. */
  readonly fault?: string | undefined;
  /** What its artifacts ask for and could not be brought there. */
  readonly notTaken?: NotTaken | undefined;
  readonly user: StageUser | undefined;
  readonly verdict: AttemptVerdict;
  readonly signal: AbortSignal;
  readonly remark: (text: string) => void;
  /** The text with `***` in place of what the stage was given of secrets, and of what it said is one. */
  readonly mask: (text: string) => string;
}

type Kept = NonNullable<ResultRequest['artifacts']>;

/** Of one stage, whatever its tier: its quota is looked at by who keeps the files. */
const STAGE_BYTES_MAX = 1024 ** 4;
/** Small ones are stored side by side: each waits for the other end's disk. */
const STORED_AT_ONCE = 8;
/** Of these the bytes are in memory meanwhile. */
const SMALL_BYTES = 256 * 1024;
export class StageArtifacts {
  readonly #options: StageArtifactsOptions;

  constructor(options: StageArtifactsOptions) {
    this.#options = options;
  }

  /** Undefined: nothing was to be kept, or there was nothing. @throws ArtifactsFailed; the signal's reason */
  async keep(left: LeftByStage): Promise<Kept | undefined> {
    const { job, folder, user, verdict, signal, remark } = left;
    const asked = job.artifacts;
    if (asked === undefined || !isKeptAfter(asked.when, verdict)) return undefined;
    if (left.fault !== undefined) throw new ArtifactsFailed('artifacts', left.fault);
    const { collect = collectFiles } = this.#options;
    const collection = await collect({ folder, patterns: asked.paths, user, bytesMax: STAGE_BYTES_MAX, signal });
    try {
      const { listing } = collection;
      const notTaken = notTakenTogether(left.notTaken === undefined ? [listing] : [left.notTaken, listing]);
      for (const line of leftOutLines({ ...listing, ...notTaken })) remark(line);
      const files = withoutSecrets(collection.listing.files, left);
      if (files.length === 0) {
        const nothing = nothingMatchesLine(asked.paths);
        if (asked.required) throw new ArtifactsFailed('artifacts', nothing);
        remark(nothing);
        return undefined;
      }
      return await this.#store(left, collection, files);
    } finally {
      await collection.close();
    }
  }

  async #store(
    { job, ref, signal, remark }: LeftByStage,
    collection: LeftFiles,
    files: readonly KeptFile[],
  ): Promise<Kept> {
    const calls = new StorageCalls(this.#options.storage, { ref, partition: job.partition }, signal);
    try {
      await calls.begin(files.length, bytesOf(files));
      await storeAll(calls, collection, files);
      const manifest = encodeManifest(files);
      if (manifest.length > MANIFEST_BYTES_MAX)
        throw new ArtifactsFailed('quota', 'the names of the files are too long to be kept');
      const sealed = await calls.seal(manifest);
      remark(keptLine(sealed.files, sealed.bytes));
      return { manifest: sealed.sha256, files: sealed.files, bytes: sealed.bytes };
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError)) throw error;
      const reason = error.code === 'QUOTA_EXCEEDED' ? 'quota' : 'artifacts';
      throw new ArtifactsFailed(reason, `the files could not be kept: ${error.message}`, { cause: error });
    }
  }
}

/** Names are shown to all who may see the run, and two of them masked could be one: such a file is not kept. */
function withoutSecrets(files: readonly KeptFile[], { mask, remark }: LeftByStage): readonly KeptFile[] {
  const shown = files.filter(({ path }) => mask(path) === path);
  const count = files.length - shown.length;
  if (count > 0)
    remark(
      count === 1
        ? '1 file is not kept: its name holds a secret'
        : `${count} files are not kept: their names hold secrets`,
    );
  return shown;
}

/** What two files have alike is stored once. */
async function storeAll(calls: StorageCalls, collection: LeftFiles, files: readonly KeptFile[]): Promise<void> {
  const stored = new Set<string>();
  const underway = new Set<Promise<void>>();
  const failures: unknown[] = [];
  for (const file of files) {
    if (stored.has(file.sha256)) continue;
    stored.add(file.sha256);
    if (failures.length > 0) break;
    if (file.sizeBytes > SMALL_BYTES) {
      await calls.store(file.sha256, file.sizeBytes, () => collection.lend(file));
      continue;
    }
    // Read before the next file is asked for; stored beside it.
    const bytes = Buffer.concat(await Array.fromAsync(collection.read(file)));
    const storing = calls
      .store(file.sha256, file.sizeBytes, () => oneByOne(bytes))
      .catch((error: unknown) => void failures.push(error))
      .finally(() => underway.delete(storing));
    underway.add(storing);
    if (underway.size >= STORED_AT_ONCE) await Promise.race(underway);
  }
  await Promise.all(underway);
  if (failures.length > 0) throw failures[0];
}

async function* oneByOne(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield bytes;
}

function bytesOf(files: readonly KeptFile[]): number {
  return files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
