/** How a scheduler stands, for administrators: what it owns, which runners it knows, and what waits there. */

export interface SchedulerStatus {
  readonly scheduler: string;
  /** The schedulers that it knows, itself included. */
  readonly members: readonly string[];
  /** Why it cannot commit at present; absent: it can. */
  readonly trouble?: string | undefined;
  /** Of the journal's room, 0 to 1. */
  readonly journalUsed: number;
  /** Whether it knows what is paused; while it does not it grants nothing (P35). */
  readonly knowsControls: boolean;
  readonly partitions: readonly PartitionStatus[];
  /** By their leases. */
  readonly runners: readonly RunnerStatus[];
  /** What waits for runners, the longest queue first. */
  readonly queues: readonly QueueStatus[];
  /** There are more queues or runners than are told. */
  readonly isCut: boolean;
}

interface PartitionStatus {
  readonly partition: number;
  /** False: it is being opened. */
  readonly isOpen: boolean;
  /** Runs in memory. */
  readonly runs: number;
  /** Runs that wait outside. */
  readonly parked: number;
  /** How far the store is behind what was decided. */
  readonly lagMs: number;
}

export interface RunnerStatus {
  readonly runner: string;
  readonly session: string;
  readonly labels: readonly string[];
  readonly slots: number;
  /** Attempts that it holds, results that are not answered yet included. */
  readonly busy: number;
  /** Whose stages alone it gets; absent: everybody's. */
  readonly tenant?: string | undefined;
}

/** Stages of one key that ask for the same labels. */
export interface QueueStatus {
  readonly labels: readonly string[];
  readonly key: string;
  readonly count: number;
  /** Of the first in it, milliseconds since 1970. */
  readonly since?: number | undefined;
  readonly isPaused: boolean;
}
