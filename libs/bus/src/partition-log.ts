import type { Bus } from './bus.ts';

/** A stored commit: opaque bytes under the sequence that the broker gave it. */
export interface LogEntry {
  readonly sequence: number;
  readonly bytes: Uint8Array;
  readonly commitId: string;
}

export interface AppendOptions {
  /** Unique for each commit: by it an unanswered append is recognised (P2). */
  readonly commitId: string;
  /** Sequence of the last commit on the subject; 0: there is none. */
  readonly expectedSequence: number;
}

export type AppendResult =
  | { readonly ok: true; readonly sequence: number }
  /**
   * Another's commit follows the expected one; or (`last` below the expectation, or null) the broker has lost commits,
   * so that this append can never be accepted. Either way: forget the partition, open it anew.
   */
  | { readonly ok: false; readonly kind: 'deposed'; readonly last: LogEntry | null };

/** `full`: the stream's or the broker's bytes are used up. `unavailable`: no answer, no leader, no connection. */
export interface LogTrouble {
  readonly kind: 'full' | 'unavailable' | 'refused';
  readonly operation: 'append' | 'last' | 'read';
  /** Counts from 1 within one call. */
  readonly attempt: number;
  readonly error: Error;
}

export interface LogOptions {
  /** Told of each failed try that is going to be repeated; for logging and for health. */
  readonly onTrouble?: ((trouble: LogTrouble) => void) | undefined;
  /** Of one try. Default 4,000. */
  readonly attemptTimeoutMs?: number | undefined;
}

export interface PartitionLog {
  readonly partition: number;
  readonly subject: string;
  /** The last commit, as the stream's leader has it. Tries until it has an answer or `signal` aborts. */
  last(signal?: AbortSignal): Promise<LogEntry | null>;
  /** Commits with a sequence >= `fromSequence` in order, up to the last one at the time of the call. */
  read(fromSequence: number, signal?: AbortSignal): AsyncIterable<LogEntry>;
  /**
   * P1, P2. At most one append at a time (asserted). Repeats the same bytes until they are stored or another's commit
   * stands in their place; only `signal` ends it earlier, by throwing its reason: then the outcome is unknown.
   * Throws `MessageTooLarge`, `NotPermitted`.
   */
  append(bytes: Uint8Array, options: AppendOptions, signal?: AbortSignal): Promise<AppendResult>;
  /** P8: removes the commits below `sequenceExclusive`, which must be a commit that stands in the log (asserted). */
  purgeTo(sequenceExclusive: number): Promise<{ readonly purged: number }>;
  /** How much of JOURNAL's bytes are used, 0 to 1, all partitions together; at most a second old. */
  bytesUsedRatio(): Promise<number>;
}

export declare function openLog(bus: Bus, partition: number, options?: LogOptions): PartitionLog;
