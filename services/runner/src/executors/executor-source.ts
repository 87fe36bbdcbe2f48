/**
 * A kind of executor that this machine can have: found once, before the first session, for what a runner has stands in its
 * labels; an executor of it is then made for each session, held by that session's guard.
 */
import type { Executor, ExecutorKind, Guard, StageLimits, StageNotes } from '@penstock/executor';
import type { Log } from '@penstock/telemetry/log';

export interface UidRange {
  readonly first: number;
  readonly last: number;
}

/** What all executors of a runner are made with. */
export interface ExecutorParts {
  readonly runnerId: string;
  /** Holds the folders of runs (`work`) and the runner's own (`runner`). */
  readonly dataDir: string;
  /** For the processes of this kind that `killLeftovers` is to end after a crash (P17): no other kind writes there. */
  readonly leftoversFile: string;
  /** Whether stages of each key run as a user of their own. */
  readonly hasStageUsers: boolean;
  /** The users of stages; absent where they run as the runner. */
  readonly stageUsers?: UidRange | undefined;
  /** Machines that no stage is to reach: names and addresses of the broker and the store. */
  readonly deniedHosts: readonly string[];
  /** Folders of the machine that stages see beside its programs, where they do not see all of it. */
  readonly stagePaths: readonly string[];
  /** What a stage may take of this machine. */
  readonly limits: StageLimits;
  /** Of these what somebody has said: it holds also where stages run on other machines. */
  readonly limitsSet: Partial<StageLimits>;
  readonly slots: number;
  /** Of the session's lease. */
  readonly leaseMs: number;
  readonly log: Log;
}

export interface ExecutorSource {
  readonly kind: ExecutorKind;
  /** Its stages go on without this process, and can be taken up by the next. */
  readonly outlives?: boolean | undefined;
  /** `guard`: of the session. Once it is gone nothing starts any more, and what runs is ended (P15). */
  create(parts: ExecutorParts, guard: Guard): Executor;
  /**
   * Ends what earlier sessions of this runner have left and no list of processes shows; awaited before the first session, so
   * that `gone` is true of them too (P14). `kept`: what was noted of stages that the session takes up, if it can.
   */
  readonly sweep?: ((parts: ExecutorParts, kept: readonly StageNotes[]) => Promise<void>) | undefined;
}
