/**
 * Who sees all that happens in a world: each part says what it does as it does it. It also knows the truth that clients hold
 * their answers against.
 */
import type { AttemptRef, CommittedEvents, LogEntry } from '@penstock/bus';
import type { Person, PublicEvent, RunEvent, RunState, RunView, RunWaits } from '@penstock/run';
import type { AttemptLogRef } from '@penstock/scheduler/testing';
import type { FoundCache } from '@penstock/artifacts';
import type { Checkpoint, EncodedRun } from '@penstock/store';
import type { StoredDocument } from './store.ts';
import type { Process } from './attempts.ts';

/** `version`: of the last event that its cursor covers. */
export interface ToldMessage {
  readonly version: number;
  readonly event: PublicEvent;
}

export interface Witness {
  // The log.
  committed(partition: number, entry: LogEntry): void;
  acknowledged(partition: number, bytes: Uint8Array, commitId: string, sequence: number): void;
  purged(partition: number, upTo: number): void;
  lostEnd(partition: number, last: LogEntry | undefined, lost: readonly LogEntry[]): void;
  /** An owner has stored a mark behind an attempt's log; answers the sequence of the first one. */
  logMarked(log: AttemptLogRef, sequence: number): number;
  // The store.
  documented(document: EncodedRun): void;
  checkpointed(checkpoint: Checkpoint): void;
  // What is sent and started.
  jobSent(ref: AttemptRef & { readonly partition: number }, epoch: number): void;
  stopSent(ref: AttemptRef): void;
  runClosed(runId: string): void;
  processStarts(process: Process): void;
  resultAnswered(ref: AttemptRef, answer: 'committed' | 'obsolete'): void;
  /** What a runner answers to a grant or a stop. */
  runnerAnswered(asked: AttemptRef, verb: 'job' | 'stop', answer: string): void;
  workspaceRemoved(runId: string, runner: string): void;
  // What clients are shown.
  shown(message: CommittedEvents): void;
  eventSeen(runId: string, version: number, event: RunEvent): void;
  /** The client of a log stream has a message. */
  told(reader: string, runId: string, told: ToldMessage): void;
  viewSeen(view: RunView, floor: number, where: string): void;
  /** What an owner says that the run waits for, with the run as it has it committed. */
  waitsTold(run: RunState, waits: RunWaits): void;
  // What stages keep, and what they leave for later runs.
  /** Before it is. */
  objectDeleted(key: string): void;
  /** A document of a collection of the registry, as it is now; `before`: as it was; undefined: there is none. */
  changed(collection: string, before: StoredDocument | undefined, after: StoredDocument | undefined): void;
  /** Somebody was not given what the list of a stage names. */
  keptMissing(runId: string, manifest: string, why: string): void;
  cacheRestored(runId: string, found: FoundCache, bytes: Uint8Array): void;
  // The truth.
  /** What any client has seen of the run so far: no later answer may be older. */
  observed(runId: string): number;
  stateOf(runId: string): RunState | undefined;
  /** The stages of the run that wait for people, by name; undefined: there is no such run. */
  gatesOf(runId: string): readonly string[] | undefined;
  /** By the run's own file, whatever its owner says. */
  mayDecide(runId: string, stage: string, person: Person): boolean;
  /** The log of its partition has lost its end in a power cut: nothing that was promised on it is held against anybody. */
  isDisturbed(runId: string): boolean;
  /** Its deletion is committed. */
  isDeleted(runId: string): boolean;
  isPartitionDisturbed(partition: number): boolean;
  /** The most that the key has had in any month; undefined: its log has lost something. */
  runsOfMonth(key: string): number | undefined;
}
