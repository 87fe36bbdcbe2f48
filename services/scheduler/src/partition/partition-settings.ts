import type { PullRequestSettings } from '../admission/pull-requests.ts';
import type { WaitSettings } from '../run/stage-times.ts';
import type { CommitSettings } from './commit-cycle.ts';

export interface PartitionSettings extends CommitSettings, PullRequestSettings, WaitSettings {
  readonly logBytesMax: number;
  /** How long kept files are kept where their stage does not say. */
  readonly artifactExpireMs: number;
  readonly slipKey?: string | undefined;
  /** How long a runner may be without a session before its workspaces count as lost (P19). */
  readonly workspaceGraceMs: number;
  readonly liveRunsPerKeyMax: number;
}
