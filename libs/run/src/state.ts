/** The state of a run: what its events add up to, plain as JSON. Written by `evolve` alone; the API's view is made from it. */
import type { RunId, Version } from './brands.ts';
import type { Lineage } from './lineage.ts';
import type {
  GateView,
  RunStatus,
  StageApproval,
  StageArtifacts,
  StageReason,
  StageReport,
  StageState,
} from './stage-state.ts';
import type { Stages } from './stages.ts';

/** How a run ends that ends as it begins. */
export interface RunEnd {
  /** CANCELLED: of a pull request that has moved on. */
  readonly status: 'FAILED' | 'SKIPPED' | 'CANCELLED';
  readonly reason?: StageReason | undefined;
}

/** Which pull request a run is of. */
export interface PullRequestOrigin {
  readonly number: number;
  /** What it would go into. */
  readonly branch: string;
  /** Its commits come from another repository, or nobody knows from which. */
  readonly fork: boolean;
  /** Of the delivery that made it the head (P27); absent: it is not known to be, or to have been, the head. */
  readonly sequence?: number | undefined;
}

/** What one `uses` of a run's file stands for: one line of its lock. */
export interface LockedExtension {
  readonly uses: string;
  readonly id: string;
  readonly version: string;
  /** SHA-256 of the package, lower-case hex. */
  readonly hash: string;
}

/** Which time of a schedule a run is for. */
interface FiredTick {
  readonly cron: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** How many times of the line before it nobody was there to fire. */
  readonly missed: number;
}

/** Where a run came from; shown to its owner, and to the stages as their environment. */
export interface TriggerOrigin {
  readonly kind: 'api' | 'webhook' | 'schedule' | 'local';
  readonly repository?: string | undefined;
  readonly ref?: string | undefined;
  readonly commit?: string | undefined;
  readonly provider?: string | undefined;
  /** Which file ran: its path in the repository, `server_template`, or `none`. */
  readonly source?: string | undefined;
  /** The webhook delivery that it came from. */
  readonly deliveryId?: string | undefined;
  /** Who began it: a login at the host, an email address, or `api-key`. Data, whoever said it. */
  readonly actor?: string | undefined;
  /** Of a run that a pull request began: `ref` and `commit` are those of its head. */
  readonly pullRequest?: PullRequestOrigin | undefined;
  /** Of the repository, by its short name, as the host last said it; absent: not known. */
  readonly defaultBranch?: string | undefined;
  /** False: an unsigned delivery, or a pull request from a fork; no secrets, no writing to caches. */
  readonly trusted?: boolean | undefined;
  /** Of a run that a schedule began. */
  readonly tick?: FiredTick | undefined;
  /** Where a runner fetches `commit` from; absent: the stages begin in an empty workspace. */
  readonly cloneUrl?: string | undefined;
  /** The request that it came from, as log lines name it; absent: it came from none. Shown to operators alone. */
  readonly requestId?: string | undefined;
  /** The caller's own trace, W3C Trace Context. */
  readonly traceparent?: string | undefined;
}

/** What began a run, as expressions and the API name it; a rerun has its root's. */
export type RunTrigger = 'push' | 'pull_request' | 'schedule' | 'api' | 'local';

export interface RunState {
  readonly id: RunId;
  readonly tenant: string;
  readonly key: string;
  readonly pipelineName: string;
  readonly yaml: string;
  readonly priority: number;
  readonly origin: TriggerOrigin;
  readonly inputs?: Readonly<Record<string, string>> | undefined;
  readonly extensions?: readonly LockedExtension[] | undefined;
  readonly group?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly lineage?: Lineage | undefined;
  readonly createdAt: number;
  /** The number of events that made this state. */
  version: Version;
  /** What the events behind the first add to the run's document, at most; absent from documents of releases before the field. */
  eventBytes: number;
  status: RunStatus;
  /** Held back by a group or a quota, or until somebody has approved it. */
  held: boolean;
  awaitsApproval?: true | undefined;
  /** Its place among others, in place of its creation. */
  approvedAt?: number | undefined;
  /** When it was given its place last; absent: it had one from the beginning, or has none yet. */
  admittedAt?: number | undefined;
  /** How many of the stages that it takes over from its parent are not there yet; absent: all are. */
  adoptionsLeft?: number | undefined;
  /** Only gates are open: it has no place and waits for none (P26). */
  rested?: true | undefined;
  finishedAt?: number | undefined;
  outcome?: 'interrupted' | 'quarantined' | undefined;
  reason?: StageReason | undefined;
  cause?: string | undefined;
  cancelledStages?: number | undefined;
  /** In the order of the definition. */
  stages: Stages;
  /** What the texts take in the journal that stages have added; absent: none has. */
  addedBytes?: number | undefined;
  /** How many stages have not ended. */
  openStages: number;
  /** How many attempts may have a process. */
  liveAttempts: number;
  /** The runner that holds the shared workspace, for each set of `runs_on` labels joined by commas. */
  workspaces: Record<string, string>;
}

/** A run's state as documents have it. */
export type StoredRunState = Omit<RunState, 'stages'> & { readonly stages: readonly StageState[] };

/** The API's PipelineRun with the additional fields; timestamps ISO 8601 in UTC with milliseconds. */
export interface RunView {
  readonly id: RunId;
  readonly tenant: string;
  readonly key: string;
  readonly pipelineName: string;
  readonly status: RunStatus;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly outcome: 'interrupted' | 'quarantined' | null;
  readonly reason: StageReason | null;
  /** The number of events behind this view; of two views the one with the higher version is newer. */
  readonly version: Version;
  /** Set on a cancelled run. */
  readonly cancelledStages: number | null;
  readonly stages: readonly StageView[];
  /** Absent from documents of releases before the fields. */
  readonly trigger?: RunTrigger | undefined;
  readonly trusted?: boolean | undefined;
  readonly actor?: string | undefined;
  readonly provider?: string | undefined;
  /** Equal for runs of one text with the same lock and the same inputs. */
  readonly fingerprint?: string | undefined;
  /** Which file ran: its path in the repository, `server_template`, or `none`; absent for a run that came from no repository. */
  readonly source?: string | undefined;
  readonly repository?: string | undefined;
  readonly ref?: string | undefined;
  readonly commit?: string | undefined;
  readonly pullRequest?: PullRequestOrigin | undefined;
  /** Of a run that a schedule began. */
  readonly tick?: { readonly cron: string; readonly at: string; readonly missed: number } | undefined;
  /** As the run has them, defaults included; absent where its file declares none. */
  readonly inputs?: readonly { readonly key: string; readonly value: string }[] | undefined;
  /** The run's lock; absent where its file uses no extension. */
  readonly extensions?: readonly LockedExtension[] | undefined;
  /** Of a rerun. */
  readonly lineage?: Lineage | undefined;
}

export interface StageView {
  readonly name: string;
  /** What it comes after, a whole matrix by its name; absent where that is not known. */
  readonly after?: readonly string[] | undefined;
  readonly status: RunStatus;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly outputs: readonly { readonly key: string; readonly value: string }[];
  readonly reason: StageReason | null;
  readonly exitCode: number | null;
  readonly attempt: number;
  /** How many attempts before the last one failed by themselves, lost runners not counted; absent where none did. */
  readonly failedAttempts?: number | undefined;
  /** It has failed, and that fails nothing. */
  readonly tolerated?: true | undefined;
  /** It succeeded in the run that this one repeats, and did not run in this one. */
  readonly adopted?: true | undefined;
  /** Absent where nothing was kept of its files. */
  readonly artifacts?: StageArtifacts | undefined;
  /** Absent where no file said how its tests went. */
  readonly report?: StageReport | undefined;
  /** Of a gate; absent for every other stage. */
  readonly gate?: GateView | undefined;
  readonly approvals?: readonly StageApproval[] | undefined;
}
