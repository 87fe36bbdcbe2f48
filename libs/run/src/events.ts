/**
 * What has happened to a run, in order: the only thing that the journal keeps and that state is made from. A run's
 * events have contiguous versions, the first (`run_created`) having version 1. Times are milliseconds since 1970, UTC.
 * A stage is named by its full name.
 */
import type { ResolvedExtension } from '@penstock/pipeline';
import type { GateDecision, StageArtifacts, StageReason, StageReport } from './stage-state.ts';
import type { SavedCache } from './caches.ts';
import type { Lineage } from './lineage.ts';
import type { TriggerOrigin } from './state.ts';

export type RunEvent =
  | RunCreated
  | StagesAdopted
  | RunApproved
  | RunHeld
  | RunAdmitted
  | RunRested
  | StagesQueued
  | GatesQueued
  | GateDecided
  | StageStarted
  | StageReturned
  | StageStopping
  | StageRetrying
  | StageCompleted
  | StagesAdded
  | StageSkipped
  | StagesSkipped
  | AttemptGone
  | WorkspaceLost
  | RunCancelled
  | RunCompleted
  | RunQuarantined
  | RunStopped;

/**
 * Where an attempt's log ends in the run's event stream (P21): behind so many bytes, as its result says, or, where it has
 * ended without one, before the mark that its owner has stored at this sequence of `LOGS`.
 */
export interface LogEnd {
  readonly logBytes?: number | undefined;
  readonly logSequence?: number | undefined;
}

export interface RunCreated {
  readonly type: 'run_created';
  readonly at: number;
  readonly tenant: string;
  /** Quotas, order, fairness and groups are per key: a user, `service/<repository>` or `service/<pipeline name>`. */
  readonly key: string;
  readonly pipelineName: string;
  /** The pipeline's text; its expansion is made anew from it (P1). Empty: the run has ended as it began, without stages. */
  readonly yaml: string;
  /** What the `uses` of the text were resolved to: the run's lock. */
  readonly extensions?: readonly ResolvedExtension[] | undefined;
  readonly priority: number;
  readonly origin: TriggerOrigin;
  /** A value for every input that the pipeline declares; absent where it declares none. */
  readonly inputs?: Readonly<Record<string, string>> | undefined;
  /** Equal for runs of one text with the same lock and the same inputs; absent in runs of releases before the field. */
  readonly fingerprint?: string | undefined;
  /** The concurrency group within the key, evaluated; absent: none. */
  readonly group?: string | undefined;
  /** Of a rerun: where it comes from, and what it takes over (P30). */
  readonly lineage?: Lineage | undefined;
  /** Nothing of it goes on, and it counts for nothing, before somebody has approved it (P27). */
  readonly held?: 'approval' | undefined;
  /** Of a held run: how many runs the key may have in the month in which it is approved; absent: any number. */
  readonly pipelineRunLimit?: number | undefined;
  /** How many runs the key has had created in the month of `at`, this one included (P23); absent: it does not count. */
  readonly runOfMonth?: number | undefined;
  /** How many runs of the key may go on at a time from here on; absent: any number. */
  readonly maxConcurrent?: number | undefined;
  /** How many slots the key may have while others wait, where its tier says so. */
  readonly keySlots?: number | undefined;
  /** Bytes of kept files that the key may have, where its tier says so. */
  readonly artifactBytes?: number | undefined;
  /** For how many days the run is kept once it has ended, and how many of the newest of its pipeline whatever their age, where its tier says so. */
  readonly retentionDays?: number | undefined;
  readonly retentionRuns?: number | undefined;
}

/** What a rerun takes over of a stage that has succeeded in its parent. */
export interface AdoptedStage {
  readonly stage: string;
  readonly outputs?: Readonly<Record<string, string>> | undefined;
  readonly artifacts?: StageArtifacts | undefined;
}

/** These stages of a rerun stand as they ended in its parent, and never run in it. Nothing of it goes on before the last of them. */
interface StagesAdopted {
  readonly type: 'stages_adopted';
  readonly at: number;
  readonly adopted: readonly AdoptedStage[];
}

/** Somebody lets a held run go on: from now on it counts, and has its place behind all that were created or approved before. */
interface RunApproved {
  readonly type: 'run_approved';
  readonly at: number;
  /** Who: a login, an email address, or `api-key`. */
  readonly by: string;
  /** As in `run_created`, of the month of `at`. */
  readonly runOfMonth?: number | undefined;
}

/** The run waits for its turn in its concurrency group, or for a concurrency slot under its key's quota; it may come to wait for both. */
interface RunHeld {
  readonly type: 'run_held';
  readonly at: number;
  readonly reason: 'group' | 'quota';
}

interface RunAdmitted {
  readonly type: 'run_admitted';
  readonly at: number;
}

/** These stages wait for a runner from now on. */
interface StagesQueued {
  readonly type: 'stages_queued';
  readonly at: number;
  readonly stages: readonly string[];
}

/** Nothing of the run can go on but by people: it has given its place back, and is held for another once a stage falls due (P26). */
interface RunRested {
  readonly type: 'run_rested';
  readonly at: number;
}

/** These gates wait for people from now on, until `dueAt` (P26). */
interface GatesQueued {
  readonly type: 'gates_queued';
  readonly at: number;
  readonly stages: readonly string[];
  readonly dueAt: number;
}

/** Somebody has decided; whether that ends the gate, a `stage_completed` in the same commit says. */
interface GateDecided {
  readonly type: 'gate_decided';
  readonly at: number;
  readonly stage: string;
  /** Names the person among all. */
  readonly person: string;
  readonly by: string;
  readonly decision: GateDecision;
  readonly comment?: string | undefined;
  /** How many different people have approved, this one included, of how many that are needed. */
  readonly approved: number;
  readonly quorum: number;
}

/** An attempt was granted: from its commit on a process may exist. */
interface StageStarted {
  readonly type: 'stage_started';
  readonly at: number;
  readonly stage: string;
  /** Counts grants of this stage from 1; never used again. */
  readonly attempt: number;
  /** Which execution of the stage it is, where earlier grants came to nothing (P12); absent: as `attempt`. */
  readonly number?: number | undefined;
  /** Its beginning has been shown already, with the grant before it, which came to nothing. */
  readonly again?: true | undefined;
  readonly runner: string;
  readonly session: string;
  readonly credit: number;
}

/** The grant never reached its runner, or was refused by it: the stage waits again, at no cost to its retries (P12). */
interface StageReturned {
  readonly type: 'stage_returned';
  readonly at: number;
  readonly stage: string;
  readonly attempt: number;
}

/** The attempt is being ended before its time; its result decides what becomes of the stage. */
interface StageStopping {
  readonly type: 'stage_stopping';
  readonly at: number;
  readonly stage: string;
  readonly attempt: number;
  readonly reason: 'cancelled' | 'timeout';
}

/** The attempt failed and another follows at `dueAt`. */
interface StageRetrying extends LogEnd {
  readonly type: 'stage_retrying';
  readonly at: number;
  readonly stage: string;
  readonly attempt: number;
  /** As in `stage_started`. */
  readonly number?: number | undefined;
  readonly reason: StageReason;
  readonly exitCode?: number | undefined;
  readonly dueAt: number;
}

interface StageCompleted extends LogEnd {
  readonly type: 'stage_completed';
  readonly at: number;
  readonly stage: string;
  /** 0 where it never started. */
  readonly attempt: number;
  /** As in `stage_started`. */
  readonly number?: number | undefined;
  readonly status: 'SUCCESS' | 'FAILED' | 'CANCELLED';
  readonly reason?: StageReason | undefined;
  readonly exitCode?: number | undefined;
  readonly outputs?: Readonly<Record<string, string>> | undefined;
  /** What was kept of its files; this commit alone makes it visible. */
  readonly artifacts?: StageArtifacts | undefined;
  /** How its tests went, where its `reports` say so. */
  readonly report?: StageReport | undefined;
  /** What it has left for later runs: found by them once this is committed, and in no state. */
  readonly caches?: readonly SavedCache[] | undefined;
}

/** An attempt that has succeeded, in the same commit, has added stages to the run (P29). */
export interface StagesAdded {
  readonly type: 'stages_added';
  readonly at: number;
  /** That has added them. */
  readonly stage: string;
  /** As the attempt has left it: a map of stages. What it means is made anew from it, and journaled by nobody. */
  readonly text: string;
  /** What the text takes in the journal. */
  readonly bytes: number;
  /** The full names of the new stages. The journal has them not: whoever restores the run fills them in. */
  readonly stages: readonly string[];
}

/** As journals before 0.7 have it, one for each stage. */
interface StageSkipped {
  readonly type: 'stage_skipped';
  readonly at: number;
  readonly stage: string;
  /** `dependency`: one it comes after did not succeed; `when`: its condition is false. */
  readonly reason: 'dependency' | 'when';
}

/** These stages will not run, for one reason. One event however many they are: a decision has to fit one commit (P1). */
export interface StagesSkipped {
  readonly type: 'stages_skipped';
  readonly at: number;
  /** In the order in which they were decided. */
  readonly stages: readonly string[];
  /** `dependency`: one that they come after did not succeed; `when`: their condition is false; `approval`: nobody has approved the run. */
  readonly reason: SkipReason;
}

/** An attempt of a cancelled or quarantined run is confirmed gone or fenced. */
interface AttemptGone extends LogEnd {
  readonly type: 'attempt_gone';
  readonly at: number;
  readonly stage: string;
  readonly attempt: number;
}

/** The runner that held a shared workspace of this run is gone for good, or has its labels no more; later stages get a fresh one elsewhere (P19). */
interface WorkspaceLost {
  readonly type: 'workspace_lost';
  readonly at: number;
  readonly runner: string;
  /** The sets of labels, joined by commas, whose workspaces it held; absent: all. */
  readonly labelSets?: readonly string[] | undefined;
}

/** Why a stage will not run. */
export type SkipReason = 'dependency' | 'when' | 'approval';

interface RunCancelled {
  readonly type: 'run_cancelled';
  readonly at: number;
  /** How many stages had not ended. */
  readonly cancelledStages: number;
}

interface RunCompleted {
  readonly type: 'run_completed';
  readonly at: number;
  readonly status: 'SUCCESS' | 'FAILED' | 'SKIPPED';
  /** Why the run counts apart: a stage whose runner was lost and not retried. */
  readonly outcome?: 'interrupted' | undefined;
  readonly reason?: StageReason | undefined;
}

/** The run's machine threw on an input: the run is FAILED, the partition goes on. Live attempts are stopped as in a cancel. */
interface RunQuarantined {
  readonly type: 'run_quarantined';
  readonly at: number;
  readonly cause: string;
}

/** The attempts of a cancelled or quarantined run are gone, and all that they wrote is told: its event stream ends. */
interface RunStopped {
  readonly type: 'run_stopped';
  readonly at: number;
  readonly status: 'CANCELLED' | 'FAILED';
  /** Of a cancelled run: how many stages had not ended at the cancel. */
  readonly cancelledStages?: number | undefined;
}
