/** The state of a stage. Written by `evolve` alone, as that of its run. */
import type { RunId } from './brands.ts';

export type RunStatus = 'PENDING' | 'QUEUED' | 'RUNNING' | 'SUCCESS' | 'FAILED' | 'SKIPPED' | 'CANCELLED';

export type StageReason =
  | 'exit'
  | 'timeout'
  | 'oom'
  | 'signal'
  | 'runner_lost'
  | 'no_runner'
  | 'checkout'
  | 'image'
  | 'service'
  | 'artifacts'
  | 'evicted'
  | 'secret'
  | 'pipeline_file'
  | 'log_limit'
  | 'quota'
  | 'quarantined'
  | 'rejected'
  | 'cancelled'
  | 'dependency'
  | 'when'
  | 'approval'
  | 'parent';

/** What is kept of a stage's files: their list stands in the object storage under its hash, and nowhere in a run. */
export interface KeptArtifacts {
  /** SHA-256 of the list, lower-case hex. */
  readonly manifest: string;
  readonly files: number;
  readonly bytes: number;
}

/** What another stage has kept. */
export interface InheritedArtifacts extends KeptArtifacts {
  readonly stage: string;
  /** In which run, where it is another one. */
  readonly run?: RunId | undefined;
}

export interface StageArtifacts extends KeptArtifacts {
  /** Of an adopted stage: the run whose attempt has kept them. */
  readonly run?: RunId | undefined;
  /** Until when, milliseconds since 1970. */
  readonly expiresAt: number;
}

/** How the tests of a stage went; the tests themselves stand in the object storage, as kept files do. */
export interface KeptReport extends KeptArtifacts {
  readonly total: number;
  readonly failed: number;
  readonly skipped: number;
  readonly durationMs: number;
}

export interface StageReport extends KeptReport {
  /** Until when the tests are listed, milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A process that may exist: what was granted, to whom. */
export interface LiveAttempt {
  readonly attempt: number;
  readonly runner: string;
  readonly session: string;
  readonly credit: number;
  readonly startedAt: number;
  /** Set once a stop was decided; the stop is repeated until the attempt is gone (P13, P14). */
  stopping?: 'cancelled' | 'timeout' | undefined;
}

export type GateDecision = 'approved' | 'rejected';

/** What somebody has said at a gate. */
export interface StageApproval {
  /** Names the person among all; not shown. */
  readonly person: string;
  readonly by: string;
  readonly decision: GateDecision;
  readonly comment?: string | undefined;
  readonly at: number;
}

/** What a view says of a gate beside its decisions. */
export interface GateView {
  readonly quorum: number;
  /** Absent: whoever may cancel the run. */
  readonly approvers?: readonly string[] | undefined;
  readonly preventSelf?: true | undefined;
  /** Until when it waits, and what it asks, while it does. */
  readonly dueAt?: number | undefined;
  readonly message?: string | undefined;
}

export interface StageState {
  readonly name: string;
  /** What it comes after; absent in runs of releases before the field, and in those with too many to tell. */
  readonly after?: readonly string[] | undefined;
  status: RunStatus;
  /** The last attempt granted; 0 before the first. */
  attempt: number;
  /** How many grants came to nothing: they are no attempts to anybody outside (P12). */
  returned?: number | undefined;
  /** The last of those. */
  lastReturned?: number | undefined;
  /** Attempts that failed and count against `retry.max`. */
  failures: number;
  /** Of these, those whose runner was not lost; absent where there is none. */
  failedAttempts?: number | undefined;
  queuedAt?: number | undefined;
  /** Of the first attempt. */
  startedAt?: number | undefined;
  finishedAt?: number | undefined;
  reason?: StageReason | undefined;
  exitCode?: number | undefined;
  outputs?: Readonly<Record<string, string>> | undefined;
  artifacts?: StageArtifacts | undefined;
  report?: StageReport | undefined;
  /** It has failed, and that fails nothing; absent else, and in documents of releases before the field. */
  tolerated?: true | undefined;
  /** It stands as it ended in the run's parent; absent else. */
  adopted?: true | undefined;
  /** When the next attempt may be queued, while the stage waits for a retry. */
  dueAt?: number | undefined;
  /** Of a gate that has been queued: until when it waits. */
  gateDueAt?: number | undefined;
  /** In the order in which they were decided. */
  approvals?: readonly StageApproval[] | undefined;
  live?: LiveAttempt | undefined;
}
