export { startScheduler, type Scheduler, type SchedulerOptions } from './shell/scheduler.ts';
// The partition without its shell, for the simulation and the benchmarks.
export { Partition, type PartitionSettings, type RestoredPartition } from './partition/partition.ts';
export type { SchedulerLoad } from './run/scheduler-load.ts';
export type { KeyCounter, KeyUsage } from './admission/key-counts.ts';
export type { AttemptLog, JobAnswer, PartitionPorts, StopAnswer } from './run/ports.ts';
export {
  BadPipeline,
  Definitions,
  definedRun,
  type DefinedPipeline,
  type DefinitionSource,
} from './run/definitions.ts';
export { Dispatch, CREDIT_MS, type Credit, type ReadyStage } from './dispatch/dispatch.ts';
export { LiveRun, foldRun } from './run/live-run.ts';
export { ConcurrencyGroups } from './admission/groups.ts';
export {
  decodeCommit,
  encodeCommit,
  COMMIT_FORMAT,
  UnreadableCommit,
  type Commit,
  type CommitHead,
  type RunEntry,
} from './run/commit.ts';
export { ownerOf } from './membership/ownership.ts';
export {
  handBack,
  loadPartition,
  openPartition,
  type LoadedPartition,
  type OpenedPartition,
  type Opening,
} from './shell/take-over.ts';
export { Projector, type ProjectorClock } from './shell/projector.ts';
export { runSchedulerService } from './service.ts';
