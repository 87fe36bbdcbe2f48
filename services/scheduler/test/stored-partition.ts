/** A partition as a take-over finds it. */
import { machineTime } from '@penstock/async';
import type { AppendResult, LogEntry, PartitionLog } from '@penstock/bus';
import { viewOf, type RunEvent } from '@penstock/run';
import {
  COMMIT_FORMAT,
  decodeCommit,
  encodeCommit,
  LiveRun,
  type Commit,
  type Opening,
  type RunEntry,
} from '@penstock/scheduler/testing';
import type {
  Checkpoint,
  EncodedRun,
  RunDocument,
  RunsLedger,
  ScheduleDocument,
  UnreadableRun,
  UnreadableSchedule,
} from '@penstock/store';
import { encodeEvent, type ScheduleEntry } from '../src/run/commit.ts';
import { definitions, NOW, settings, stage, text } from './support.ts';

/** The file of its runs. */
export const yaml = text([stage('a'), stage('b')]);

/** A log and a store in memory, and a member that wants the partition. */
export class StoredPartition implements PartitionLog {
  readonly partition = 0;
  readonly subject = 'journal.0';
  entries: LogEntry[] = [];
  readonly documents = new Map<string, RunDocument>();
  point: Checkpoint | null = null;
  /** Runs whose documents are damaged. */
  readonly damaged = new Set<string>();
  readonly living = new Set<string>();
  /** Called before each read of the checkpoint. */
  beforeCheckpoint = (): void => {};
  /** What an append waits for. */
  beforeAppend = (): Promise<void> => Promise.resolve();
  /** Called before the log is read. */
  beforeRead = (): void => {};
  #ids = 0;
  #sequence = 10;

  opening(member = 'me'): Opening {
    this.living.add(member);
    return {
      partition: 0,
      member,
      log: this,
      ledger: this.#ledger,
      signal: new AbortController().signal,
      isGone: async (other) => !this.living.has(other),
      now: () => NOW,
      newCommitId: () => `c${++this.#ids}`,
      after: machineTime.after,
    };
  }

  add(
    kind: Commit['kind'],
    more: {
      readonly owner?: string;
      readonly epoch?: number;
      readonly number?: number;
      readonly runs?: readonly RunEntry[];
      readonly deleted?: readonly string[];
      readonly schedules?: readonly ScheduleEntry[];
    } = {},
  ): LogEntry {
    const { owner = 'old', epoch = 1, number = this.entries.length + 1 } = more;
    const { runs = [], schedules = [], deleted = [] } = more;
    const head = { id: `x${++this.#ids}`, kind, partition: 0, epoch, number, owner, minReader: COMMIT_FORMAT, at: NOW };
    const entry = {
      sequence: ++this.#sequence,
      commitId: head.id,
      bytes: encodeCommit(
        head,
        runs.map(({ id, from, events }) => ({ id, from, events: events.map(encodeEvent) })),
        schedules.map(({ id, events }) => ({ id, events: events.map((event) => JSON.stringify(event)) })),
        deleted.map((id) => JSON.stringify({ id, tenant: 'ada', event: { type: 'run_deleted', at: NOW, by: 'ada' } })),
      ),
    };
    this.entries.push(entry);
    return entry;
  }

  document(id: string, events: readonly RunEvent[], sequence: number, more: Partial<RunDocument> = {}): void {
    const { state } = LiveRun.restore(
      id,
      definitions.find(yaml).definition,
      { events: [...events], sequence: 0 },
      settings,
    );
    this.documents.set(id, {
      partition: 0,
      open: true,
      incarnation: 1,
      sequence,
      state,
      events,
      view: viewOf(state),
      ...more,
    });
  }

  commits(): Commit[] {
    return this.entries.map(({ bytes }) => decodeCommit(bytes));
  }

  async last(): Promise<LogEntry | null> {
    return this.entries.at(-1) ?? null;
  }

  async *read(fromSequence: number): AsyncIterable<LogEntry> {
    this.beforeRead();
    yield* this.entries.filter(({ sequence }) => sequence >= fromSequence);
  }

  async append(
    bytes: Uint8Array,
    { commitId, expectedSequence }: { readonly commitId: string; readonly expectedSequence: number },
    signal?: AbortSignal,
  ): Promise<AppendResult> {
    const isCalledOff = new Promise<never>((_, reject) =>
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
    );
    await Promise.race([this.beforeAppend(), isCalledOff]);
    const last = this.entries.at(-1) ?? null;
    if ((last?.sequence ?? 0) !== expectedSequence) return { ok: false, kind: 'deposed', last };
    this.entries.push({ sequence: ++this.#sequence, commitId, bytes });
    return { ok: true, sequence: this.#sequence };
  }

  async purgeTo(): Promise<{ purged: number }> {
    return { purged: 0 };
  }

  async bytesUsedRatio(): Promise<number> {
    return 0;
  }

  readonly schedules: (ScheduleDocument | UnreadableSchedule)[] = [];
  readonly tombstones = new Set<string>();
  readonly #ledger: RunsLedger = {
    saveBatch: async (_documents: readonly (RunDocument | EncodedRun)[]) => ({ stale: [] }),
    checkpoint: async () => {
      this.beforeCheckpoint();
      return this.point;
    },
    saveCheckpoint: async () => 'saved',
    openOf: () => this.#where(({ open }) => open),
    laterThan: (_partition, { incarnation, sequence }) =>
      this.#where(
        (document) =>
          document.incarnation > incarnation || (document.incarnation === incarnation && document.sequence > sequence),
      ),
    getAsOwner: async (id) => {
      if (this.damaged.has(id)) throw new SyntaxError('damaged');
      return this.documents.get(id) ?? null;
    },
    exists: async () => new Set(),
    standingOf: async () => null,
    saveTombstones: async () => {},
    deletedAmong: async (ids) => new Set(ids.filter((id) => this.tombstones.has(id))),
    addCaches: async () => {},
    hooksOf: async () => [],
    addHookDeliveries: async () => {},
    hookBacklog: async () => ({ deliveries: 0, bytes: 0 }),
    headOf: async () => null,
    saveSchedules: async () => {},
    schedulesOf: () => this.#schedulesOf(),
    newestSchedule: async () => null,
    saveCounters: async () => {},
    counter: async () => null,
    async *countersOf() {},
  };

  async *#schedulesOf(): AsyncIterable<ScheduleDocument | UnreadableSchedule> {
    yield* this.schedules;
  }

  async *#where(matches: (document: RunDocument) => boolean): AsyncIterable<RunDocument | UnreadableRun> {
    for (const [id, document] of this.documents)
      if (matches(document))
        yield this.damaged.has(id) ? { id, ...document, unreadable: new SyntaxError('damaged') } : document;
  }
}
