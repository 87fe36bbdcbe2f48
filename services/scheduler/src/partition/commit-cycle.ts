/**
 * The commits of one partition: what is decided joins the one that fills, and what waits for it is called when it is
 * acknowledged. Owns the position in the log and the commit that is under way.
 *
 *  C1 One commit is under way at a time; the next is sent by `send` once it is acknowledged (P1).
 *  C2 What waits on a commit is called in the order in which it was said, after the commit's events have been shown.
 */
import type { RunEvent } from '@penstock/run';
import { CommitBuilder, type CommitDraft } from './commit-builder.ts';
import { COMMIT_FORMAT, encodeCommit, type CommitHead } from '../run/commit.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { PartitionPorts } from '../run/ports.ts';

export interface CommitSettings {
  readonly partition: number;
  readonly member: string;
  readonly epoch: number;
}

/** Full commits waiting behind the one under way; beyond this the broker is too slow and new runs are refused. */
const DRAFTS_MAX = 16;

export class CommitCycle {
  readonly #settings: CommitSettings;
  readonly #ports: Pick<PartitionPorts, 'append' | 'newCommitId'>;
  readonly #builder = new CommitBuilder();
  #inFlight: CommitDraft | undefined;
  #sequence = 0;
  #number = 0;

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

  get isTooSlow(): boolean {
    return this.#builder.waiting >= DRAFTS_MAX;
  }

  start(sequence: number, number: number): void {
    this.#sequence = sequence;
    this.#number = number;
  }

  /** Adds the events of one decision; `from` is the version of the first. */
  add(run: LiveRun, from: number, events: readonly RunEvent[]): CommitDraft {
    return this.#builder.add(run, from, events);
  }

  /** Whether a commit about the run is under way. */
  isUnderWay(run: LiveRun): boolean {
    return this.#inFlight?.runs.has(run.id) === true;
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
  send(now: number): boolean {
    if (this.#inFlight !== undefined) return true;
    const draft = this.#builder.take();
    if (draft === undefined) return false;
    this.#inFlight = draft;
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
    };
    this.#ports.append(encodeCommit(head, draft.runs.values()), {
      commitId: head.id,
      expectedSequence: this.#sequence,
    });
    return true;
  }

  /** The commit under way is stored; undefined: none was. What waits for it is the caller's to call. */
  acknowledged(sequence: number): CommitDraft | undefined {
    const draft = this.#inFlight;
    if (draft === undefined) return undefined;
    this.#inFlight = undefined;
    this.#sequence = sequence;
    this.#number += 1;
    for (const { run, to } of draft.runs.values()) {
      run.committedVersion = to;
      run.committedSequence = sequence;
    }
    return draft;
  }
}
