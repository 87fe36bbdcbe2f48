/** The bounds of a stage as the variables of a runner say them. */
import type { StageLimits } from '@penstock/executor';

export interface LimitSettings {
  readonly stageMemoryBytes?: number | undefined;
  readonly stageProcesses?: number | undefined;
  readonly stageDiskBytes?: number | undefined;
}

/** Those that are said. */
export function stageLimitsOf({
  stageMemoryBytes: memoryBytes,
  stageProcesses: processes,
  stageDiskBytes: diskBytes,
}: LimitSettings): Partial<StageLimits> {
  return {
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(processes === undefined ? {} : { processes }),
    ...(diskBytes === undefined ? {} : { diskBytes }),
  };
}
