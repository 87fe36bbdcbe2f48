/**
 * The folders of runs on this runner, by partition, and when they go (P19): when their owner says so (`release`), or when the
 * owner, asked about those that have not been used for a while, does not know them as open.
 */
import type { Time } from '@penstock/async';
import { subjects, type Bus, type OpenReply, type OpenRequest } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import { guarded } from '@penstock/telemetry/borders';
import PQueue from 'p-queue';
import type { FolderDisk, RunWorkspaces } from './folders-on-disk.ts';

const ASK_MS = 60_000;
/** A run whose last stage ended this long ago is asked about: its release may have been lost. */
const UNUSED_MS = 60_000;
/** Between two tries at a folder that cannot be removed. */
const UNREMOVABLE_MS_MAX = 6 * 60 * 60_000;
const ASK_TIMEOUT_MS = 5_000;
/** In one request: 40 KB. */
const RUNS_ASKED_MAX = 1_000;
/** In one sweep, the ones that were asked about longest ago first. */
const RUNS_SWEPT_MAX = 100_000;
/** An owner that does not answer holds up its own partition only. */
const PARTITIONS_AT_ONCE = 8;
/** Removal is work for the disk only, and never more urgent than the stages. */
const REMOVALS_AT_ONCE = 2;

export interface RunFoldersOptions {
  readonly bus: Pick<Bus, 'requestRetrying'>;
  readonly log: Log;
  readonly time: Time;
  readonly disk: FolderDisk;
  /** Whether a stage of the run is running here. */
  readonly isBusy: (runId: string) => boolean;
  /** Some have none any more. */
  readonly released?: (() => void) | undefined;
}

interface RunFolder {
  readonly partition: number;
  usedAt: number;
  /** Its stages share it, so that further ones have to come here. */
  isShared: boolean;
}

export class RunFolders {
  readonly #options: RunFoldersOptions;
  /** Runs with a folder: where, and when a stage last used it. In the order in which they were last asked about. */
  readonly #runs = new Map<string, RunFolder>();
  readonly #questions = new PQueue({ concurrency: PARTITIONS_AT_ONCE });
  /** How often each could not be removed. No more than there are folders, and those take room of the disk. */
  readonly #unremovable = new Map<string, number>();
  readonly #removals = new PQueue({ concurrency: REMOVALS_AT_ONCE });
  #callOffSweep: () => void = () => {};
  #asking = false;

  constructor(options: RunFoldersOptions) {
    this.#options = options;
    for (const partition of options.disk.partitions())
      for (const runId of this.of(partition).list())
        this.#runs.set(runId, { partition, usedAt: Number.NEGATIVE_INFINITY, isShared: true });
    const sweep = guarded('runner.folders', { log: options.log }, () => this.#askAboutUnused());
    const sweepLater = (): void => {
      this.#callOffSweep = options.time.after(ASK_MS, () => {
        sweepLater();
        sweep();
      });
    };
    sweepLater();
    if (this.#runs.size > 0) sweep();
  }

  /** How many runs have a folder. */
  get size(): number {
    return this.#runs.size;
  }

  /** How many runs have one that their stages share. What an earlier process has left is taken for that. */
  get shared(): number {
    return [...this.#runs.values()].filter(({ isShared }) => isShared).length;
  }

  isShared(runId: string): boolean {
    return this.#runs.get(runId)?.isShared === true;
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  of(partition: number): RunWorkspaces {
    return this.#options.disk.of(partition);
  }

  used(runId: string, partition: number, isShared: boolean): void {
    const known = this.#runs.get(runId);
    const usedAt = this.#options.time.bootNow();
    if (known === undefined) this.#runs.set(runId, { partition, usedAt, isShared });
    else {
      known.usedAt = usedAt;
      known.isShared ||= isShared;
    }
  }

  release(runIds: readonly string[]): void {
    for (const runId of runIds) {
      const run = this.#runs.get(runId);
      if (run === undefined || this.#options.isBusy(runId)) continue;
      this.#runs.delete(runId);
      void this.#removals.add(async () => {
        try {
          await this.of(run.partition).remove(runId);
          this.#unremovable.delete(runId);
        } catch (error) {
          this.#keepUnremovable(runId, run.partition, error);
        }
      });
    }
    this.#options.released?.();
  }

  /** Asked about again, later each time: what cannot be removed now seldom can be a minute later. */
  #keepUnremovable(runId: string, partition: number, error: unknown): void {
    const tries = (this.#unremovable.get(runId) ?? 0) + 1;
    this.#unremovable.set(runId, tries);
    this.#options.log.warn(
      { err: error, runId, tries, unremovable: this.#unremovable.size },
      "a run's folder could not be removed; it is tried again",
    );
    const waitMs = Math.min(UNREMOVABLE_MS_MAX, UNUSED_MS * (2 ** Math.min(tries, 10) - 2));
    if (this.#runs.has(runId)) return;
    this.#runs.set(runId, { partition, usedAt: this.#options.time.bootNow() + waitMs, isShared: false });
  }

  close(): void {
    this.#callOffSweep();
    this.#questions.clear();
    this.#removals.clear();
  }

  async #askAboutUnused(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    try {
      const unused = Map.groupBy(this.#unused(), ([, partition]) => partition);
      for (const [partition, runs] of unused) {
        const runIds = runs.map(([runId]) => runId);
        void this.#questions.add(() => this.#askInPages(partition, runIds));
      }
      await this.#questions.onIdle();
    } finally {
      this.#asking = false;
    }
  }

  #unused(): [runId: string, partition: number][] {
    const now = this.#options.time.bootNow();
    return [...this.#runs]
      .filter(([runId, { usedAt }]) => now - usedAt >= UNUSED_MS && !this.#options.isBusy(runId))
      .slice(0, RUNS_SWEPT_MAX)
      .map(([runId, { partition }]) => [runId, partition]);
  }

  async #askInPages(partition: number, runIds: readonly string[]): Promise<void> {
    for (let from = 0; from < runIds.length; from += RUNS_ASKED_MAX)
      if (!(await this.#ask(partition, runIds.slice(from, from + RUNS_ASKED_MAX)))) return;
  }

  /** False: there was no answer. */
  async #ask(partition: number, runIds: readonly string[]): Promise<boolean> {
    const { bus, log } = this.#options;
    try {
      const reply = await bus.requestRetrying<OpenRequest, OpenReply>(
        subjects.owner(partition, 'open'),
        { runIds },
        { deadlineMs: 4 * ASK_TIMEOUT_MS, timeoutMs: ASK_TIMEOUT_MS },
      );
      if (!reply.ok) return false;
      const open = new Set(reply.open);
      this.release(runIds.filter((runId) => !open.has(runId)));
      for (const runId of open) this.#moveToEnd(runId);
      return true;
    } catch (error) {
      log.debug(
        { err: error, partition },
        'the owner could not be asked which folders it still needs; it is asked again',
      );
      return false;
    }
  }

  #moveToEnd(runId: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    this.#runs.delete(runId);
    this.#runs.set(runId, run);
  }
}
