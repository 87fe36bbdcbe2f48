/**
 * Where a run's events and log come from: the events from its owner while it goes on, then from the store; the log from the stream `LOGS`,
 * then from the archive (P34).
 *
 *  RUNSOURCE-1 What `LOGS` answers counts only within `LOGS_READ_WITHIN_MS` of a moment at which the run was not archived: its chunks stay
 *     there for longer than that once it is. Later it is asked again whether it is archived, and the reading goes on from there, at the
 *     same sequence. A run that has not ended is not archived: who follows it needs no store.
 */
import { bootMs } from '@penstock/async';
import { NotFound, Unavailable } from '@penstock/errors';
import {
  allLastChunks,
  lastChunks,
  LOGS_READ_WITHIN_MS,
  readAllChunks,
  readChunks,
  subjects,
  subscribeLiveChunks,
  type Bus,
  type BusSubscription,
  type CommittedEvents,
  type LiveChunk,
  type StoredChunk,
} from '@penstock/bus';
import { closesRun, type RunEvent } from '@penstock/run';
import type { ArchivedLog, RunsReader } from '@penstock/store';
import { readRunEvents, type Owners } from '@penstock/run-client';
import type { ArchivedLogs } from './archived-logs.ts';

export interface RunSource {
  readonly runId: string;
  /**
   * The committed events after this version, all of them, oldest first. Throws `Unavailable`, and `NotFound` for a run
   * that nobody knows any more.
   */
  events(after: number): Promise<readonly RunEvent[]>;
  /**
   * The stored chunks from this sequence on, in stored order, up to the last at the time of the call. `needsAll`: what is missing is gone
   * for good; rejects where nobody can say so for sure.
   */
  chunks(fromSequence: number, signal: AbortSignal, needsAll?: boolean): AsyncIterable<StoredChunk>;
  /**
   * The sequence of the last chunk that each runner has stored for the run; where that is not behind `after` it may be left out.
   * `needsAll`: as above.
   */
  lastSequences(signal: AbortSignal, needsAll?: boolean, after?: number): Promise<ReadonlyMap<string, number>>;
  /** What happens from now on; whatever may have been missed is announced by `onAskAgain`. */
  listen(listeners: {
    readonly onEvents: (first: number, events: readonly RunEvent[]) => void;
    readonly onChunk: (chunk: LiveChunk) => void;
    readonly onAskAgain: () => void;
  }): Listening;
}

export interface Listening {
  /** Whether chunks are heard; at the beginning they are. Of what is stored meanwhile nothing comes. */
  hearChunks(areHeard: boolean): void;
  stop(): void;
}

interface Sources {
  readonly bus: Bus;
  readonly owners: Owners;
  readonly store: RunsReader;
  readonly archive: ArchivedLogs;
  /** Of the boot clock. */
  readonly bootNow?: (() => number) | undefined;
}

/** A pack that is missing for so long is lost: an operator who moves the storage is done by then, or begins the stream anew. */
const LOST_AFTER_MS = 30_000;

export class BusRunSource implements RunSource {
  readonly runId: string;
  readonly #sources: Sources;
  readonly #tenants: readonly string[];
  readonly #bootNow: () => number;
  /** When it was asked last, and the run was not archived. */
  #inLogsAt = -Infinity;
  #hasEnd = false;
  /** The pack that was not there, or could not be read, and since when. */
  #missed: { readonly pack: string; readonly since: number } | undefined;

  constructor(sources: Sources, runId: string, tenants: readonly string[]) {
    this.runId = runId;
    this.#sources = sources;
    this.#tenants = tenants;
    this.#bootNow = sources.bootNow ?? bootMs;
  }

  async events(after: number): Promise<readonly RunEvent[]> {
    const askedAt = this.#bootNow();
    const events = await readRunEvents(this.#sources, this.runId, this.#tenants, after);
    this.#hasEnd ||= events.some(closesRun);
    if (!this.#hasEnd) this.#inLogsAt = askedAt;
    return events;
  }

  async *chunks(fromSequence: number, signal: AbortSignal, needsAll = false): AsyncIterable<StoredChunk> {
    const readLogs = needsAll ? readAllChunks : readChunks;
    let next = fromSequence;
    let gone: string | undefined;
    for (;;) {
      const archived = await this.#archived();
      const chunks =
        archived === null
          ? readLogs(this.#sources.bus, this.runId, next, signal)
          : this.#sources.archive.chunks(archived, next, signal);
      try {
        for await (const chunk of chunks) {
          if (archived === null && !this.#isInLogs()) break;
          yield chunk;
          next = chunk.sequence + 1;
        }
      } catch (error) {
        // The pack has been written anew meanwhile: the pointer names another one now, or the log is no longer kept.
        if (archived === null || !(error instanceof NotFound)) throw error;
        if (gone !== archived.pack) {
          gone = archived.pack;
          continue;
        }
        if (!this.#isLost(archived.pack))
          throw new Unavailable('The archive lacks a part of this log.', { cause: error });
        // What `LOGS` still has counts; what nobody has any more is said in its place, and the stream has an end.
        yield* readLogs(this.#sources.bus, this.runId, next, signal);
        return;
      }
      if (archived !== null || this.#isInLogs()) return;
    }
  }

  async lastSequences(signal: AbortSignal, needsAll = false, after = 0): Promise<ReadonlyMap<string, number>> {
    const { bus } = this.#sources;
    for (;;) {
      const archived = await this.#archived();
      if (archived !== null) return new Map(Object.entries(archived.last));
      const chunks = needsAll
        ? await allLastChunks(bus, this.runId, signal)
        : await lastChunks(bus, this.runId, signal, after);
      if (this.#isInLogs()) return new Map(chunks.map(({ runner, sequence }) => [runner, sequence]));
    }
  }

  /** Null: all of the log that there is is in `LOGS`, for as long as `#isInLogs` says. */
  async #archived(): Promise<ArchivedLog | null> {
    if (this.#isInLogs()) return null;
    const askedAt = this.#bootNow();
    const archived = await this.#sources.archive.of(this.runId);
    if (archived === null) this.#inLogsAt = askedAt;
    return archived;
  }

  #isInLogs(): boolean {
    return this.#bootNow() - this.#inLogsAt < LOGS_READ_WITHIN_MS;
  }

  /** It has been looked for in vain for long enough: nobody brings it back. */
  #isLost(pack: string): boolean {
    if (this.#missed?.pack !== pack) this.#missed = { pack, since: this.#bootNow() };
    return this.#bootNow() - this.#missed.since >= LOST_AFTER_MS;
  }

  listen(listeners: Parameters<RunSource['listen']>[0]): Listening {
    const { bus, owners } = this.#sources;
    const partition = owners.partitionOf(this.runId);
    const events = bus.subscribe<CommittedEvents>(subjects.events(this.runId), (committed) => {
      if (!owners.accepts(partition, committed.epoch)) return;
      this.#hasEnd ||= committed.events.some(closesRun);
      listeners.onEvents(committed.version - committed.events.length + 1, committed.events);
    });
    let chunks: BusSubscription | undefined;
    const hearChunks = (areHeard: boolean): void => {
      if (areHeard) chunks ??= subscribeLiveChunks(bus, this.runId, listeners.onChunk);
      else chunks?.stop();
      if (!areHeard) chunks = undefined;
    };
    hearChunks(true);
    const stopAsking = owners.onAskAgain(partition, listeners.onAskAgain);
    return {
      hearChunks,
      stop: () => {
        events.stop();
        hearChunks(false);
        stopAsking();
      },
    };
  }
}
