export type * from './events.ts';
export type * from './stage-state.ts';
export type * from './state.ts';
export * from './caches.ts';
export type * from './commands.ts';
export type * from './deletion.ts';
export type * from './effects.ts';
export * from './brands.ts';
export * from './run-id.ts';
export { sharedNames } from './name-lists.ts';
export { planOf, type Plan, type PlannedStage } from './plan.ts';
export { addedTextOptions, type AddedTextOptions, NotAdded, readAdded, withNames } from './added-stages.ts';
export type { StagePicture } from './stages.ts';
export * from './evolve.ts';
export { RUN_DOCUMENT_BYTES_MAX } from './document-room.ts';
export { RUN_OUTPUTS_MAX, STAGE_OUTPUTS_MAX } from './result-bounds.ts';
export { isLoss } from './retry-cause.ts';
export { nextDeadline, timerOf, type RunSettings, type StageTimer } from './timers.ts';
export * from './projection.ts';
export { bitsOf, spares, stagesIn, type Lineage } from './lineage.ts';
export * from './rerun.ts';
export * from './adoptions.ts';
export type { GrownPlan, RepeatedRun } from './grown-plan.ts';
export { isReached, reachOf, repositoryOfReach, tenantsOfReaches, type RepositoryReach } from './reach.ts';
export * from './run-filter.ts';
export * from './schedule.ts';
export * from './public-events.ts';
export * from './announcements.ts';
export * from './history.ts';
export * from './waiting.ts';
export {
  announcedApprovers,
  awaitsRunner,
  gatesOf,
  gateViewOf,
  isApprover,
  isOpenGate,
  rightAt,
  type Person,
} from './gates.ts';
export * from './job.ts';
export * from './month.ts';
export * from './attempt-time.ts';
export * from './errors.ts';
export { judge, verdictOf, withEarlierFailure, type Judgement } from './verdict.ts';
export { isTrusted, triggerOf } from './origin.ts';
