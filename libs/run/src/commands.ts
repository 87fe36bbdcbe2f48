/**
 * What the machine of a run can be told. A command that does not apply (a result of an attempt that lives no more, a
 * grant of a stage that does not wait) decides nothing: idempotence is the machine's, not the sender's.
 * `at` is the owner's wall clock in milliseconds; it never runs backwards within a run.
 */
import type { PipelineDefinition } from '@penstock/pipeline';
import type { GateDecision, StageArtifacts, StageReason, StageReport } from './stage-state.ts';
import type { SavedCache } from './caches.ts';
import type { TakenStage } from './adoptions.ts';
import type { RunEnd } from './state.ts';

export type RunCommand =
  /** Sent once, first: queues what has no dependencies. `held`: the run waits for its turn. `ended`: it ends as it begins. */
  | {
      readonly type: 'start';
      readonly at: number;
      readonly held?: 'group' | 'quota' | undefined;
      readonly ended?: RunEnd | undefined;
    }
  | { readonly type: 'admit'; readonly at: number }
  /** Of a rerun: what it takes over, as much as one commit holds; what is there already is passed over. */
  | { readonly type: 'adopt'; readonly at: number; readonly stages: readonly TakenStage[] }
  /** Its parent is not to be found any more: what it takes over cannot be had. */
  | { readonly type: 'lose-parent'; readonly at: number }
  /** Of a run that waits for it. `held`: as with `start`, now that it counts. */
  | {
      readonly type: 'approve';
      readonly at: number;
      readonly by: string;
      readonly runOfMonth?: number | undefined;
      readonly held?: 'group' | 'quota' | undefined;
    }
  /** Nobody has approved it, and nobody will: its time is over, or there are too many of them. */
  | { readonly type: 'give-up'; readonly at: number }
  | GrantCommand
  | { readonly type: 'return-grant'; readonly at: number; readonly stage: string; readonly attempt: number }
  | ResultCommand
  /** The attempt ended without a result: its session is over (P5, P15), or its runner says that it is gone (P14). */
  | {
      readonly type: 'lose';
      readonly at: number;
      readonly stage: string;
      readonly attempt: number;
      /** Of the mark that closes its log (P21). */
      readonly logSequence?: number | undefined;
    }
  /**
   * A deadline of the run has come. `due`: of these stages, as their owner's boot clock has it (P5); absent: which one, the
   * machine looks up by `at`.
   */
  | { readonly type: 'wake'; readonly at: number; readonly due?: readonly string[] | undefined }
  /** `labelSets`: of these alone; absent: all that the runner holds. */
  | {
      readonly type: 'lose-workspace';
      readonly at: number;
      readonly runner: string;
      readonly labelSets?: readonly string[] | undefined;
    }
  | DecideGateCommand
  | { readonly type: 'cancel'; readonly at: number }
  | { readonly type: 'quarantine'; readonly at: number; readonly cause: string };

export interface GrantCommand {
  readonly type: 'grant';
  readonly at: number;
  readonly stage: string;
  readonly runner: string;
  readonly session: string;
  readonly credit: number;
}

/** Of somebody who may: that is asked before the machine is told (`rightAt`). */
export interface DecideGateCommand {
  readonly type: 'decide-gate';
  readonly at: number;
  readonly stage: string;
  /** Names the person among all. */
  readonly person: string;
  /** As it is shown. */
  readonly by: string;
  readonly decision: GateDecision;
  readonly comment?: string | undefined;
}

/** What a stage adds to its run (P29). */
interface AddedText {
  /** Undefined: what was sent is no text of the size that is allowed. */
  readonly text: string | undefined;
  /** What it takes in the journal, and what the run's file takes there. */
  readonly bytes: number;
  readonly fileBytes: number;
  /** As it was read with `addedTextOptions`; undefined: it was refused. */
  readonly meaning: PipelineDefinition | undefined;
}

export interface ResultCommand {
  readonly type: 'result';
  readonly at: number;
  readonly stage: string;
  readonly attempt: number;
  readonly status: 'success' | 'failed';
  readonly reason?: StageReason | undefined;
  readonly exitCode?: number | undefined;
  readonly outputs?: Readonly<Record<string, string>> | undefined;
  readonly artifacts?: StageArtifacts | undefined;
  readonly report?: StageReport | undefined;
  readonly caches?: readonly SavedCache[] | undefined;
  /** Of a stage that adds others; absent: none. */
  readonly added?: AddedText | undefined;
  readonly logBytes: number;
}
