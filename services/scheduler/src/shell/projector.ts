/**
 * Writes the documents of a partition's runs behind its commits and the counters of their keys (P23), then the checkpoint
 * (P6, P8); the log behind it is `JournalPurge`'s. Works in batches at its own pace; while the store is away the log is the buffer, and what waits is counted.
 */
import { machineTime, type Time } from '@penstock/async';
import type { PartitionLog } from '@penstock/bus';
import {
  cacheScopesOf,
  evolve,
  newRun,
  planOf,
  RunInvariantError,
  viewOf,
  type RunEvent,
  type RunState,
  type Sequence,
} from '@penstock/run';
import { emptyPipeline } from '../run/definitions.ts';
import type { DirtyDeletion } from '../partition/deletions.ts';
import type { DirtyRun } from '../partition/projection-backlog.ts';
import type { DirtySchedule } from '../partition/schedules.ts';
import {
  encodeRun,
  encodeRunInSteps,
  StoreUsageError,
  type EncodedRun,
  type NewCacheEntry,
  type RunDocument,
  type RunsLedger,
} from '@penstock/store';
import type { KeyCounter } from '../admission/key-counts.ts';
import { JournalPurge } from './journal-purge.ts';
import type { LiveRun } from '../run/live-run.ts';
import { EncodedStories } from './encoded-stories.ts';
import type { HookAnnouncer } from './hook-announcer.ts';
import type { Partition } from '../partition/partition.ts';
import type { SchedulerLoad } from '../run/scheduler-load.ts';
import { runFields } from '../run/run-log.ts';
import { guarded } from '@penstock/telemetry/borders';
import type { Log } from '@penstock/telemetry/log';

/** Short enough that `runs` is fresh and memory small; long enough that most short runs are written once. */
const INTERVAL_MS = 50;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
/** Documents in one write. Halved by a write that fails, so that a store which is slow takes some in its time, and grown again. */
const DOCUMENTS_MIN = 4;
const DOCUMENTS_MAX = 500;
/** Runs, and characters of their documents, encoded without giving the event loop back. */
const ENCODE_SLICE = 32;
const ENCODE_CHARACTERS = 256 * 1024;
/** Characters of documents that are in memory at a time, beyond the last of them. */
const BATCH_CHARACTERS = 8 * 1024 * 1024;
/** Encoding takes no more than one part in so many of the time: a large run that changes all the time is written less often. */
const ENCODE_SHARE = 5;

/** Runs that were captured together, with their documents. */
interface Batch {
  /** How many were asked for to find them. */
  looks: number;
  readonly encoded: EncodedRun[];
  readonly runs: LiveRun[];
  readonly captured: Pick<DirtyRun, 'run' | 'events'>[];
}

/** What is written behind the documents, as it stood before the first of them was captured. */
interface Rest {
  readonly sequence: Sequence;
  readonly commitNumber: number;
  readonly counters: readonly KeyCounter[];
  readonly schedules: readonly DirtySchedule[];
  readonly deleted: readonly DirtyDeletion[];
}

type ProjectorClock = Pick<Time, 'bootNow' | 'pause' | 'turn'>;

export interface ProjectorOptions {
  readonly partition: Partition;
  readonly incarnation: number;
  readonly ledger: RunsLedger;
  readonly journal: PartitionLog;
  readonly load: SchedulerLoad;
  readonly log: Pick<Log, 'warn' | 'error'>;
  readonly clock?: ProjectorClock | undefined;
  /** Shared by the partitions of a scheduler. */
  readonly stories?: EncodedStories | undefined;
  /** Absent: nobody is told of what happens to runs. */
  readonly announcer?: Pick<HookAnnouncer, 'announce'> | undefined;
  /** Something has thrown that is no fault of the store: what is still to be written cannot be told, and nothing more is written. */
  failed(error: unknown): void;
}

export class Projector {
  readonly #options: ProjectorOptions;
  readonly #stopped = new AbortController();
  #working: Promise<void> | undefined;
  #again = false;
  /** Since when something is committed that no checkpoint stands for, by the boot clock. */
  #behindSince: number | undefined;
  /** What this partition adds to the scheduler's unprojected bytes. */
  #unprojected = 0;
  readonly #purge: JournalPurge;
  readonly #clock: ProjectorClock;
  /** The last checkpoint that this projector wrote. */
  #checkpointed = -1;
  #documentsAtOnce = DOCUMENTS_MAX;
  /** Runs whose documents are written, with no checkpoint behind them yet: what follows failed. */
  readonly #written = new Set<LiveRun>();
  readonly #stories: EncodedStories;
  /** What successes of runs that were captured have left for later runs, and the store has not. */
  readonly #caches = new Map<LiveRun, readonly NewCacheEntry[]>();

  constructor(options: ProjectorOptions) {
    this.#options = options;
    this.#stories = options.stories ?? new EncodedStories();
    this.#clock = options.clock ?? machineTime;
    this.#purge = new JournalPurge({
      partition: options.partition.settings.partition,
      journal: options.journal,
      ledger: options.ledger,
      load: options.load,
      log: options.log,
      bootNow: () => this.#clock.bootNow(),
    });
  }

  /** How long the oldest commit waits that the store does not have; 0: it has all. */
  get lagMs(): number {
    return this.#behindSince === undefined ? 0 : this.#clock.bootNow() - this.#behindSince;
  }

  projectSoon(): void {
    if (this.#isBehind) this.#behindSince ??= this.#clock.bootNow();
    if (this.#working !== undefined) {
      this.#again = true;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#working = promise.then(() => {
      this.#working = undefined;
      if (this.#again && !this.#stopped.signal.aborted) this.projectSoon();
    });
    const failed = (error: unknown): void => {
      this.#again = false;
      resolve();
      this.#options.failed(error);
    };
    const { log, partition } = this.#options;
    const border = { log, about: { partition: partition.settings.partition }, failed };
    guarded('partition.projection', border, () => this.#work().then(resolve))();
  }

  /**
   * About every second: purges what may go, whether or not there is anything to project; and takes up what a call of
   * `projectSoon` that has failed has left, for a partition that then falls quiet makes no other.
   */
  tick(): void {
    if (this.#stopped.signal.aborted) return;
    this.#purge.tick();
    if (this.#working === undefined && this.#isBehind) this.projectSoon();
  }

  /** Ends after what is being written. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#working;
    await this.#purge.done();
    this.#countUnprojected(0);
  }

  /** Something is committed that no document or no checkpoint stands for yet. */
  get #isBehind(): boolean {
    const { dirtyRuns, sequence } = this.#options.partition;
    return dirtyRuns > 0 || sequence !== this.#checkpointed || this.#written.size > 0;
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopped;
    let retryMs = RETRY_MS_MIN;
    await this.#clock.pause(INTERVAL_MS, signal);
    // A partition that is closed keeps no account of what is still to be written: no checkpoint may be made from it.
    while (!signal.aborted && this.#options.partition.open) {
      this.#again = false;
      const { partition } = this.#options;
      // Everything dirty now is captured below, as of now or later: the checkpoint may stand here.
      const { sequence, commitNumber, dirtyRuns } = partition;
      if (!this.#isBehind) return;
      const begunAt = this.#clock.bootNow();
      const rest: Rest = {
        sequence,
        commitNumber,
        counters: partition.takeCounters(),
        schedules: partition.takeDirtySchedules(),
        deleted: partition.takeDeleted(),
      };
      const encodingMs = await this.#write(dirtyRuns, rest);
      if (encodingMs === 'closed') return;
      if (encodingMs === 'not taken') {
        await this.#clock.pause(retryMs, signal);
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
        continue;
      }
      this.#checkpointed = sequence;
      this.#countUnprojected(0);
      // What was decided since is newer than what was captured.
      this.#behindSince = partition.dirtyRuns === 0 && partition.sequence === sequence ? undefined : begunAt;
      this.#documentsAtOnce = Math.min(DOCUMENTS_MAX, this.#documentsAtOnce * 2);
      // Those of earlier tries too: what has changed since has been captured again.
      const projected = [...this.#written];
      this.#written.clear();
      partition.projected(sequence, projected);
      this.#purge.reached(sequence);
      retryMs = RETRY_MS_MIN;
      if (partition.dirtyRuns === 0 && partition.sequence === sequence) return;
      await this.#clock.pause(Math.max(INTERVAL_MS, (ENCODE_SHARE - 1) * encodingMs), signal);
    }
  }

  /** The documents of so many runs, batch by batch, and what stands behind them; answers for how long it has encoded. */
  async #write(dirtyRuns: number, rest: Rest): Promise<number | 'not taken' | 'closed'> {
    const { partition } = this.#options;
    const { counters, schedules, deleted, sequence, commitNumber } = rest;
    let encodingMs = 0;
    for (let left = dirtyRuns; partition.open;) {
      const begunAt = this.#clock.bootNow();
      const batch = await this.#encode(left);
      encodingMs += this.#clock.bootNow() - begunAt;
      left -= batch.looks;
      try {
        await this.#saveBatch(batch);
        if (left > 0) continue;
        await this.#saveSchedules(schedules);
        await this.#saveTombstones(deleted);
        await this.#writePosition(counters, sequence, commitNumber);
        return encodingMs;
      } catch (error) {
        this.#notWritten(error, batch, left);
        partition.stillDirty(batch.runs, counters, schedules, deleted);
        return 'not taken';
      }
    }
    return 'closed';
  }

  /**
   * Captures and encodes in slices, so that commits are not held up; each run's state in one turn, for states live on. At most so
   * many runs, and no more than a batch may take: documents of very many would be most of what the scheduler has in memory.
   */
  async #encode(count: number): Promise<Batch> {
    const { partition } = this.#options;
    const batch: Batch = { looks: 0, encoded: [], runs: [], captured: [] };
    let inSlice = 0;
    let characters = 0;
    let inBatch = 0;
    while (batch.looks < count && inBatch < BATCH_CHARACTERS) {
      batch.looks += 1;
      for (const dirty of partition.takeDirty(1)) {
        const document = await this.#encodeRun(dirty);
        batch.runs.push(dirty.run);
        batch.captured.push({ run: dirty.run, events: dirty.events });
        this.#captureCaches(dirty);
        batch.encoded.push(document);
        characters += document.story.length + document.view.length;
      }
      inSlice += 1;
      if (inSlice < ENCODE_SLICE && characters < ENCODE_CHARACTERS) continue;
      inBatch += characters;
      inSlice = 0;
      characters = 0;
      await this.#clock.turn();
    }
    return batch;
  }

  /** What is written is taken out of it: what throws leaves the rest. */
  async #saveBatch({ encoded, runs, captured }: Batch): Promise<void> {
    while (runs.length > 0) {
      const count = this.#documentsAtOnce;
      await this.#addCaches(runs.slice(0, count));
      // Before the documents as well (P35): who takes a run over from its document announces what comes behind it.
      await this.#options.announcer?.announce(captured.slice(0, count));
      await this.#save(encoded.slice(0, count), runs.slice(0, count));
      for (const run of runs.slice(0, count)) this.#written.add(run);
      for (const part of [encoded, runs, captured]) part.splice(0, count);
    }
  }

  /** `unencoded`: how many runs wait behind the batch; of them it is supposed that they are as large. */
  #notWritten(error: unknown, { encoded }: Batch, unencoded: number): void {
    const runs = encoded.length + unencoded;
    this.#options.log.warn(
      { err: error, runs, atOnce: this.#documentsAtOnce },
      'the store did not take run documents; they are written again',
    );
    const bytes = encoded.reduce((sum, run) => sum + (run.open ? 0 : run.story.length + run.view.length), 0);
    this.#countUnprojected((bytes * runs) / Math.max(1, encoded.length));
    this.#documentsAtOnce = Math.max(DOCUMENTS_MIN, Math.floor(this.#documentsAtOnce / 2));
  }

  #captureCaches({ run, state, events }: DirtyRun): void {
    const caches = cachesIn(events, run.cachesVersion, state);
    run.cachesVersion = events.length;
    if (caches.length > 0) this.#caches.set(run, [...(this.#caches.get(run) ?? []), ...caches]);
  }

  /** Before the documents: what the checkpoint has passed nobody looks at again. */
  async #addCaches(runs: readonly LiveRun[]): Promise<void> {
    for (const run of runs) {
      const caches = this.#caches.get(run);
      if (caches === undefined) continue;
      try {
        await this.#options.ledger.addCaches(caches);
      } catch (error) {
        if (!(error instanceof StoreUsageError)) throw error;
        // Asked again it would be refused again, and nothing of the partition be written any more. A cache that is not there fails nobody.
        this.#options.log.warn(
          { err: error, ...runFields(run) },
          'the store refuses what a run has cached for what it is',
        );
      }
      this.#caches.delete(run);
    }
  }

  /** One that cannot be encoded costs itself alone. */
  async #encodeRun(dirty: DirtyRun): Promise<EncodedRun> {
    const document = this.#positionOf(dirty.run);
    try {
      const steps = encodeRunInSteps(this.#documentOf(dirty), this.#stories.get(dirty.run));
      let step = steps.next();
      for (; step.done !== true; step = steps.next()) await this.#clock.turn();
      const { encodedEvents, ...encoded } = step.value;
      // One that is written for the first time may wait for long, and never be written again before it leaves.
      if (encoded.open && dirty.run.cachesVersion > 0) this.#stories.keep(dirty.run, encodedEvents);
      else this.#stories.forget(dirty.run);
      return encoded;
    } catch (error) {
      const { log, partition } = this.#options;
      log.warn(
        { err: error, ...runFields(dirty.run) },
        'the document of a run cannot be made: the run is quarantined, and kept without its events',
      );
      partition.quarantine(dirty.run.id, error);
      return standInOf(dirty.run, document);
    }
  }

  #positionOf(run: LiveRun): Pick<RunDocument, 'partition' | 'open' | 'incarnation' | 'sequence'> {
    const { incarnation, partition } = this.#options;
    return {
      partition: partition.settings.partition,
      open: !(run.settled && run.isCommitted),
      incarnation,
      sequence: run.committedSequence,
    };
  }

  #documentOf({ run, state, events }: DirtyRun): RunDocument {
    return { ...this.#positionOf(run), state, events, view: viewOf(state) };
  }

  /** What the store refuses for what it is, not for how it does, is found out and told; the others of the batch are written. */
  async #save(batch: readonly EncodedRun[], runs: readonly LiveRun[]): Promise<void> {
    try {
      await this.#options.ledger.saveBatch(batch);
    } catch (error) {
      if (!(error instanceof StoreUsageError)) throw error;
      const [only] = batch;
      const [run] = runs;
      if (batch.length > 1) {
        const half = Math.ceil(batch.length / 2);
        await this.#save(batch.slice(0, half), runs.slice(0, half));
        await this.#save(batch.slice(half), runs.slice(half));
      } else if (only !== undefined && run !== undefined) await this.#refused(only, run, error);
    }
  }

  /** The run is quarantined, and a document without its events stands for it: who takes over knows it as ended (P6, P7). */
  async #refused(document: EncodedRun, run: LiveRun, error: StoreUsageError): Promise<void> {
    const { ledger, log, partition } = this.#options;
    log.warn(
      { err: error, ...runFields(run), characters: document.story.length },
      'the store refuses the document of a run for what it is: the run is quarantined, and kept without its events',
    );
    partition.quarantine(run.id, error);
    const standIn = standInOf(run, document);
    try {
      await ledger.saveBatch([standIn]);
    } catch (second) {
      if (!(second instanceof StoreUsageError)) throw second;
      log.warn({ err: second, ...runFields(run) }, 'not even that is taken: the run is in no list');
    }
  }

  /** Behind the runs: a tick that a schedule counts as fired has its run in the store. */
  async #saveSchedules(schedules: readonly DirtySchedule[]): Promise<void> {
    if (schedules.length === 0) return;
    const { incarnation, ledger } = this.#options;
    const { partition } = this.#options.partition.settings;
    await ledger.saveSchedules(schedules.map(({ state, sequence }) => ({ partition, incarnation, sequence, state })));
  }

  async #saveTombstones(deleted: readonly DirtyDeletion[]): Promise<void> {
    if (deleted.length === 0) return;
    const { incarnation, ledger } = this.#options;
    const { partition } = this.#options.partition.settings;
    await ledger.saveTombstones(
      deleted.map(({ entry: { id, tenant, parent = '', event }, sequence }) => ({
        id,
        partition,
        tenant,
        parent,
        deletedAt: event.at,
        incarnation,
        sequence,
      })),
    );
  }

  async #writePosition(counters: readonly KeyCounter[], sequence: Sequence, commit: number): Promise<void> {
    const { incarnation, ledger } = this.#options;
    const { partition } = this.#options.partition.settings;
    if (counters.length > 0)
      await ledger.saveCounters(counters.map((counter) => ({ ...counter, partition, incarnation, sequence })));
    await ledger.saveCheckpoint({ partition, incarnation, sequence, commit });
  }

  #countUnprojected(bytes: number): void {
    this.#options.load.unprojectedBytes += bytes - this.#unprojected;
    this.#unprojected = bytes;
  }
}

function cachesIn(events: readonly RunEvent[], from: number, state: RunState): NewCacheEntry[] {
  const [created] = events;
  const scope = cacheScopesOf(state).write;
  if (created?.type !== 'run_created' || scope === null) return [];
  return events.slice(from).flatMap((event) => {
    if (event.type !== 'stage_completed' || event.status !== 'SUCCESS') return [];
    return (event.caches ?? []).map(({ key, sha256, bytes }) => ({
      scope,
      owner: state.key,
      key,
      sha256,
      bytes,
      limitBytes: created.artifactBytes ?? null,
      createdAt: event.at,
    }));
  });
}

/** As small as a run can be that was created and is quarantined. */
function standInOf(
  run: LiveRun,
  { partition, open, incarnation, sequence }: Pick<RunDocument, 'partition' | 'open' | 'incarnation' | 'sequence'>,
): EncodedRun {
  const [created] = run.events;
  if (created?.type !== 'run_created') throw new RunInvariantError(run.id, 'its events do not begin with run_created');
  const { extensions: _, ...rest } = created;
  const plan = planOf(emptyPipeline(created.pipelineName));
  const cause = 'its document was refused by the store';
  const ends: RunEvent[] = [
    { type: 'run_quarantined', at: created.at, cause },
    { type: 'run_stopped', at: created.at, status: 'FAILED' },
  ];
  const events: RunEvent[] = [{ ...rest, yaml: '' }, ...ends];
  const state = newRun(run.id, { ...rest, yaml: '' }, plan);
  for (const event of ends) evolve(state, event);
  return encodeRun({ partition, open, incarnation, sequence, state, events, view: viewOf(state) });
}
