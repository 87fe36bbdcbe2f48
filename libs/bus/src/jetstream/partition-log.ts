/**
 * The log of a partition: the subject `journal.<p>` of JOURNAL. It owns the outcome of an append: whatever the broker
 * answers, or does not answer, the caller learns that its commit is stored, or that another's stands in its place.
 *
 * PARTITIONLOG-1 An append is stored at most once: each try carries the same expectation, so a second copy is refused (P1).
 * PARTITIONLOG-2 Nothing is concluded from a refusal or from silence, only from the subject's last message, read from the leader (P2).
 * PARTITIONLOG-3 The last message of the subject is never purged: that would reset the compare-and-set (P8).
 */
import assert from 'node:assert';
import { backoffMs, pause } from '@penstock/async';
import { asSequence, type Sequence } from '@penstock/run';
import { BROKER_BACKOFF } from '../wire/backoff.ts';
import type { Bus } from '../wire/bus.ts';
import { MessageTooLarge, NotPermitted, StoreRefused } from '../contract/errors.ts';
import { wireOf } from '../wire/nats-bus.ts';
import { abortable, api, directBatch, leaderMessage, store, StoreCode, type StoredMessage } from './stored.ts';
import { streams, subjects } from '../contract/subjects.ts';
import type { Wire } from '../wire/wire.ts';

/** A stored commit: opaque bytes under the sequence that the broker gave it. */
export interface LogEntry {
  readonly sequence: Sequence;
  readonly bytes: Uint8Array;
  readonly commitId: string;
}

export interface AppendOptions {
  /** Unique for each commit: by it an unanswered append is recognised (P2). */
  readonly commitId: string;
  /** Sequence of the last commit on the subject; 0: there is none. */
  readonly expectedSequence: Sequence;
}

export type AppendResult =
  | { readonly ok: true; readonly sequence: Sequence }
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
  read(fromSequence: Sequence, signal?: AbortSignal): AsyncIterable<LogEntry>;
  /**
   * P1, P2. At most one append at a time (asserted). Repeats the same bytes until they are stored or another's commit
   * stands in their place; only `signal` ends it earlier, by throwing its reason: then the outcome is unknown.
   * Throws `MessageTooLarge`, `NotPermitted`.
   */
  append(bytes: Uint8Array, options: AppendOptions, signal?: AbortSignal): Promise<AppendResult>;
  /** P8: removes the commits below `sequenceExclusive`, which must be a commit that stands in the log (asserted). */
  purgeTo(sequenceExclusive: Sequence): Promise<{ readonly purged: number }>;
  /** How much of JOURNAL's bytes are used, 0 to 1, all partitions together; at most a second old. */
  bytesUsedRatio(): Promise<number>;
}

/** Carries the commit id. Not `Nats-Msg-Id`: its window is no guarantee, and an expectation is checked before it. */
const COMMIT_HEADER = 'Penstock-Commit';
/** Well above the slowest synced append that was seen (210 ms), below the 6 s of a membership. */
const ATTEMPT_TIMEOUT_MS = 4_000;
/** A batch of a replay: enough to be fast, and little against the broker's 64 MiB for a slow client. */
const READ_COMMITS = 256;
const READ_BYTES = 4 * 1024 * 1024;
/** A log that ends before the expectation is believed after as many reads, so not while a cluster elects a leader. */
const BEHIND_READS = 5;

export function openLog(bus: Bus, partition: number, options: LogOptions = {}): PartitionLog {
  return new JetStreamLog(wireOf(bus), partition, options);
}

class JetStreamLog implements PartitionLog {
  readonly partition: number;
  readonly subject: string;
  readonly #wire: Wire;
  readonly #onTrouble: (trouble: LogTrouble) => void;
  readonly #timeoutMs: number;
  #appending = false;

  constructor(wire: Wire, partition: number, options: LogOptions) {
    this.partition = partition;
    this.subject = subjects.journal(partition);
    this.#wire = wire;
    this.#onTrouble = options.onTrouble ?? (() => {});
    this.#timeoutMs = options.attemptTimeoutMs ?? ATTEMPT_TIMEOUT_MS;
  }

  last(signal?: AbortSignal): Promise<LogEntry | null> {
    return this.#untilAnswered('last', signal, () => this.#readLast());
  }

  async *read(fromSequence: Sequence, signal?: AbortSignal): AsyncIterable<LogEntry> {
    const last = await this.last(signal);
    let next = fromSequence;
    while (last !== null && next <= last.sequence) {
      const from = next;
      const batch = await this.#untilAnswered('read', signal, async () => {
        const request = { seq: from, next_by_subj: this.subject, batch: READ_COMMITS, max_bytes: READ_BYTES };
        const messages = await directBatch(this.#wire, streams.journal, request, this.#timeoutMs);
        // A log that has lost its end meanwhile has no such commit; otherwise a replica without it is behind.
        if (messages.length === 0 && ((await this.#readLast())?.sequence ?? 0) < from) return [];
        if (messages.length === 0) throw new StoreRefused(this.subject, 404, `nothing from sequence ${from} on yet`);
        return messages;
      });
      if (batch.length === 0) return;
      for (const message of batch) {
        if (message.sequence > last.sequence) return;
        yield entryOf(message);
        next = message.sequence + 1;
      }
    }
  }

  async append(bytes: Uint8Array, options: AppendOptions, signal?: AbortSignal): Promise<AppendResult> {
    assert(!this.#appending, `a second append to ${this.subject} while one is in flight (P1)`);
    this.#appending = true;
    try {
      return await this.#append(bytes, options, signal);
    } finally {
      this.#appending = false;
    }
  }

  async #append(
    bytes: Uint8Array,
    { commitId, expectedSequence }: AppendOptions,
    signal?: AbortSignal,
  ): Promise<AppendResult> {
    const how = { expectedLastSequence: expectedSequence, more: { [COMMIT_HEADER]: commitId } };
    let behind = 0;
    for (let attempt = 1; ; attempt += 1) {
      let refusal: Error;
      try {
        const { sequence } = await abortable(store(this.#wire, this.subject, bytes, how, this.#timeoutMs), signal);
        return { ok: true, sequence };
      } catch (error) {
        refusal = this.#toRepeat('append', attempt, error, signal);
      }
      const last = await this.last(signal);
      if (last?.commitId === commitId) return { ok: true, sequence: last.sequence };
      const lastSequence = last?.sequence ?? 0;
      if (lastSequence > expectedSequence) return { ok: false, kind: 'deposed', last };
      // Refused for its expectation although nothing follows: only a log that has lost commits does that.
      behind = lastSequence < expectedSequence && isWrongSequence(refusal) ? behind + 1 : 0;
      if (behind >= BEHIND_READS) return { ok: false, kind: 'deposed', last };
      await pause(backoffMs(attempt, BROKER_BACKOFF), signal);
    }
  }

  async purgeTo(sequenceExclusive: Sequence): Promise<{ purged: number }> {
    const kept = await leaderMessage(this.#wire, streams.journal, { seq: sequenceExclusive }, this.#timeoutMs);
    assert(
      kept?.subject === this.subject,
      `a purge of ${this.subject} must stop at a commit that it keeps, ${sequenceExclusive} is none (P8)`,
    );
    const request = { filter: this.subject, seq: sequenceExclusive };
    return await api<{ purged: number }>(this.#wire, `STREAM.PURGE.${streams.journal}`, request, this.#timeoutMs);
  }

  bytesUsedRatio(): Promise<number> {
    return journalUse(this.#wire, this.#timeoutMs);
  }

  async #readLast(): Promise<LogEntry | null> {
    const message = await leaderMessage(this.#wire, streams.journal, { last_by_subj: this.subject }, this.#timeoutMs);
    return message === null ? null : entryOf(message);
  }

  async #untilAnswered<T>(
    operation: LogTrouble['operation'],
    signal: AbortSignal | undefined,
    ask: () => Promise<T>,
  ): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await abortable(ask(), signal);
      } catch (error) {
        this.#toRepeat(operation, attempt, error, signal);
      }
      await pause(backoffMs(attempt, BROKER_BACKOFF), signal);
    }
  }

  /** Throws what no repetition helps against; tells of the rest. */
  #toRepeat(
    operation: LogTrouble['operation'],
    attempt: number,
    error: unknown,
    signal: AbortSignal | undefined,
  ): Error {
    signal?.throwIfAborted();
    if (!(error instanceof Error) || error instanceof MessageTooLarge || error instanceof NotPermitted) throw error;
    this.#onTrouble({ kind: troubleKind(error), operation, attempt, error });
    return error;
  }
}

function entryOf(message: StoredMessage): LogEntry {
  return { sequence: asSequence(message.sequence), bytes: message.bytes, commitId: message.header(COMMIT_HEADER) };
}

function isWrongSequence(error: Error): boolean {
  return (
    error instanceof StoreRefused &&
    (error.code === StoreCode.wrongLastSequence || error.code === StoreCode.wrongLastSequenceUnknown)
  );
}

const FULL_CODES: readonly number[] = [
  StoreCode.storeFailed,
  StoreCode.insufficientResources,
  StoreCode.storageExceeded,
];

function troubleKind(error: Error): LogTrouble['kind'] {
  if (!(error instanceof StoreRefused)) return 'unavailable';
  return FULL_CODES.includes(error.code) ? 'full' : 'refused';
}

/** Asked by every partition before every create: one question a second for all of them. */
const USE_MS_MAX = 1_000;
const uses = new WeakMap<Wire, { readonly askedAt: number; readonly ratio: Promise<number> }>();

function journalUse(wire: Wire, timeoutMs: number): Promise<number> {
  const known = uses.get(wire);
  if (known !== undefined && performance.now() - known.askedAt < USE_MS_MAX) return known.ratio;
  interface Info {
    config: { max_bytes: number };
    state: { bytes: number };
  }
  const ratio = api<Info>(wire, `STREAM.INFO.${streams.journal}`, undefined, timeoutMs).then(({ config, state }) =>
    config.max_bytes > 0 ? state.bytes / config.max_bytes : 0,
  );
  uses.set(wire, { askedAt: performance.now(), ratio });
  return ratio;
}
