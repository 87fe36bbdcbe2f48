import type { RunId, Sequence } from '@penstock/run';
import type { KeyUsage } from '../admission/key-counts.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { ParkedDocument } from '../run/parked-run.ts';
import type { DirtyDeletion } from './deletions.ts';
import type { RestoredSchedule } from './schedules.ts';

/** What take-over read (P6): where the log stands, the runs that are still of interest, and what their keys have used. */
export interface RestoredPartition {
  /** Of the `opened` commit. */
  readonly sequence: Sequence;
  readonly commitNumber: number;
  /** The latest time in an id that an earlier owner has created (P7). */
  readonly idsTo?: number | undefined;
  readonly runs: readonly LiveRun[];
  /** Open runs for which there was no room in memory, and which can wait outside of it; the oldest first. */
  readonly parked?: readonly ParkedDocument[] | undefined;
  readonly usages?: readonly KeyUsage[] | undefined;
  readonly schedules?: readonly RestoredSchedule[] | undefined;
  /** Deletions that the log has behind the checkpoint. */
  readonly deleted?: readonly DirtyDeletion[] | undefined;
  /** Runs that are nobody's to decide any more: what stands of them is damaged. */
  readonly leftOut?: readonly RunId[] | undefined;
  /** Log and checkpoint were empty: there was no owner before this one. */
  readonly neverOwned?: boolean | undefined;
  /** What the scheduler keeps free for the runs until they are counted themselves. */
  readonly room?: ReservedRoom | undefined;
}

export interface ReservedRoom {
  /** For those that are not counted yet. */
  readonly bytes: number;
  /** The run is counted itself now. */
  free(runId: RunId): void;
}
