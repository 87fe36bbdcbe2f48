export { stageEnvironment } from './attempt/stage-environment.ts';
export { noSecrets, secretsGiven, secretsOf, type StageSecrets } from './attempt/stage-secrets.ts';
export { judgeAdded } from './attempt/added-stages.ts';
export { failedBecause, judgeAttempt, verdictOf, type AttemptVerdict } from './attempt/verdict.ts';
export { chooseExecutor, type IsolationLevel, limitsRemark, type StageNeeds } from './choice/choice.ts';
export { ContainerExecutor } from './container/container-executor.ts';
export { findEngine, type FoundEngine } from './container/find-engine.ts';
export { sweepContainers } from './container/sweep.ts';
export type {
  Executor,
  ExecutorKind,
  LeftPick,
  OutputSink,
  OutputStreamName,
  StageExit,
  StageImage,
  StageLeavings,
  StageNotes,
  StagePiece,
  StagePlace,
  StagePreparation,
  StageProcess,
  StageRecord,
  StageService,
  StageSpec,
  StageUser,
  StopReason,
} from './contract/port.ts';
export { leftTreeOf, type LeftTree, plainPath } from './contract/left-tree.ts';
export { Guard } from './guard/guard.ts';
export { Chunker } from './output/chunker.ts';
export { maskedOutputs, MaskingSink } from './output/mask.ts';
export { MaskFile, writeMasks } from './output/mask-file.ts';
export { LineSplitter } from './output/lines.ts';
export { ControlGroups } from './limits/control-groups.ts';
export { defaultLimits, type StageLimits } from './limits/stage-limits.ts';
export { coverFor } from './process/launch.ts';
export { ProcessExecutor } from './process/executor.ts';
export { renderJob } from './process/job.ts';
export { killLeftovers } from './process/leftovers.ts';
export { SandboxExecutor } from './sandbox/executor.ts';
export { whySandboxLacks } from './sandbox/probe.ts';
export { hasPipes } from './system/child-pipes.ts';
export { bootClockMs } from './system/proc.ts';
export { giveTree, removeTree, removeTreeHere } from './workspace/trees.ts';
export { Spares } from './workspace/spares.ts';
export { type SharedContents, type StageFolders, Workspaces } from './workspace/workspaces.ts';
export { imageLogins, withLogins } from './attempt/image-logins.ts';
