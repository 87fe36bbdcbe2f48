/**
 * The files that earlier stages of the run have kept: what a folder that is made anew begins with beside its checkout, and what is laid out
 * in one that lacks them. They are put together where no stage can reach them. A new folder appears at its place by one rename; into
 * one that is there they are moved by a process that has the rights of its stages' user and no others.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { lstat, mkdir, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ArtifactsFailed, decodeManifest, MANIFEST_BYTES_MAX, moveInto, unpackFiles } from '@penstock/artifacts';
import type { Job } from '@penstock/bus';
import { NotFound, ServiceError } from '@penstock/errors';
import { giveTree, removeTree, type StageUser } from '@penstock/executor';
import type { Log } from '@penstock/telemetry/log';
import { StorageCalls } from './storage-calls.ts';
import type { StorageLine } from './storage-line.ts';

export interface InheritedFilesOptions {
  readonly storage: StorageLine;
  /** On the file system of the workspaces; this object's alone. */
  readonly folder: string;
  readonly log: Log;
}

export interface LayOverOptions {
  readonly isKnown: boolean;
  readonly signal: AbortSignal;
  /** Whose the workspace is; absent: the runner's own. */
  readonly user?: StageUser | undefined;
}

/** Of stages, in a line of the log. */
const NAMES_SHOWN = 3;

type Fill = (path: string) => Promise<void>;
type Inherited = NonNullable<Job['inherits']>[number];

export class InheritedFiles {
  readonly #options: InheritedFilesOptions;

  constructor(options: InheritedFilesOptions) {
    this.#options = options;
    const { folder, log } = options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(folder))
      removeTree(join(folder, name)).catch((error: unknown) =>
        log.warn({ err: error }, 'an unfinished folder could not be removed'),
      );
  }

  /** `fill`: makes the folder without them; undefined: it is empty. Undefined: there are none, and nothing to make. */
  filling(job: Job, fill: Fill | undefined, signal: AbortSignal, user?: StageUser): Fill | undefined {
    const { inherits } = job;
    if (inherits === undefined || inherits.length === 0) return fill;
    return async (path) => {
      const staging = join(this.#options.folder, randomUUID());
      try {
        if (fill === undefined) await mkdir(staging, { mode: 0o700 });
        else await fill(staging);
        for (const each of inherits) await this.#unpack(job, each, staging, signal);
        if (user !== undefined) await giveTree(staging, user);
        await rename(staging, path);
      } catch (error) {
        await removeTree(staging);
        throw error;
      }
    };
  }

  /**
   * `inherits`: those of the job's that are missing. Of the others the later ones stand over them: at their paths nothing is laid out.
   * `isKnown`: nothing of them is there. Else it may be all there and changed since: what stands there stays, and what is not kept any more
   * is left out. @throws ArtifactsFailed; the signal's reason
   */
  async layOver(job: Job, inherits: readonly Inherited[], workspace: string, options: LayOverOptions): Promise<void> {
    const { isKnown, signal, user } = options;
    const staging = join(this.#options.folder, randomUUID());
    try {
      const files = join(staging, 'workspace');
      await mkdir(files, { recursive: true, mode: 0o700 });
      const missing = new Set(inherits);
      const before = (job.inherits ?? []).findIndex((each) => missing.has(each));
      for (const each of (job.inherits ?? []).slice(Math.max(0, before))) {
        const isMissing = missing.has(each);
        try {
          if (isMissing) await this.#unpack(job, each, files, signal);
          else await this.#leaveOut(job, each, files, signal);
        } catch (error) {
          const isGone = error instanceof ArtifactsFailed && error.cause instanceof NotFound;
          if (!isGone || (isMissing && isKnown)) throw error;
        }
      }
      if (user !== undefined) await giveTree(staging, user);
      await moveInto({ workspace, user, signal }, staging, isKnown).catch((error: unknown) => {
        if (!(error instanceof ArtifactsFailed)) throw error;
        const names = inherits
          .slice(0, NAMES_SHOWN)
          .map(({ stage }) => `'${stage}'`)
          .join(', ');
        throw new ArtifactsFailed('artifacts', `the artifacts of ${names} cannot be laid out: ${error.message}`, {
          cause: error,
        });
      });
    } finally {
      await removeTree(staging);
    }
  }

  async #unpack(job: Job, each: Inherited, folder: string, signal: AbortSignal): Promise<void> {
    const { bytes, run } = each;
    await this.#read(job, each, signal, async (files, calls) => {
      const contents = new Map(files.map(({ sha256, sizeBytes }) => [sha256, sizeBytes]));
      // What the journal says is what may be written, whoever made the list.
      if ([...contents.values()].reduce((sum, size) => sum + size, 0) > bytes)
        throw new ArtifactsFailed('artifacts', 'the list of kept files says more than was kept');
      await unpackFiles(folder, files, ({ sha256 }) => calls.read(sha256, { run }));
    });
  }

  /** Of what is there, by a later stage: what earlier ones have at the same paths would come over it. */
  async #leaveOut(job: Job, each: Inherited, folder: string, signal: AbortSignal): Promise<void> {
    await this.#read(job, each, signal, async (files) => {
      for (const { path } of files) await leaveOut(folder, path);
    });
  }

  async #read(
    job: Job,
    { stage, manifest, run }: Inherited,
    signal: AbortSignal,
    use: (files: ReturnType<typeof decodeManifest>, calls: StorageCalls) => Promise<void>,
  ): Promise<void> {
    const { runId, attempt, session, credit, partition } = job;
    const ref = { runId, stage: job.stage, attempt, session, credit };
    const calls = new StorageCalls(this.#options.storage, { ref, partition }, signal);
    try {
      await use(decodeManifest(await listOf(calls, manifest, run)), calls);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ServiceError) && !(error instanceof ArtifactsFailed)) throw error;
      const why = error instanceof NotFound ? 'they are not there any more' : error.message;
      throw new ArtifactsFailed('artifacts', `the artifacts of '${stage}' cannot be had: ${why}`, { cause: error });
    }
  }
}

async function listOf(calls: StorageCalls, sha256: string, run: string | undefined): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of calls.read(sha256, { run })) {
    length += part.length;
    if (length > MANIFEST_BYTES_MAX) throw new ArtifactsFailed('artifacts', 'their list is too long');
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw new ArtifactsFailed('artifacts', 'their list is damaged');
  return bytes;
}

/** What stands at the path, a file in the place of one of its folders as well; and folders that are empty then, which would come over what is there. */
async function leaveOut(folder: string, path: string): Promise<void> {
  await removeTree(join(folder, path));
  for (let at = dirname(path); at !== '.'; at = dirname(at)) {
    const place = join(folder, at);
    const found = await lstat(place).catch(() => undefined);
    if (found === undefined) continue;
    if (!found.isDirectory()) await unlink(place);
    else if ((await readdir(place)).length === 0) await rmdir(place);
    else return;
  }
}
