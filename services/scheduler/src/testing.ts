/**
 * The scheduler's parts one by one, for its own tests, the simulation and the chaos checks (`@penstock/scheduler/testing`).
 * Production starts the whole of it through `index.ts`.
 */
export type { PartitionSettings } from './partition/partition-settings.ts';
export { Partition } from './partition/partition.ts';
export type { RestoredPartition } from './partition/restored-partition.ts';
export type { SchedulerLoad } from './run/scheduler-load.ts';
export { RunLog } from './run/run-log.ts';
export { RunTracer } from './run/run-tracer.ts';
export { RunMeter } from './run/run-meter.ts';
export { UnservedNotices } from './shell/unserved-notices.ts';
export { readScheduler } from './shell/scheduler-meter.ts';
export { LogEnds } from './shell/log-ends.ts';
export { LossPause } from './shell/loss-pause.ts';
export type { AttemptLogRef, CommittedPart, JobAnswer, PartitionPorts, StopAnswer } from './run/ports.ts';
export {
  BadPipeline,
  Definitions,
  definedRun,
  type DefinedPipeline,
  type DefinitionSource,
} from './run/definitions.ts';
export { Controls } from './controls/controls.ts';
export { Dispatch } from './dispatch/dispatch.ts';
export type { Credit, ReadyStages } from './dispatch/ready-stage.ts';
export { Heap } from './run/heap.ts';
export { LiveRun, foldRun } from './run/live-run.ts';
export { ConcurrencyGroups } from './admission/groups.ts';
export { ConcurrencySlots, type FoundRun } from './admission/concurrency-slots.ts';
export { KeyCounts } from './admission/key-counts.ts';
export { CommitCycle } from './partition/commit-cycle.ts';
export { InvariantSamples } from './shell/invariant-samples.ts';
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
export { SchedulerMembership } from './membership/membership.ts';
export { RestoreRoom } from './shell/restore-room.ts';
export { handBack, loadPartition, openPartition, type OpenedPartition, type Opening } from './shell/take-over.ts';
export { SchedulerService, type Texts } from './shell/scheduler.ts';
export type { SchedulerPorts } from './shell/scheduler-ports.ts';
export { EncodedStories } from './shell/encoded-stories.ts';
export { Projector } from './shell/projector.ts';
export { JournalPurge } from './shell/journal-purge.ts';
