/**
 * What a partition needs of the world. Everything that it does outside its memory goes through here, time and ids
 * included, so that the simulation can stand in for all of it. Answers come through the callbacks, later and at most once;
 * none comes before the call has returned.
 */
import type { Plan, RunEvent, RunId, RunState, Sequence, Version } from '@penstock/run';
import type { CommittedEvents, Job, StopRequest } from '@penstock/bus';
import type { StoredStanding } from '@penstock/store';
import type { PullRequestHead, PullRequestRef } from './pull-request-head.ts';

/** `too-large`: the job does not fit a message; it can never be sent. */
export type JobAnswer = 'accepted' | 'held' | 'refused' | 'no-responders' | 'no-answer' | 'too-large';
export type StopAnswer = 'gone' | 'stopping' | 'no-answer';

/** Whose log: that of an attempt, as its runner has written it. */
export interface AttemptLogRef {
  readonly runId: RunId;
  /** Of the run. */
  readonly key: string;
  readonly runner: string;
  readonly stage: string;
  readonly attempt: number;
}

/** Events `from` to `to` of a run are committed. */
export interface CommittedPart {
  readonly run: {
    readonly plan: Plan;
    readonly events: readonly RunEvent[];
    readonly state: Readonly<RunState>;
  };
  readonly from: Version;
  readonly to: Version;
}

export interface PartitionPorts {
  /** The wall clock, milliseconds since 1970: for what is shown and journaled. It may be set at any moment. */
  now(): number;
  /** The boot clock: everything that is waited for or counted in memory goes by it. Fractions of milliseconds, never back. */
  bootNow(): number;
  newCommitId(): string;
  /** Answered by `Partition.acknowledged`; a refused one by throwing the partition away. One is under way at most. */
  append(bytes: Uint8Array, options: { readonly commitId: string; readonly expectedSequence: Sequence }): void;
  /** Whether the owner's last accepted renewal was sent less than 4 s ago (P4). */
  mayAct(): boolean;
  /** Whether an attempt may be declared lost: not before one lease has passed since the broker was connected (P5). */
  mayDeclareLoss(): boolean;
  publishEvents(message: CommittedEvents): void;
  /** A commit of these runs is stored: for whoever counts. */
  counted(parts: readonly CommittedPart[]): void;
  sendJob(runner: string, job: Job, answered: (answer: JobAnswer) => void): void;
  sendStop(runner: string, request: StopRequest, answered: (answer: StopAnswer) => void): void;
  /** Workspaces of these runs can go. */
  release(runner: string, runIds: readonly RunId[]): void;
  /** Whether the store knows the run (P7). */
  isStored(runId: RunId, then: (stored: boolean | 'unavailable') => void): void;
  /** Which of these runs the store knows (P28). */
  storedRuns(runIds: readonly RunId[], then: (stored: ReadonlySet<string> | 'unavailable') => void): void;
  /** What the store says of a run that is to be deleted; null: there is none. */
  storedStanding(runId: RunId, then: (standing: StoredStanding | null | 'unavailable') => void): void;
  /** These runs are deleted: what the broker keeps of their logs can go. */
  forgetLogs(runs: readonly { readonly id: RunId; readonly tenant: string }[]): void;
  /** The head of highest sequence among the runs that the store has of the pull request; null: it has none (P27). */
  headInStore(of: PullRequestRef, then: (head: PullRequestHead | null | 'unavailable') => void): void;
  /**
   * Stores a mark behind an attempt's log; calls back with the sequence of its first mark, tried until it is known (P21) or
   * until its end does not stand any more: that is asked before each try, as what was true may not be after an outage (P5).
   */
  closeLog(log: AttemptLogRef, stands: () => boolean, then: (sequence: number) => void): void;
  /** There is something to project. */
  projectSoon(): void;
  /** Something threw that must not, and what it had done cannot be told: the partition is to be thrown away. */
  broken(error: unknown): void;
  warn(fields: Record<string, unknown>, message: string): void;
}
