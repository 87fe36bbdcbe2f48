/**
 * Every message that services exchange, as JSON values (log chunks apart: see `chunk.ts`). Requests and their answers
 * stand together. A field that only some senders know is optional; an unknown field is ignored by the receiver.
 */
import type {
  ArtifactsDefinition,
  IdTokenUse,
  Least,
  PlaceDefinition,
  ReportsDefinition,
  ResolvedExtension,
  ScheduleLine,
  SecretUse,
} from '@penstock/pipeline';
import type {
  Epoch,
  CacheScopes,
  CacheWork,
  GenerateWork,
  GateDecision,
  InheritedArtifacts,
  KeptArtifacts,
  KeptReport,
  Person,
  SavedCache,
  RunEvent,
  RunFilter,
  RerunWish,
  RunId,
  RunView,
  RunWaits,
  ScheduleSet,
  Sequence,
  StageReason,
  TriggerOrigin,
  Version,
} from '@penstock/run';

/** Names a granted attempt completely (P12): what does not match all of it is dropped. */
export interface AttemptRef {
  readonly runId: RunId;
  readonly stage: string;
  readonly attempt: number;
  readonly session: string;
  readonly credit: number;
}

// --- To the owner of a partition: `run.<p>.<verb>` ---------------------------------------------------------------

export type OwnerErrorCode =
  | 'NOT_FOUND'
  | 'FORBIDDEN'
  | 'CONFLICT'
  | 'BAD_USER_INPUT'
  | 'UNAVAILABLE'
  | 'QUOTA_EXCEEDED';

export interface OwnerRefusal {
  readonly ok: false;
  readonly code: OwnerErrorCode;
  readonly message: string;
  /** Of the owner that answers (P4). */
  readonly epoch: Epoch;
  readonly retryAfterSecs?: number | undefined;
}

/**
 * `run.<p>.create`. The YAML has been checked by the sender. Creating twice with one id is the same run. QUOTA_EXCEEDED: the
 * month of the key is used up (P23), until `retryAfterSecs` from now; nothing was counted, and the same id may come again.
 */
export interface CreateRequest {
  readonly runId: RunId;
  readonly tenant: string;
  readonly key: string;
  readonly yaml: string;
  readonly origin: TriggerOrigin;
  /** Of the pipeline's inputs, those that are given. */
  readonly inputs?: readonly (readonly [name: string, value: string])[] | undefined;
  /** Higher goes first; default 0. */
  readonly priority?: number | undefined;
  /**
   * Of the key's tier, as the sender knows it; absent, or 2147483647: none. Over `maxConcurrent` a run is held, over
   * `pipelineRunLimit` refused. Those of the key's newest run hold for all of its runs.
   */
  readonly limits?:
    | {
        readonly pipelineRunLimit: number;
        readonly maxConcurrent: number;
        /** How many slots it may have while other keys wait; absent: what the schedulers' setting says. */
        readonly keySlots?: number | undefined;
        /** Bytes of kept files of the key together. */
        readonly artifactBytes?: number | undefined;
        /** For how many days its runs are kept, and how many of each pipeline at least; absent: what the schedulers' settings say. */
        readonly retentionDays?: number | undefined;
        readonly retentionRuns?: number | undefined;
      }
    | undefined;
  /** What the `uses` of the file were resolved to: the run's lock. */
  readonly extensions?: readonly ResolvedExtension[] | undefined;
  /**
   * A run that has ended as it begins, without stages (`yaml` is then empty): a push that matched nothing, or that failed
   * before its file was read. With the reason `quota` it counts against no limit.
   */
  readonly ended?:
    | {
        readonly pipelineName: string;
        /** CANCELLED: of a pull request that has moved on; it counts against no limit. */
        readonly status: 'FAILED' | 'SKIPPED' | 'CANCELLED';
        readonly reason?: StageReason | undefined;
      }
    | undefined;
  /** Nothing of it goes on, and it counts against no limit, before it is approved. */
  readonly held?: 'approval' | undefined;
  /**
   * It repeats another run of the same tenant and key (P30): that one says where it comes from (of `origin` the actor counts) and its
   * inputs (those of `inputs` come on top). `yaml` and `extensions` are those of the other one, or what takes their place.
   */
  readonly rerun?: (RerunWish & { readonly parent: RunId }) | undefined;
  /** Of a pull request: its head leaves the runs of older heads alone. */
  readonly keepsSuperseded?: boolean | undefined;
}
/** `run: null`: it was created before and has left the owner's memory; it is in the store. CONFLICT: another's run has this id. */
export type CreateReply =
  | { readonly ok: true; readonly created: boolean; readonly epoch: Epoch; readonly run: RunView | null }
  | OwnerRefusal;

/**
 * `run.<p>.cancel`. NOT_FOUND: not in the owner's memory, or of a tenant that is not among `tenants`; it may still be in the
 * store, having ended. CONFLICT: it has ended.
 */
export interface CancelRequest {
  readonly runId: RunId;
  readonly tenants: readonly string[];
}
export type CancelReply =
  | { readonly ok: true; readonly epoch: Epoch; readonly cancelledStages: number; readonly run: RunView }
  | OwnerRefusal;

/**
 * `run.<p>.delete`: a run that has ended is deleted (P34). Answered when it is in no list any more. NOT_FOUND: there is no such run of
 * these tenants. CONFLICT: it has not ended, or another that repeats it still takes over from it.
 */
export interface DeleteRequest {
  readonly runId: RunId;
  readonly tenants: readonly string[];
  /** Who deletes it: a login, an email address, or `api-key`. */
  readonly by: string;
}
export type DeleteReply = { readonly ok: true; readonly epoch: Epoch } | OwnerRefusal;

/**
 * `run.<p>.approve`. NOT_FOUND as for `cancel`. CONFLICT: it has ended, or was never to be approved. Approving twice is the
 * same. QUOTA_EXCEEDED: the month of its key is used up; it goes on waiting.
 */
export interface ApproveRequest {
  readonly runId: RunId;
  readonly tenants: readonly string[];
  /** Who approves it: a login, an email address, or `api-key`. */
  readonly by: string;
}
export type ApproveReply = { readonly ok: true; readonly epoch: Epoch; readonly run: RunView } | OwnerRefusal;

/**
 * `run.<p>.decide`: somebody approves or rejects a stage that waits for it (P26). NOT_FOUND: not in the owner's memory; it may be
 * in the store, having ended. FORBIDDEN: the person is not among those who may. BAD_USER_INPUT: no stage of that name waits for
 * people ever. CONFLICT: it waits no more, or not yet. Deciding the same again changes nothing while it waits.
 */
export interface DecideRequest {
  readonly runId: RunId;
  readonly stage: string;
  readonly decision: GateDecision;
  readonly comment?: string | undefined;
  readonly person: Person;
}
export type DecideReply = { readonly ok: true; readonly epoch: Epoch; readonly run: RunView } | OwnerRefusal;

/**
 * `run.<p>.schedule`: what the newest file of a repository wants to be started at which times (P28). One of a delivery that is
 * behind a known one changes nothing. BAD_USER_INPUT: it is too large. QUOTA_EXCEEDED: the owner has no room for it.
 */
export type SetScheduleRequest = Omit<ScheduleSet, 'type' | 'at' | 'text' | 'lines'> & {
  readonly yaml: string;
  readonly extensions?: readonly ResolvedExtension[] | undefined;
  readonly lines: readonly ScheduleLine[];
};
export type SetScheduleReply = { readonly ok: true; readonly epoch: Epoch } | OwnerRefusal;

/** `run.<p>.schedules`: the lines of these tenants' schedules, ordered by id, behind `after`; `more`: there are others behind the last. */
export interface SchedulesRequest {
  readonly tenants: readonly string[];
  readonly after?: string | undefined;
}
export type SchedulesReply =
  | { readonly ok: true; readonly epoch: Epoch; readonly schedules: readonly ScheduleView[]; readonly more: boolean }
  | OwnerRefusal;

/** `run.<p>.pause`. NOT_FOUND: no line of these tenants has this id. Saying it twice is the same. */
export interface PauseRequest {
  readonly id: string;
  readonly tenants: readonly string[];
  readonly paused: boolean;
}
export type PauseReply = { readonly ok: true; readonly epoch: Epoch; readonly schedule: ScheduleView } | OwnerRefusal;

export interface ScheduleView {
  readonly id: string;
  readonly provider: string;
  readonly repository: string;
  readonly cron: string;
  readonly inputs: readonly { readonly key: string; readonly value: string }[];
  /** ISO 8601; null: never, as it is. */
  readonly nextAt: string | null;
  readonly lastRunId: RunId | null;
  readonly paused: boolean;
}

/** `run.<p>.get`: committed views of the runs that the owner has in memory; the others are in the store, or nowhere. */
export interface GetRequest {
  readonly runIds: readonly RunId[];
  /** Also the newest runs in memory of these tenants, at most `newest` (P22). */
  readonly tenants?: readonly string[] | undefined;
  readonly newest?: number | undefined;
  /** Of the newest runs, only these. An owner that does not know the field answers with all. */
  readonly filter?: RunFilter | undefined;
  /** Of the newest runs, only those with a lower id. */
  readonly before?: RunId | undefined;
  /** Also what this key has used in this month of UTC, `2026-11` (P23). */
  readonly usage?: { readonly key: string; readonly month: string } | undefined;
  /** Also the last commit about any run of these tenants. */
  readonly changesOf?: readonly string[] | undefined;
}
export type GetReply =
  | {
      readonly ok: true;
      readonly epoch: Epoch;
      readonly runs: readonly RunView[];
      /** Runs that were found as well and are too much for this answer: they are to be asked for by their ids. */
      readonly rest?: readonly RunId[] | undefined;
      readonly usage?: KeyUse | undefined;
      /** Never one before it; an owner that has just opened knows no better than its own first. */
      readonly changed?: Sequence | undefined;
    }
  | OwnerRefusal;
/** As committed: what the store may have a little later. */
export interface KeyUse {
  /** Created in the month. */
  readonly runs: number;
  /** Of attempts that ended in the month. */
  readonly stageMs: number;
  /** Runs that hold a place now, whatever the month. */
  readonly active: number;
}

/**
 * `run.<p>.watch`: the run's committed events with a version above `after`, oldest first. `run: null`: not in memory,
 * look in the store. A long answer is cut: `more` says that `version` of the last event is to be asked after again.
 */
export interface WatchRequest {
  readonly runId: RunId;
  readonly after: Version;
}
export type WatchReply = { readonly ok: true; readonly epoch: Epoch; readonly run: WatchedRun | null } | OwnerRefusal;
export interface WatchedRun {
  readonly tenant: string;
  /** The committed version; equal to the last event's unless `more`. */
  readonly version: Version;
  /** Version `after + 1` first. */
  readonly events: readonly RunEvent[];
  readonly more: boolean;
}

/**
 * `run.<p>.waits`: what runs wait for, those in memory and those parked outside; the others have ended, or are nowhere. The ids of
 * runs that are waited for are told of runs of these tenants only.
 */
export interface WaitsRequest {
  readonly runIds: readonly RunId[];
  readonly tenants: readonly string[];
}
export type WaitsReply =
  | {
      readonly ok: true;
      readonly epoch: Epoch;
      readonly runs: readonly RunWaits[];
      /** Those that are too much for this answer: to be asked for again. */
      readonly rest?: readonly RunId[] | undefined;
    }
  | OwnerRefusal;

/** `run.<p>.open`: which of these runs still need their workspaces (P19). */
export interface OpenRequest {
  readonly runIds: readonly RunId[];
}
export type OpenReply = { readonly ok: true; readonly epoch: Epoch; readonly open: readonly RunId[] } | OwnerRefusal;

/**
 * `run.<p>.attempt`: whether this attempt lives, granted to this runner, and whose it is. Asked by who keeps what the
 * attempt leaves, so that a runner can store for what it was granted and for nothing else.
 */
export interface AttemptRequest {
  /** Without session and credit: whichever it was granted by. */
  readonly ref: Pick<AttemptRef, 'runId' | 'stage' | 'attempt'> & Partial<Pick<AttemptRef, 'session' | 'credit'>>;
  readonly runner: string;
}
export type AttemptReply =
  | { readonly ok: true; readonly epoch: Epoch; readonly attempt: LivingAttempt | null }
  | OwnerRefusal;
export interface LivingAttempt {
  readonly tenant: string;
  readonly key: string;
  /** Bytes of kept files that the key may have; absent: any number. */
  readonly artifactBytes?: number | undefined;
  /** For how long what it leaves is kept. */
  readonly expireMs: number;
  /** Where what it caches is written and looked for; absent: nowhere. */
  readonly caches?: CacheScopes | undefined;
  /** Other runs whose kept files it may read, for its run has adopted their stages; absent: none. */
  readonly readsRuns?: readonly RunId[] | undefined;
}

/** `run.<p>.result.<runner>` (P16). `offer` is a new credit for the slot that this attempt had. */
export interface ResultRequest extends AttemptRef {
  readonly status: 'success' | 'failed';
  /** With `failed`: why. `cancelled` where a stop ended it. */
  readonly reason?: StageReason | undefined;
  readonly exitCode?: number | undefined;
  readonly outputs?: Readonly<Record<string, string>> | undefined;
  /** What was kept of its files, stored before this is sent. */
  readonly artifacts?: KeptArtifacts | undefined;
  /** How its tests went, stored before this is sent. */
  readonly report?: KeptReport | undefined;
  /** Of a success: what it has left for later runs, stored before this is sent. */
  readonly caches?: readonly SavedCache[] | undefined;
  /** Of a success: the stages that it adds to its run (`packText`). */
  readonly added?: string | undefined;
  /** The final offset of the attempt's log. */
  readonly logBytes: number;
  readonly offer?: { readonly scheduler: string; readonly credit: number } | undefined;
}
export type ResultReply =
  /** `offerTaken`: the credit counts as open at this scheduler, from the moment of the request. */
  | {
      readonly ok: true;
      readonly answer: 'committed' | 'obsolete';
      readonly epoch: Epoch;
      readonly offerTaken: boolean;
    }
  | OwnerRefusal;

/**
 * `events.<run>`, published once a commit is acknowledged. `version` is that of the last event. No events at all: they are
 * too large for a message; `version` says that there is something to ask for.
 */
export interface CommittedEvents {
  readonly runId: RunId;
  readonly epoch: Epoch;
  readonly version: Version;
  readonly events: readonly RunEvent[];
  /** How the run stands at this version; absent where more is decided about it: another message follows. */
  readonly run?: Pick<RunView, 'tenant' | 'pipelineName' | 'status' | 'provider' | 'repository'> | undefined;
}

/** `opened.<p>`: a new owner answers for the partition; watchers ask for the versions of their runs (P20). */
export interface PartitionOpened {
  readonly partition: number;
  readonly epoch: Epoch;
  readonly owner: string;
}

/** `released.<p>`: the partition has been handed over; whoever it belongs to now can open it at once (P3). */
export interface PartitionReleased {
  readonly partition: number;
}

/** Answer to `committing` (see `subjects`). */
export interface Committing {
  readonly scheduler: string;
}

// --- Runners -------------------------------------------------------------------------------------------------------

/** `demand.<scheduler>`, about every second while stages wait that no credit at hand can take (P11). */
export interface Demand {
  readonly scheduler: string;
  /** Stages waiting for each set of labels; runners with all of the labels may offer. */
  readonly waiting: readonly {
    readonly labels: readonly string[];
    /** What a runner must have at least. */
    readonly least?: Least | undefined;
    readonly count: number;
    /** Of these, those of keys that may have another slot while others wait (fair slots); absent: all. */
    readonly below?: number | undefined;
  }[];
  /** Another part of the same announcement follows; schedulers of releases before the field do not say so. */
  readonly more?: true | undefined;
}

/** `pull.<scheduler>.<runner>`: credit (P11). Numbers are never used again in a session; each is over after 30 s. */
export interface PullRequest {
  readonly session: string;
  readonly runner: string;
  readonly labels: readonly string[];
  /** New credits, one slot each. */
  readonly credits: readonly number[];
  /** The session serves this run of this key from now on, and no other (`penstock runner --once`). Absent: any. */
  readonly only?: { readonly runId: string; readonly key: string } | undefined;
  /** The runner leaves: from now on the session is for stages alone that are bound to its runner's workspaces. Absent: for any. */
  readonly leaving?: true | undefined;
  /** Credits that are taken back; one that was granted meanwhile is not among the reply's. */
  readonly withdraw: readonly number[];
}
export interface PullReply {
  readonly ok: boolean;
  readonly withdrawn: readonly number[];
}

/** `job.<runner>`: a grant, with everything the runner needs to execute it. */
export interface Job extends AttemptRef {
  /** Which execution of the stage it is, as the stage and its readers know it; absent: as `attempt`, which counts grants. */
  readonly number?: number | undefined;
  readonly partition: number;
  readonly epoch: Epoch;
  /** A helper process serves the stages of one key only. */
  readonly key: string;
  readonly pipelineName: string;
  readonly origin: TriggerOrigin;
  readonly workspace: 'shared' | 'fresh';
  /** Packages that the stage's extension brings along: fetched by hash, and told to the stage by `SERVICE_EXTENSION_PATH`. */
  readonly extension?: { readonly id: string; readonly version: string; readonly hash: string } | undefined;
  /** Run one after the other by `shell`; the first that fails ends the stage. */
  readonly commands: readonly { readonly script: string; readonly bindings: Readonly<Record<string, string>> }[];
  /** Evaluated. */
  readonly env: Readonly<Record<string, string>>;
  readonly workdir?: string | undefined;
  readonly shell?: string | undefined;
  /** What it asks of the place where it runs; absent: nothing. */
  readonly place?: PlaceDefinition<string> | undefined;
  /** What of its files is kept; absent: nothing. */
  readonly artifacts?: Pick<ArtifactsDefinition, 'paths' | 'when' | 'required'> | undefined;
  /** Which files say how its tests went; absent: none. */
  readonly reports?: ReportsDefinition | undefined;
  /** Files that are to be there before the stage, and to be found by later runs; absent: none. */
  readonly caches?: readonly CacheWork[] | undefined;
  /** It may add stages to its run: what their text is to be read with. */
  readonly generates?: GenerateWork | undefined;
  /** Kept files of earlier stages: what a folder that is made anew for this stage begins with. */
  readonly inherits?: readonly InheritedArtifacts[] | undefined;
  /** Names that the stage may publish. */
  readonly outputs: readonly string[];
  /** What the stage gets of which secrets: names, never a value. */
  readonly secrets?: readonly SecretUse[] | undefined;
  /** For whom it gets id tokens, and in which variables. */
  readonly idTokens?: readonly IdTokenUse[] | undefined;
  /** What auth gives the values for (P31). Absent: the stage names none, or its scheduler has no key to sign with. */
  readonly slip?: string | undefined;
  /** What auth says for which secret its repository is read with. Absent: it has no repository, or not one that a user has connected. */
  readonly cloneSlip?: string | undefined;
  readonly timeoutMs: number;
  /** Bytes of output kept for this attempt; what is beyond is dropped behind a marker. */
  readonly logBytesMax: number;
  /** Below which span of its run's trace it goes on (W3C Trace Context); absent: its scheduler sends no traces. */
  readonly traceparent?: string | undefined;
  /** False for the first send by the owner that committed the grant. */
  readonly repeated: boolean;
}
/** `held`: this session has it (running, or its result is unanswered). `refused`: this credit is over, nothing started. */
export interface JobReply extends AttemptRef {
  readonly answer: 'accepted' | 'held' | 'refused';
}

/** `stop.<runner>` (P14). `gone`: no process of the attempt exists and none will. `stopping`: its result will say. */
export interface StopRequest extends AttemptRef {
  readonly reason: 'cancelled' | 'timeout';
}
export interface StopReply extends AttemptRef {
  readonly answer: 'gone' | 'stopping';
}

/** `release.<runner>`: the workspaces of these runs can go (P19). */
export interface Release {
  readonly runIds: readonly RunId[];
}

/** The value of a runner's lease, bucket `runners`, key `<runner>.<session>` (P5, P13). */
export interface RunnerLease {
  readonly runner: string;
  readonly session: string;
  readonly labels: readonly string[];
  readonly slots: number;
  /** Of its machine: a stage that asks for more is not for it. Absent: it does not say. */
  readonly capacity?: { readonly cpu: number; readonly memoryBytes: number } | undefined;
  /** An X25519 public key, base64url: what its session is given is sealed to it (P31). */
  readonly sealTo?: string | undefined;
  /** Held attempts, results that are not answered yet included. */
  readonly attempts: readonly AttemptRef[];
}

/** The value of a scheduler's membership, bucket `members`, key `<member>`. */
export interface Membership {
  readonly member: string;
  readonly startedAt: string;
}
