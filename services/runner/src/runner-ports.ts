/**
 * The world of a runner: broker, clocks, the disk, the folders and processes of stages. Production has the machine's
 * (`machine-ports.ts`); the simulation drives the same `RunnerService` with its own.
 */
import type { Job } from '@penstock/bus';
import type { Attempt, AttemptParts } from './attempt/attempt.ts';
import type { AttemptRecords } from './attempt/attempt-records.ts';
import type { SessionExecutors } from './executors/session-executors.ts';
import type { KeptChunks, OutgoingLog } from './report/chunk-store.ts';
import type { PendingResult } from './report/outbox.ts';
import type { ResultLines } from './report/result-file.ts';
import type { SessionGuard, SessionPorts } from './session/session.ts';
import type { SessionWorld } from './session/session-world.ts';
import type { FolderDisk } from './workspace/folders-on-disk.ts';

/** What a runner asks of an attempt. */
export type RunningAttempt = Pick<Attempt, 'job' | 'ref' | 'result' | 'processGone' | 'goneForMs' | 'stop' | 'abandon'>;

/** The executors of one session. */
export type SessionStages = Pick<SessionExecutors, 'areIsolated' | 'prewarm' | 'close'>;

/** Where the chunks of stages go. */
export interface Chunks {
  open(runId: string, runner: string): AttemptLog;
  resend(runId: string, runner: string, kept: KeptChunks): Promise<void>;
  close(): void;
}

type AttemptLog = Pick<OutgoingLog, 'append' | 'stored' | 'keep' | 'drop'>;

/** What an attempt gets from its runner. */
type AttemptOfRunner = Pick<AttemptParts, 'keep' | 'isSessionActive' | 'workspaces' | 'record' | 'past' | 'slips'> & {
  readonly outgoingLog: AttemptLog;
};

/** `Guarding`: the guard of a session; `Stages`: its executors. */
export interface RunnerPorts<
  Guarding extends SessionGuard = SessionGuard,
  Stages extends SessionStages = SessionStages,
> extends SessionWorld {
  /** The boot clock by which guards count (P15), to the reading. */
  guardNow(): number;
  newId(): string;
  /** From 0 to 1, without 1. */
  random(): number;
  readonly session: SessionPorts<Guarding>;
  readonly results: ResultLines;
  readonly records: AttemptRecords;
  /** `pending`: results of an earlier process, whose chunks may still be needed. */
  openChunks(pending: readonly PendingResult[]): Chunks;
  readonly folders: FolderDisk;
  /** Whether the disk has room for another stage. */
  hasRoom(): boolean;
  createExecutors(guard: Guarding): Stages;
  /** `keysInUse`: of the stages that run. */
  startAttempt(
    job: Job,
    executors: Stages,
    parts: AttemptOfRunner,
    keysInUse: () => ReadonlySet<string>,
  ): RunningAttempt;
}
