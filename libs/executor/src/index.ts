export { stageEnvironment } from './attempt/stage-environment.ts';
export { failedBecause, judgeAttempt, verdictOf, type AttemptVerdict } from './attempt/verdict.ts';
export type {
  Executor,
  OutputSink,
  OutputStreamName,
  StageExit,
  StageProcess,
  StageSpec,
  StopReason,
} from './contract/port.ts';
export { Guard } from './guard/guard.ts';
export { Chunker } from './output/chunker.ts';
export { LineSplitter } from './output/lines.ts';
export { ProcessExecutor } from './process/executor.ts';
export { killLeftovers } from './process/leftovers.ts';
export { bootClockMs } from './system/proc.ts';
export { removeTree, type StageFolders, Workspaces } from './workspace/workspaces.ts';
