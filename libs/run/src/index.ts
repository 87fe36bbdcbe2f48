export type * from './events.ts';
export type * from './stage-state.ts';
export type * from './state.ts';
export * from './caches.ts';
export type * from './commands.ts';
export type * from './effects.ts';
export * from './brands.ts';
export * from './run-id.ts';
export * from './plan.ts';
export type { StagePicture } from './stages.ts';
export * from './evolve.ts';
export { RUN_OUTPUTS_MAX, STAGE_OUTPUTS_MAX } from './decide.ts';
export { RUN_DOCUMENT_BYTES_MAX } from './document-room.ts';
export { isLoss } from './retry-cause.ts';
export { isFailureTolerated } from './tolerated.ts';
export { nextDeadline, timerOf, type RunSettings, type StageTimer } from './timers.ts';
export * from './machine.ts';
export * from './projection.ts';
export * from './run-filter.ts';
export * from './public-events.ts';
export * from './history.ts';
export {
  awaitsRunner,
  gatesOf,
  gateViewOf,
  isApprover,
  isOpenGate,
  rightAt,
  type GateRight,
  type Person,
} from './gates.ts';
export * from './job.ts';
export * from './month.ts';
export * from './attempt-time.ts';
export * from './errors.ts';
export { judge, withEarlierFailure, type Judgement, type RunVerdict } from './verdict.ts';
export { isTrusted, triggerOf } from './origin.ts';
