/** Where a run's events and log come from: the events from its owner while it goes on, then from the store; the log from the stream `LOGS`. */
import {
  lastChunks,
  readChunks,
  subjects,
  subscribeLiveChunks,
  type Bus,
  type CommittedEvents,
  type LiveChunk,
  type StoredChunk,
} from '@penstock/bus';
import type { RunEvent } from '@penstock/run';
import type { RunsReader } from '@penstock/store';
import { readRunEvents, type Owners } from '@penstock/run-client';

export interface RunSource {
  readonly runId: string;
  /**
   * The committed events after this version, all of them, oldest first. Throws `Unavailable`, and `NotFound` for a run
   * that nobody knows any more.
   */
  events(after: number): Promise<readonly RunEvent[]>;
  /** The stored chunks from this sequence on, in stored order, up to the last at the time of the call. */
  chunks(fromSequence: number, signal: AbortSignal): AsyncIterable<StoredChunk>;
  /** The sequence of the last chunk that each runner has stored for the run. */
  lastSequences(signal: AbortSignal): Promise<ReadonlyMap<string, number>>;
  /** What happens from now on; whatever may have been missed is announced by `onAskAgain`. Answers how to stop. */
  listen(listeners: {
    readonly onEvents: (first: number, events: readonly RunEvent[]) => void;
    readonly onChunk: (chunk: LiveChunk) => void;
    readonly onAskAgain: () => void;
  }): () => void;
}

export class BusRunSource implements RunSource {
  readonly runId: string;
  readonly #bus: Bus;
  readonly #owners: Owners;
  readonly #store: RunsReader;
  readonly #tenants: readonly string[];

  constructor(
    sources: { readonly bus: Bus; readonly owners: Owners; readonly store: RunsReader },
    runId: string,
    tenants: readonly string[],
  ) {
    this.runId = runId;
    this.#bus = sources.bus;
    this.#owners = sources.owners;
    this.#store = sources.store;
    this.#tenants = tenants;
  }

  events(after: number): Promise<readonly RunEvent[]> {
    return readRunEvents({ owners: this.#owners, store: this.#store }, this.runId, this.#tenants, after);
  }

  chunks(fromSequence: number, signal: AbortSignal): AsyncIterable<StoredChunk> {
    return readChunks(this.#bus, this.runId, fromSequence, signal);
  }

  async lastSequences(signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const chunks = await lastChunks(this.#bus, this.runId, signal);
    return new Map(chunks.map(({ runner, sequence }) => [runner, sequence]));
  }

  listen(listeners: Parameters<RunSource['listen']>[0]): () => void {
    const partition = this.#owners.partitionOf(this.runId);
    const events = this.#bus.subscribe<CommittedEvents>(subjects.events(this.runId), (committed) => {
      if (!this.#owners.accepts(partition, committed.epoch)) return;
      listeners.onEvents(committed.version - committed.events.length + 1, committed.events);
    });
    const chunks = subscribeLiveChunks(this.#bus, this.runId, listeners.onChunk);
    const stopAsking = this.#owners.onAskAgain(partition, listeners.onAskAgain);
    return () => {
      events.stop();
      chunks.stop();
      stopAsking();
    };
  }
}
