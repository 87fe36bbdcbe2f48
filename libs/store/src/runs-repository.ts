/**
 * Run documents, checkpoints and monthly counters, as the protocols want them. Two faces, so that nobody holds the one
 * that is not theirs:
 *
 * - RunsReader, for answers to clients. Every method takes the tenants that the caller may see, and a run of any other
 *   tenant does not exist in its answers. No resolver filters by itself, so none can forget to.
 * - RunsLedger, for the owner of a partition and its projector, which see all of it.
 *
 * R1 A document, a checkpoint, a counter is written only over a lower (incarnation, sequence) (P8).
 * R2 A checkpoint is written by its caller after the documents it covers were acknowledged (P6).
 * R3 Every list is bounded: a page by its limit, an iteration by its batches.
 *
 * All methods reject with the errors of the store's port.
 */
import type { RunEvent, RunState, RunView } from '@penstock/run';

/** A run as the projector writes it; all that its actor needs to go on (P6). */
export interface RunDocument {
  readonly partition: number;
  /** Not closed yet in the sense of P6: take-over reads it. */
  readonly open: boolean;
  /** The commit that this document stands for. */
  readonly incarnation: number;
  readonly sequence: number;
  readonly state: RunState;
  /** All of them, version 1 first. */
  readonly events: readonly RunEvent[];
  /** Of this state; kept beside it, so that lists of runs need not read the state. */
  readonly view: RunView;
}

/** A run document made ready for writing: what an owner keeps of an ended run that is not projected yet (P6). */
export interface EncodedRun {
  readonly id: string;
  readonly partition: number;
  readonly tenant: string;
  readonly key: string;
  readonly pipelineName: string;
  readonly createdAt: number;
  readonly status: string;
  readonly open: boolean;
  readonly incarnation: number;
  readonly sequence: number;
  /** JSON of the RunView. */
  readonly view: string;
  /** JSON of `{state, events}`. */
  readonly story: string;
}

export interface Checkpoint {
  readonly partition: number;
  readonly incarnation: number;
  /** Everything up to and including this commit's sequence in the log is in documents. */
  readonly sequence: number;
  /** The number of that commit; they are numbered without gaps. */
  readonly commit: number;
}

/** How many runs a key has had created in a month (P23). */
export interface RunCounter {
  readonly partition: number;
  readonly key: string;
  /** UTC, `2026-11`. */
  readonly month: string;
  readonly runs: number;
  readonly incarnation: number;
  readonly sequence: number;
}

export interface RunsReader {
  /** Null: there is none, or it is not of these tenants. */
  get(id: string, options: { readonly tenants: readonly string[] }): Promise<RunDocument | null>;

  /** The same without state and events: cheap. */
  view(id: string, options: { readonly tenants: readonly string[] }): Promise<RunView | null>;

  /** The newest first, by id. `before` is the last id of the page before; limit 1 to 500. */
  page(options: {
    readonly tenants: readonly string[];
    readonly pipelineName?: string | undefined;
    readonly before?: string | undefined;
    readonly limit: number;
  }): Promise<RunView[]>;
}

export interface RunsLedger {
  /** Writes those that are newer than what is stored; answers the ids of the others. Any number; sent in batches. */
  saveBatch(documents: readonly (RunDocument | EncodedRun)[]): Promise<{ readonly stale: readonly string[] }>;

  /** Null: nothing was projected yet. */
  checkpoint(partition: number): Promise<Checkpoint | null>;
  /** `stale`: the same or a higher one is stored. */
  saveCheckpoint(checkpoint: Checkpoint): Promise<'saved' | 'stale'>;

  /** Documents with `open: true`, oldest id first, read in batches. */
  openOf(partition: number): AsyncIterable<RunDocument>;
  /** Documents that stand for a later commit than this one; open or not. */
  laterThan(partition: number, position: { readonly incarnation: number; readonly sequence: number }): AsyncIterable<RunDocument>;

  /** Whatever its tenant: for the owner of its partition only. */
  getAsOwner(id: string): Promise<RunDocument | null>;
  /** Which of these runs have a document (P7). */
  exists(ids: readonly string[]): Promise<Set<string>>;

  saveCounters(counters: readonly RunCounter[]): Promise<void>;
  counter(key: string, month: string): Promise<RunCounter | null>;
  countersOf(partition: number, month: string): AsyncIterable<RunCounter>;
}
