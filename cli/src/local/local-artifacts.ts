/**
 * Files that stages of a local run keep: copies under `.penstock/artifacts/<run>/<stage>/` in the folder of the run. A stage's
 * appear all at once, or not at all.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import {
  ArtifactsFailed,
  collectFiles,
  encodeManifest,
  isKeptAfter,
  keptLine,
  leftOutLines,
  nothingMatchesLine,
  type Collection,
} from '@penstock/artifacts';
import { systemReason } from '@penstock/errors';
import type { AttemptVerdict, StageUser } from '@penstock/executor';
import type { StageArtifacts, StageWork } from '@penstock/run';
import { printableText } from '../output/printable-text.ts';
import { WorkspaceProblem } from '../process/errors.ts';
import { stageFolder } from '../process/stage-folder.ts';

export interface LeftLocally {
  readonly asked: NonNullable<StageWork['artifacts']>;
  readonly stage: string;
  readonly verdict: AttemptVerdict;
  /** The stage's working folder. */
  readonly folder: string;
  readonly user: StageUser | undefined;
  readonly signal: AbortSignal;
  readonly remark: (text: string) => void;
}

/** Beside the files of the run itself, which no stage keeps again. */
const OWN_FOLDER = '.penstock';
/** The latest time that a date can be. */
const TIME_MAX = 8_640_000_000_000_000;

export type KeptVerdict = AttemptVerdict & { readonly artifacts?: StageArtifacts };

export class LocalArtifacts {
  readonly #root: string;
  readonly #shared: string;
  /** By stage: whose files are in the shared folder; settles when they are. */
  readonly #inShared = new Map<string, Promise<void>>();

  /** `folder`: that of the run. */
  constructor(folder: string, runId: string) {
    this.#shared = folder;
    this.#root = join(folder, OWN_FOLDER, 'artifacts', runId);
  }

  /** What the attempt then has come to. */
  async keep(left: LeftLocally): Promise<KeptVerdict> {
    const { asked, verdict, folder, user, signal, remark } = left;
    if (!isKeptAfter(asked.when, verdict)) return verdict;
    let collection: Collection | undefined;
    try {
      const patterns = [...asked.paths, `!${OWN_FOLDER}/**`];
      collection = await collectFiles({ folder, patterns, user, bytesMax: Number.MAX_SAFE_INTEGER, signal });
      for (const line of leftOutLines(collection.listing)) remark(line);
      if (collection.listing.files.length === 0) {
        remark(nothingMatchesLine(asked.paths));
        return asked.required && verdict.status === 'success' ? failedBy('artifacts') : verdict;
      }
      await this.#copy(left.stage, collection);
      if (folder === this.#shared) this.#inShared.set(left.stage, Promise.resolve());
      const { files } = collection.listing;
      const bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      remark(keptLine(files.length, bytes));
      const manifest = createHash('sha256').update(encodeManifest(files)).digest('hex');
      // Here nothing expires.
      return { ...verdict, artifacts: { manifest, files: files.length, bytes, expiresAt: TIME_MAX } };
    } catch (error) {
      if (signal.aborted) return { status: 'failed', reason: 'cancelled' };
      remark(`the files could not be kept: ${error instanceof Error ? error.message : String(error)}`);
      if (verdict.status === 'failed') return verdict;
      return failedBy(error instanceof ArtifactsFailed ? error.reason : 'artifacts');
    } finally {
      await collection?.close();
    }
  }

  /** Copies what stages have kept into a new folder. */
  async layOut(stages: readonly string[], folder: string): Promise<void> {
    for (const stage of stages)
      await cp(this.#folderOf(stage), folder, { recursive: true, verbatimSymlinks: true, force: true }).catch(
        (cause: unknown) => {
          const why = printableText(systemReason(cause));
          throw new WorkspaceProblem(`the files of '${printableText(stage)}' cannot be laid out: ${why}`, { cause });
        },
      );
  }

  /** The shared folder lacks what stages with a folder of their own have kept. Once: later stages may have changed it. */
  async layOutMissing(stages: readonly string[]): Promise<void> {
    for (const stage of stages) {
      const there = this.#inShared.get(stage) ?? this.layOut([stage], this.#shared);
      this.#inShared.set(stage, there);
      await there.catch((error: unknown) => {
        this.#inShared.delete(stage);
        throw error;
      });
    }
  }

  #folderOf(stage: string): string {
    return join(this.#root, stageFolder(stage));
  }

  async #copy(stage: string, collection: Collection): Promise<void> {
    const target = this.#folderOf(stage);
    const incoming = join(this.#root, `.incoming-${randomUUID()}`);
    try {
      for (const file of collection.listing.files) {
        const path = join(incoming, file.path);
        await mkdir(dirname(path), { recursive: true });
        await pipeline(
          collection.read(file),
          createWriteStream(path, { flags: 'wx', mode: file.executable ? 0o755 : 0o644 }),
        );
      }
      // Of an earlier attempt.
      await rm(target, { recursive: true, force: true });
      await rename(incoming, target);
    } catch (error) {
      await rm(incoming, { recursive: true, force: true });
      throw error;
    }
  }
}

function failedBy(reason: 'artifacts' | 'quota'): AttemptVerdict {
  return { status: 'failed', reason };
}
