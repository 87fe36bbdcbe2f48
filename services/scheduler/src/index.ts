export { startScheduler, type Scheduler, type SchedulerOptions } from './scheduler.ts';
// The partition without its shell, for the simulation and the benchmarks.
export { Partition, type PartitionSettings, type RestoredPartition } from './partition.ts';
export type { SchedulerLoad } from './scheduler-load.ts';
export type { KeyCounter, KeyUsage } from './key-counts.ts';
export type { AttemptLog, JobAnswer, PartitionPorts, StopAnswer } from './ports.ts';
export { BadPipeline, Definitions, definedRun, type DefinedPipeline, type DefinitionSource } from './definitions.ts';
export { Dispatch, CREDIT_MS, type Credit, type ReadyStage } from './dispatch.ts';
export { LiveRun, foldRun } from './live-run.ts';
export { ConcurrencyGroups } from './groups.ts';
export { decodeCommit, encodeCommit, COMMIT_FORMAT, UnreadableCommit, type Commit, type CommitHead, type RunEntry } from './commit.ts';
export { ownerOf } from './ownership.ts';
export { handBack, loadPartition, openPartition, type LoadedPartition, type OpenedPartition, type Opening } from './take-over.ts';
export { Projector, type ProjectorClock } from './projector.ts';
export { runSchedulerService } from './service.ts';
