/** What the clients of a load were answered. */
import type { ChaosPipeline } from './pipelines.ts';
import type { GateAnswer, Rerun, RerunAccount } from './steered.ts';
import type { BrokenAnswer } from './violations.ts';
import type { Watched } from './watcher.ts';

export interface AcceptedRun {
  readonly id: string;
  readonly pipeline: ChaosPipeline;
  readonly acceptedAt: number;
  /** The run that it repeats, and how. */
  readonly rerun?: Rerun | undefined;
  /** The last answer to each cancel. */
  cancel?: 'cancelled' | 'had ended' | undefined;
  /** A cancel was sent more than once, so `had ended` may be of the first one's doing. */
  cancelRepeated?: boolean;
  /** A final status that a client was shown. */
  shownEnd?: string | undefined;
}

export interface UnansweredRun {
  readonly id: string;
  readonly pipeline: ChaosPipeline;
  readonly rerun?: Rerun | undefined;
}

export interface LoadAccount {
  readonly accepted: readonly AcceptedRun[];
  /** Triggers that were never answered: such a run may exist or not. */
  readonly unanswered: readonly UnansweredRun[];
  readonly gates?: readonly GateAnswer[];
  readonly reruns?: RerunAccount;
  readonly watched: readonly Watched[];
  readonly broken: readonly BrokenAnswer[];
  readonly reads: number;
  readonly cancels: number;
}
