/**
 * Keeps what stages leave: the one part of the system that reads and writes their bytes. What is stored here is seen by nobody
 * before the run's journal names its list.
 *
 *  KEEPER-1 A runner stores, and reads, only for an attempt that lives with it, and only in the run of that attempt;
 *     it reads also in the runs whose stages that run has adopted.
 *  KEEPER-2 A list is stored after all that it names was stored.
 *  KEEPER-3 What lies here and counts for no key yet is bounded by key (UNSEALED-2).
 */
import { createHash } from 'node:crypto';
import type { Time } from '@penstock/async';
import {
  ArtifactsFailed,
  decodeManifest,
  type BeginRequest,
  type GetRequest,
  type OpenUploadAnswer,
  type OpenUploadRequest,
  type PartAnswer,
  type PartRequest,
  type PutRequest,
  type SealAnswer,
  type SealRequest,
  type UsageAnswer,
  type UsageRequest,
} from '@penstock/artifacts';
import type { Bus, LivingAttempt } from '@penstock/bus';
import { BadUserInput, Forbidden, QuotaExceeded } from '@penstock/errors';
import type { ObjectStore } from '@penstock/object-store';
import { StoreUnavailable, type DocumentStore } from '@penstock/store';
import { megabytes } from '../catalogue/megabytes.ts';
import { asUnavailable } from '../catalogue/uploads.ts';
import { Contents } from './contents.ts';
import type { DirectDoor } from './direct-door.ts';
import type { Grants } from './grants.ts';
import { decoded, type IncomingUploads } from './incoming.ts';
import { sweepArtifacts, type SweepDelays, type SweepParts, type SweptArtifacts } from './sweep.ts';
import { Unsealed, weightOf } from './unsealed.ts';
import { KeptUsage } from './usage.ts';

export interface KeeperOptions {
  readonly bus: Bus;
  readonly grants: Grants;
  readonly incoming: IncomingUploads;
  /** For those who can read straight. */
  readonly door?: Pick<DirectDoor, 'toGet'> | undefined;
  readonly store: DocumentStore;
  readonly objects: ObjectStore;
  readonly runOf: SweepParts['runOf'];
  readonly now: () => number;
  /** Default: the machine's. */
  readonly time?: Pick<Time, 'bootNow'> | undefined;
}

export class ArtifactKeeper {
  readonly #options: KeeperOptions;
  readonly #contents: Contents;
  readonly #grants: Grants;
  readonly #incoming: IncomingUploads;
  readonly #usage: KeptUsage;
  /** KEEPER-3, by run. */
  readonly #unsealed: Unsealed;

  constructor(options: KeeperOptions) {
    this.#options = options;
    this.#incoming = options.incoming;
    this.#contents = new Contents(options.objects, 'artifacts/', options.door);
    this.#grants = options.grants;
    this.#usage = new KeptUsage(options.store, options.now, options.time);
    this.#unsealed = new Unsealed({
      ...options,
      sealedOf: (key, since) => orUnavailable(this.#usage.weightByRun(key, since)),
      expiredOf: (key) => this.#usage.expiredOf(key),
    });
  }

  async begin(runner: string, request: BeginRequest): Promise<void> {
    const attempt = await this.#grants.of(runner, request);
    await this.#checkQuota(attempt, request.bytes);
    await this.#contents.checkRoom();
  }

  async put(runner: string, request: PutRequest): Promise<void> {
    const attempt = await this.#grants.of(runner, request);
    await this.#putWhole(attempt, request.ref.runId, request.sha256, decoded(request.data));
  }

  async open(runner: string, request: OpenUploadRequest): Promise<OpenUploadAnswer> {
    const attempt = await this.#grants.of(runner, request);
    const { sha256, sizeBytes, ref } = request;
    if (!Number.isSafeInteger(sizeBytes) || sizeBytes <= 0) throw new BadUserInput("'sizeBytes' is to be a size.");
    await this.#checkQuota(attempt, sizeBytes);
    if (await this.#contents.has(ref.runId, sha256)) return { upload: null };
    await this.#contents.checkRoom();
    await this.#unsealed.check(attempt, ref.runId, sizeBytes);
    const { bus } = this.#options;
    const whose = { runner, tenant: attempt.tenant };
    return this.#incoming.listen(bus, whose, request, (bytes) =>
      this.#unsealed.store(attempt, ref.runId, sizeBytes, () =>
        this.#contents.put(ref.runId, sha256, bytes, sizeBytes),
      ),
    );
  }

  async seal(runner: string, request: SealRequest): Promise<SealAnswer> {
    const attempt = await this.#grants.of(runner, request);
    const { runId } = request.ref;
    const manifest = Buffer.from(request.manifest, 'base64');
    const files = checked(() => decodeManifest(manifest));
    // What has the same hash is stored once.
    const sizes = new Map(files.map(({ sha256, sizeBytes }) => [sha256, sizeBytes]));
    const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    await this.#checkQuota(attempt, bytes);
    const sha256 = createHash('sha256').update(manifest).digest('hex');
    await this.#putWhole(attempt, runId, sha256, manifest);
    const expiresAt = this.#options.now() + attempt.expireMs;
    const { tenant, key } = attempt;
    const weight = [...sizes.values(), manifest.length].reduce((sum, size) => sum + weightOf(size), 0);
    await orUnavailable(this.#usage.add({ runId, tenant, key, manifest: sha256, bytes, weight, expiresAt }));
    return { sha256, files: files.length, bytes };
  }

  async get(runner: string, request: GetRequest): Promise<PartAnswer> {
    const { tenant, readsRuns = [] } = await this.#grants.of(runner, request);
    const { run = request.ref.runId } = request;
    if (run !== request.ref.runId && !readsRuns.includes(run))
      throw new Forbidden('The run of this attempt has adopted nothing of that run.');
    return await this.#contents.part(run, request, tenant);
  }

  /** For a gateway, which has seen who asks. */
  async part(request: PartRequest): Promise<PartAnswer> {
    return await this.#contents.part(request.runId, request, '');
  }

  /** For the gateway of this very process, which has seen who asks. */
  read(
    runId: string,
    sha256: string,
    range: { readonly from: number; readonly to: number },
  ): AsyncIterable<Uint8Array> {
    return this.#contents.read(runId, sha256, range);
  }

  async usage({ key }: UsageRequest): Promise<UsageAnswer> {
    return { bytes: await orUnavailable(this.#usage.bytesOf(key)) };
  }

  /** See `sweep.ts`. */
  async sweep(delays?: SweepDelays): Promise<SweptArtifacts> {
    const { objects, runOf, now } = this.#options;
    const parts = { objects, runOf, contents: this.#contents, usage: this.#usage, unsealed: this.#unsealed };
    return await sweepArtifacts(parts, now(), delays);
  }

  async #putWhole(attempt: LivingAttempt, runId: string, sha256: string, bytes: Uint8Array): Promise<void> {
    await this.#contents.putWhole(runId, sha256, bytes, (work) =>
      this.#unsealed.store(attempt, runId, bytes.length, work),
    );
  }

  async #checkQuota({ key, artifactBytes }: LivingAttempt, bytes: number): Promise<void> {
    if (!Number.isSafeInteger(bytes) || bytes < 0) throw new BadUserInput("'bytes' is to be a number of bytes.");
    if (artifactBytes === undefined) return;
    const used = await orUnavailable(this.#usage.bytesOf(key));
    if (used + bytes > artifactBytes)
      throw new QuotaExceeded(
        `${megabytes(bytes)} MB more would be ${megabytes(used + bytes)} MB of kept files; ${megabytes(artifactBytes)} MB may be kept.`,
      );
  }
}

function checked<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof ArtifactsFailed ? new BadUserInput(error.message) : error;
  }
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof StoreUnavailable ? asUnavailable(error) : error;
  }
}
