/**
 * Removes the commits of a partition that are projected and of no use any more (P8): those of two hours ago, and all of them once
 * JOURNAL is half full. A duty of the tick: a partition in which nothing happens is purged like any other, or a full journal would
 * refuse new runs for ever.
 *
 *  PURGE-1 A purge goes up to a checkpoint that was read back from the store, and leaves that commit itself: a log is never empty.
 */
import type { PartitionLog } from '@penstock/bus';
import type { Sequence } from '@penstock/run';
import type { RunsLedger } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import type { SchedulerLoad } from '../run/scheduler-load.ts';

/** Commits stay in the log this long after they are projected, for those who read it back (P8). */
const KEEP_MS = 2 * 60 * 60 * 1000;
const PURGE_EVERY_MS = 60 * 1000;
/** Past this share of JOURNAL everything projected goes, and more often: it fills in minutes. */
const PURGE_ALL_FROM = 0.5;
const PURGE_ALL_EVERY_MS = 5 * 1000;
/** Positions are kept so far apart at least, so that two hours of them are few. */
const POSITION_EVERY_MS = 10 * 1000;

export interface JournalPurgeDependencies {
  readonly partition: number;
  readonly journal: Pick<PartitionLog, 'purgeTo'>;
  readonly ledger: Pick<RunsLedger, 'checkpoint'>;
  readonly load: Pick<SchedulerLoad, 'journalUsed'>;
  readonly log: Pick<Log, 'warn'>;
  /** The boot clock. */
  bootNow(): number;
}

export class JournalPurge {
  readonly #dependencies: JournalPurgeDependencies;
  /** Checkpointed positions and when they were reached, oldest first. */
  readonly #positions: { readonly at: number; readonly sequence: Sequence }[] = [];
  /** The newest of all, which may be too near to the one before it to be kept among them. */
  #newest: { readonly at: number; readonly sequence: Sequence } | undefined;
  #lookedAt: number;
  /** What was purged up to. */
  #purgedTo: Sequence = 0;
  #purging: Promise<void> | undefined;

  constructor(dependencies: JournalPurgeDependencies) {
    this.#dependencies = dependencies;
    this.#lookedAt = dependencies.bootNow();
  }

  /** The checkpoint stands at this sequence. */
  reached(sequence: Sequence): void {
    const at = this.#dependencies.bootNow();
    const before = this.#newest;
    this.#newest = { at, sequence };
    const last = this.#positions.at(-1);
    if (last === undefined || at - last.at >= POSITION_EVERY_MS) {
      // After a pause the one before it is much older than this one.
      if (before !== undefined && before !== last) this.#positions.push(before);
      this.#positions.push(this.#newest);
    }
    // Of those that are old enough only the last is of use, should the broker not have taken a purge for long.
    while ((this.#positions[1]?.at ?? at) < at - KEEP_MS) this.#positions.shift();
  }

  tick(): void {
    const { bootNow, load } = this.#dependencies;
    const now = bootNow();
    const isPressed = load.journalUsed >= PURGE_ALL_FROM;
    if (this.#purging !== undefined || now - this.#lookedAt < (isPressed ? PURGE_ALL_EVERY_MS : PURGE_EVERY_MS)) return;
    this.#lookedAt = now;
    const upTo = isPressed ? this.#newest?.sequence : this.#oldEnough(now);
    if (upTo === undefined || upTo <= this.#purgedTo) return;
    this.#purging = this.#purge(upTo).finally(() => {
      this.#purging = undefined;
    });
  }

  /** Resolves when no purge is under way. */
  async done(): Promise<void> {
    await this.#purging;
  }

  #oldEnough(now: number): Sequence | undefined {
    const until = now - KEEP_MS;
    // The newest counts too: in a quiet partition it is the end of the log.
    if (this.#newest !== undefined && this.#newest.at < until) return this.#newest.sequence;
    return this.#positions.findLast(({ at }) => at < until)?.sequence;
  }

  async #purge(upTo: Sequence): Promise<void> {
    const { partition, ledger, journal, log } = this.#dependencies;
    try {
      const stored = await ledger.checkpoint(partition);
      if (stored === null || upTo > stored.sequence) return;
      await journal.purgeTo(upTo);
      this.#purgedTo = upTo;
      const kept = this.#positions.findIndex(({ sequence }) => sequence > upTo);
      this.#positions.splice(0, kept < 0 ? this.#positions.length : kept);
    } catch (error) {
      log.warn({ err: error, partition }, 'the journal could not be purged; tried again within a minute');
    }
  }
}
