/**
 * The commits of one partition: what is decided joins the one that fills, and what waits for it is called when it is
 * acknowledged. Owns the position in the log and the commit that is under way.
 *
 *  COMMIT-1 One commit is under way at a time; the next is sent by `send` once it is acknowledged (P1).
 *  COMMIT-2 What waits on a commit is called in the order in which it was said, after the commit's events have been shown.
 *  COMMIT-3 What is decided about a run and not acknowledged stands in the commits to come, once and in its order.
 *  COMMIT-4 A commit has no more runs than COMMIT_RUNS_MAX.
 */
import { runIdTime, type RunEvent, type Epoch, type ScheduleEvent, type Sequence, type Version } from '@penstock/run';
import { CommitBuilder, type CommitDraft } from './commit-builder.ts';
import { COMMIT_FORMAT, COMMIT_RUNS_MAX, encodeCommit, type CommitHead, type DeletedEntry } from '../run/commit.ts';
import { invariant } from '../run/invariant.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { LiveSchedule } from '../run/live-schedule.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { TenantChanges } from './tenant-changes.ts';

export interface CommitSettings {
  readonly partition: number;
  readonly member: string;
  readonly epoch: Epoch;
}

/** Full commits waiting behind the one under way; beyond this the broker is too slow and new runs are refused. */
const DRAFTS_MAX = 16;

export class CommitCycle {
  readonly #settings: CommitSettings;
  readonly #ports: Pick<PartitionPorts, 'append' | 'newCommitId'>;
  readonly #builder = new CommitBuilder();
  /** As acknowledged. */
  readonly changes = new TenantChanges();
  #inFlight: CommitDraft | undefined;
  #sentAt = 0;
  #sequence = 0;
  #number = 0;
  #idsTo = 0;

  constructor(settings: CommitSettings, ports: Pick<PartitionPorts, 'append' | 'newCommitId'>) {
    this.#settings = settings;
    this.#ports = ports;
  }

  /** The sequence of the last acknowledged commit. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Its number in the partition. */
  get number(): number {
    return this.#number;
  }

  /** The latest time in an id of a run of the partition, whoever created it. */
  get idsTo(): number {
    return this.#idsTo;
  }

  /** Since when the commit under way is not stored, by the boot clock; undefined: none is. */
  get waitsSince(): number | undefined {
    return this.#inFlight === undefined ? undefined : this.#sentAt;
  }

  get isTooSlow(): boolean {
    return this.#builder.waiting >= DRAFTS_MAX;
  }

  start(sequence: Sequence, number: number, idsTo: number): void {
    this.#sequence = sequence;
    this.#number = number;
    this.#idsTo = idsTo;
    this.changes.start(sequence);
  }

  /** Adds the events of one decision; `from` is the version of the first. */
  add(run: LiveRun, from: Version, events: readonly RunEvent[]): CommitDraft {
    if (from === 1) this.#idsTo = Math.max(this.#idsTo, runIdTime(run.id));
    return this.#builder.add(run, from, events);
  }

  /** Decides an event of a schedule; it joins a commit to come, that of the creation of `run` where one is given. */
  addSchedule(schedule: LiveSchedule, event: ScheduleEvent, run?: LiveRun): void {
    this.#builder.addSchedule(schedule, event, schedule.decide(event), run);
  }

  /** Decides that a closed run is deleted. */
  addDeletion(entry: DeletedEntry): void {
    this.#builder.addDeletion(entry);
  }

  /** Whether a commit about the run is under way. */
  isUnderWay(run: LiveRun): boolean {
    return this.#inFlight?.runs.has(run.id) === true;
  }

  /** Whether all that is decided about the run stands in commits (COMMIT-3). */
  holdsAllOf(run: LiveRun): boolean {
    const drafts = [...(this.#inFlight === undefined ? [] : [this.#inFlight]), ...this.#builder.drafts];
    const to = drafts.findLast((draft) => draft.runs.has(run.id))?.runs.get(run.id)?.to ?? run.committedVersion;
    return to === run.events.length;
  }

  /** Calls back once everything decided about the run so far is acknowledged; at once where it is. */
  whenCommitted(run: LiveRun, then: () => void): void {
    if (run.isCommitted) then();
    else this.whenAllCommitted(then);
  }

  /** The same for everything decided so far. */
  whenAllCommitted(then: () => void): void {
    const draft = this.#builder.last ?? this.#inFlight;
    if (draft === undefined) then();
    else draft.afterwards.push(then);
  }

  /** Sends the next commit if none is under way. False: there is nothing to send, and none is. */
  send(now: number, boot: number): boolean {
    if (this.#inFlight !== undefined) return true;
    const draft = this.#builder.take();
    if (draft === undefined) return false;
    this.#inFlight = draft;
    this.#sentAt = boot;
    const { partition, epoch, member } = this.#settings;
    const head: CommitHead = {
      id: this.#ports.newCommitId(),
      kind: 'runs',
      partition,
      epoch,
      number: this.#number + 1,
      owner: member,
      minReader: COMMIT_FORMAT,
      at: now,
      idsTo: this.#idsTo,
    };
    this.#ports.append(encodeCommit(head, draft.runs.values(), draft.schedules.values(), draft.deleted.values()), {
      commitId: head.id,
      expectedSequence: this.#sequence,
    });
    return true;
  }

  /** The commit under way is stored; undefined: none was. What waits for it is the caller's to call. */
  acknowledged(sequence: Sequence): CommitDraft | undefined {
    const draft = this.#inFlight;
    if (draft === undefined) return undefined;
    this.#inFlight = undefined;
    this.#sequence = sequence;
    this.#number += 1;
    for (const { run, to } of draft.runs.values()) {
      run.committed(to, sequence);
      this.changes.committed(run.state.tenant, sequence);
    }
    for (const [schedule, { to }] of draft.schedules) schedule.acknowledged(to, sequence);
    return draft;
  }
  /** `runs` are all those in memory, between two steps. Throws InvariantBroken. */
  assertInvariants(runs: Iterable<LiveRun>): void {
    const reached = new Map<LiveRun, number>();
    for (const draft of [this.#inFlight ?? [], this.#builder.drafts].flat()) {
      invariant('COMMIT-4', draft.runs.size <= COMMIT_RUNS_MAX, 'a commit has too many runs', () => ({
        runs: draft.runs.size,
      }));
      for (const { run, from, to, events } of draft.runs.values()) {
        const before = reached.get(run) ?? run.committedVersion;
        const follows = from === before + 1 && to === before + events.length;
        invariant('COMMIT-3', follows, 'the events of a run are not committed in their order', () => ({
          run: run.id,
          before,
          from,
          to,
          events: events.length,
        }));
        reached.set(run, to);
      }
    }
    for (const run of runs) {
      const to = reached.get(run) ?? run.committedVersion;
      invariant('COMMIT-3', to === run.events.length, 'a decision stands in no commit to come', () => ({
        run: run.id,
        to,
        decided: run.events.length,
      }));
    }
  }
}
