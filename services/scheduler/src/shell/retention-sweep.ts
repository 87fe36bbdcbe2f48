/**
 * Deletes what is past its retention, for the owner of one partition: closed runs, by the owner's own commits (P34), and
 * tombstones that nobody needs any more; for partition 0 the audit log too. It owns where it is in each of these.
 *
 *  RETENTION-1 A step is bounded, whatever there is: a page of ids by their index, and the views of those alone that are to go.
 *     The next one comes a second later at the earliest, and none while deletions of steps before leave no room for a page.
 *  RETENTION-2 The newest runs of a pipeline stay, whatever their age, and so does a run that has ended within its retention,
 *     however long it went on.
 *  RETENTION-3 What cannot be read or deleted now is come back to by the next pass, and holds up nothing of this one.
 *  RETENTION-4 A clock that may have leapt ahead deletes nothing for an hour, in which it may be set right: one that leaps while the owner
 *     runs, and one by which the partition had no run for a day when the owner began.
 */
import { runIdTime } from '@penstock/run';
import { StoreUnavailable, type OldRun, type RetentionLedger } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import type { Partition } from '../partition/partition.ts';

export interface Retention {
  readonly ledger: RetentionLedger;
  readonly runMs: number;
  /** Of each pipeline, 1 to 1,000. */
  readonly runs: number;
  readonly auditMs: number;
}

export interface RetentionSweepDependencies {
  readonly retention: Retention;
  readonly partition: Pick<Partition, 'expire' | 'roomToExpire' | 'settings'>;
  /** The latest time in an id of the partition's runs; 0: there was none. */
  readonly newestRunAt: number;
  /** The wall clock. */
  now(): number;
  bootNow(): number;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

const DAY_MS = 24 * 60 * 60_000;
/** Longer than any delivery or retried create is remembered (P24). */
const TOMBSTONE_MS = 8 * DAY_MS;
const STEP_MS = 1_000;
/** After a step that failed: the store is away. */
const FAILED_MS = 60_000;
/** Between two passes; and before the first one of an owner, which has other things to do. */
const PASS_MS = 60 * 60_000;
const FIRST_MS = 60_000;
/** Further than a clock is set while it is kept right; and for how long it rests then. */
const LEAP_MS = DAY_MS;
const REST_MS = 60 * 60_000;
const PAGE = 200;
const AUDIT_PAGE = 500;
/** No tier keeps less than a day: what is younger is not even looked at. */
const KEEP_MS_MIN = DAY_MS;

type Phase = 'runs' | 'tombstones' | 'audit';

export class RetentionSweep {
  readonly #dependencies: RetentionSweepDependencies;
  #phase: Phase = 'runs';
  #after: string | undefined;
  #nextAt: number;
  /** Of the wall clock to the boot clock, when last looked at. */
  #offset: number;
  #working: Promise<void> | undefined;
  /** In this pass. */
  #removed = { runs: 0, tombstones: 0, audit: 0 };
  #stopped = false;

  constructor(dependencies: RetentionSweepDependencies) {
    this.#dependencies = dependencies;
    const { bootNow, now, newestRunAt } = dependencies;
    this.#offset = now() - bootNow();
    this.#nextAt = bootNow() + (now() - newestRunAt > LEAP_MS ? REST_MS : FIRST_MS);
  }

  /** About every second. */
  tick(): void {
    const { bootNow, log, partition } = this.#dependencies;
    this.#watchClock();
    if (this.#stopped || this.#working !== undefined || bootNow() < this.#nextAt) return;
    const about = { partition: partition.settings.partition };
    this.#working = this.#step()
      .catch((error: unknown) => {
        if (!this.#stopped) log.warn({ err: error, ...about }, 'what is past its retention stays for now');
        this.#nextAt = Math.max(this.#nextAt, bootNow() + FAILED_MS);
      })
      .finally(() => {
        this.#working = undefined;
      });
  }

  /** RETENTION-4 */
  #watchClock(): void {
    const { bootNow, now, log, partition } = this.#dependencies;
    const offset = now() - bootNow();
    const leap = offset - this.#offset;
    this.#offset = offset;
    if (leap <= LEAP_MS) return;
    this.#nextAt = bootNow() + REST_MS;
    log.warn(
      { partition: partition.settings.partition, leapMs: leap },
      'the clock has leapt ahead: nothing is removed for an hour; set it right before then if it is wrong',
    );
  }

  /** Ends after the step that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#working;
  }

  async #step(): Promise<void> {
    const { bootNow } = this.#dependencies;
    this.#nextAt = bootNow() + STEP_MS;
    if (this.#phase === 'runs') await this.#runs();
    else if (this.#phase === 'tombstones') await this.#tombstones();
    else await this.#audit();
  }

  async #runs(): Promise<void> {
    const { retention, partition, now } = this.#dependencies;
    // A page of which some were left would be come back to an hour later.
    if (partition.roomToExpire < PAGE) return;
    const page = { after: this.#after, limit: PAGE };
    const shortest = Math.min(retention.runMs, KEEP_MS_MIN);
    const { runs, last } = await retention.ledger.closedBefore(partition.settings.partition, now() - shortest, page);
    const old = await this.#pastRetention(runs);
    if (this.#stopped) return;
    this.#removed.runs += partition.expire(old);
    this.#goOn(last, 'tombstones');
  }

  async #pastRetention(runs: readonly OldRun[]): Promise<OldRun[]> {
    const { retention, now } = this.#dependencies;
    const { ledger } = retention;
    const oldest = new Map<string, Promise<string | undefined>>();
    const old: OldRun[] = [];
    for (const run of runs) {
      if (this.#stopped) break;
      const count = run.keepRuns === 0 ? retention.runs : run.keepRuns;
      const keepMs = run.keepDays === 0 ? retention.runMs : run.keepDays * DAY_MS;
      const before = now() - keepMs;
      if (runIdTime(run.id) >= before) continue;
      const pipeline = JSON.stringify([run.tenant, run.pipelineName, count]);
      let kept = oldest.get(pipeline);
      if (kept === undefined) oldest.set(pipeline, (kept = ledger.oldestOfNewest(run, count)));
      const oldestKept = await kept;
      if (oldestKept === undefined || run.id >= oldestKept) continue;
      const finishedAt = await this.#finishedAt(run);
      if (finishedAt !== undefined && finishedAt < before) old.push(run);
    }
    return old;
  }

  /** Undefined: it has not ended, or cannot be read (RETENTION-3). */
  async #finishedAt({ id }: OldRun): Promise<number | undefined> {
    const { retention, log } = this.#dependencies;
    try {
      return await retention.ledger.finishedAt(id);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.warn({ err: error, runId: id }, 'a run that is past its retention cannot be read, and stays');
      return undefined;
    }
  }

  async #tombstones(): Promise<void> {
    const { retention, partition, now } = this.#dependencies;
    const { ledger } = retention;
    const page = { after: this.#after, limit: PAGE };
    const { over, last } = await ledger.tombstonesBefore(partition.settings.partition, now() - TOMBSTONE_MS, page);
    await ledger.forget(over);
    this.#removed.tombstones += over.length;
    this.#goOn(last, partition.settings.partition === 0 ? 'audit' : undefined);
  }

  async #audit(): Promise<void> {
    const { retention, now } = this.#dependencies;
    const removed = await retention.ledger.forgetAudit(now() - retention.auditMs, AUDIT_PAGE);
    this.#removed.audit += removed;
    if (removed < AUDIT_PAGE) this.#goOn(undefined, undefined);
  }

  /** `last` undefined: what follows is `next`; undefined: the pass is over. */
  #goOn(last: string | undefined, next: Phase | undefined): void {
    this.#after = last;
    if (last !== undefined) return;
    this.#phase = next ?? 'runs';
    if (next !== undefined) return;
    const { bootNow, log, partition } = this.#dependencies;
    const { runs, tombstones, audit } = this.#removed;
    if (runs + tombstones + audit > 0)
      log.info(
        { partition: partition.settings.partition, runs, tombstones, audit },
        'removed what was past its retention',
      );
    this.#removed = { runs: 0, tombstones: 0, audit: 0 };
    this.#nextAt = bootNow() + PASS_MS;
  }
}
