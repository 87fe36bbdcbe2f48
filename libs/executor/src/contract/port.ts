/**
 * The port of every executor: it runs one stage attempt and says how that ended. It knows no runs, no journal and no
 * broker; whoever calls it counts slots and decides what an ending means.
 */

/** `service:<name>`: what a service beside the stage prints. */
export type OutputStreamName = 'stdout' | 'stderr' | 'system' | `service:${string}`;

/**
 * Takes a stage's output in the order in which it was written, each stream by itself; between the two as far as it can be
 * told. `bytes` belongs to the caller again when the call returns: copy what you keep. While a returned promise is pending
 * nothing more of that stage is read, so its pipes fill and its processes wait. `system` carries the executor's own
 * remarks, whole lines.
 */
export interface OutputSink {
  write(stream: OutputStreamName, bytes: Uint8Array): void | Promise<void>;
}

export interface StageCommand {
  readonly script: string;
  /** Variables of this command alone; an equal name in `env` loses. */
  readonly bindings: Readonly<Record<string, string>>;
}

/** Whom the processes of a stage run as: numbers that nothing else on the machine has. */
export interface StageUser {
  readonly uid: number;
  readonly gid: number;
}

/** An image to run in, as its registry names it. */
export interface StageImage {
  readonly name: string;
  /** Absent: the shell of the stage is asked for by name inside the image. */
  readonly entrypoint?: readonly string[] | undefined;
  /** A name or number inside the image; never the host's root. */
  readonly user?: string | undefined;
  /** Default `missing`. */
  readonly pull?: 'missing' | 'always' | undefined;
  /** Credentials of the registry; they never stand in an argument. */
  readonly auth?: { readonly username: string; readonly password: string } | undefined;
}

/** A container beside the stage, reached by its name; started before the stage and stopped after it. */
export interface StageService {
  readonly name: string;
  readonly image: StageImage;
  readonly env: Readonly<Record<string, string>>;
  /** A shell command inside the service that succeeds once it may be used. Absent: started is ready. */
  readonly ready?: string | undefined;
  /** Default 60,000. */
  readonly readyTimeoutMs?: number | undefined;
}

/** What a stage asks of the place where it runs, beyond a process. */
export interface StagePlace {
  readonly image?: StageImage | undefined;
  readonly services?: readonly StageService[] | undefined;
  /** Limits: cores, and bytes. */
  readonly resources?: { readonly cpu?: number | undefined; readonly memoryBytes?: number | undefined } | undefined;
  /** `none`: loopback only. `public`: no link-local, private or own address of the machine. Default `open`. */
  readonly network?: 'open' | 'public' | 'none' | undefined;
}

/** The run of a stage, to executors that keep runs from each other. */
export interface StageRun {
  /** Of all runs' folders the only one that the stage sees. */
  readonly folder: string;
  /** In it: what the stage has as /tmp. */
  readonly temporary: string;
  /** Of both folders, as they are when the stage starts (`runIdentity`); absent: the executor looks. */
  readonly identity?: string | undefined;
  /** Which run it is, where several may have these folders one after the other. */
  readonly occupant?: string | undefined;
}

/** Files that a stage finds when it begins, made where it alone sees them, and gone after it. */
export interface StageFiles {
  /** A path that nothing has yet, in memory. */
  readonly folder: string;
  /** Each is called as the variable that holds its path. */
  readonly files: readonly { readonly variable: string; readonly content: string }[];
}

/** What is wanted of the files that a stage has left. */
export interface StageLeavings {
  /** Of the stage. */
  readonly folder: string;
  /** Paths in it below which all of that lies. Absent: it may be anywhere. */
  readonly below?: readonly string[] | undefined;
  /** Where it is brought: a path that nothing has yet, in a folder of the owner's alone. Links are brought as they are. */
  readonly into: string;
  readonly isWanted: (exit: StageExit) => boolean;
  /**
   * Of a list of all that is there, a stranger's (`leftTreeOf`): long, and no work for the caller's own thread. Why it rejects is told;
   * once the signal aborts it is not waited for.
   */
  readonly pick: (list: Uint8Array, signal: AbortSignal) => Promise<LeftPick>;
}

/** By paths below the folder. Folders come without what is in them. */
export interface LeftPick {
  readonly files: readonly string[];
  /** With what they say. */
  readonly links: ReadonlyMap<string, string>;
  readonly folders: readonly string[];
}

export interface StageSpec {
  /** Processes that serve one key's stages never serve another's. */
  readonly helperKey: string;
  /** Run in order; the first that fails ends the stage. See the README for how they share a shell. */
  readonly commands: readonly StageCommand[];
  /** The environment of the stage, with `inherited`: nothing of the owner's own is added but a PATH and a HOME where they lack. */
  readonly env: Readonly<Record<string, string>>;
  /** What many stages share of their environments; `env` wins. The same object, never changed, is put together once for all of them. */
  readonly inherited?: Readonly<Record<string, string>> | undefined;
  /** A program's name or path that takes a script by `-c` (or `-e`, where that is its way). Default `sh`. */
  readonly shell?: string | undefined;
  /** Absent: the owner's own user. Only where `canChangeUser` says so. */
  readonly user?: StageUser | undefined;
  /** Absent: of what the executor keeps visible for stages, all is. */
  readonly run?: StageRun | undefined;
  /** An absolute path. */
  readonly cwd: string;
  /** What a stage in a container is given of its owner's folders, each at its own path; all of them are the stage's to write. */
  readonly folders?: readonly string[] | undefined;
  /** Where it is given copies of them: what of them it finds, by paths below them. Absent: everything. */
  readonly contents?: readonly string[] | undefined;
  /** And what it finds besides, over what is there: all that is in the one folder, at the path of the other. It does without what cannot be laid there. */
  readonly laidOver?: readonly { readonly from: string; readonly to: string }[] | undefined;
  /** Where its files stay inside: what is brought out of them once it has ended, one after the other, before `ended` resolves. Absent: nothing. */
  readonly leavings?: readonly StageLeavings[] | undefined;
  readonly files?: StageFiles | undefined;
  /** One line of text each, in memory, which may be replaced while it runs; its variable holds the path of the file. */
  readonly renewedFiles?: readonly { readonly variable: string; readonly content: string }[] | undefined;
  /** Absent: a plain process. An executor that cannot give what it asks for refuses the stage by a remark and code 126. */
  readonly place?: StagePlace | undefined;
  /** Counts from the start of the stage's first process. */
  readonly timeoutMs: number;
  /** Between SIGTERM and SIGKILL. Default 10,000. */
  readonly graceMs?: number | undefined;
}

export type StopReason = 'cancelled' | 'timeout';

export type StageExit =
  | { readonly kind: 'exit'; readonly code: number }
  /** `code` is the shell's: 128 and the signal's number. `oom`: the kernel says that it ran out of memory. */
  | { readonly kind: 'signal'; readonly signal: string; readonly code: number; readonly oom: boolean }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'stopped'; readonly reason: StopReason }
  /** It never ran, or was taken away: no image to be had, a service that was never ready, a place that evicted it. */
  | { readonly kind: 'unplaced'; readonly reason: 'image' | 'service' | 'evicted'; readonly message: string }
  /** Ended from outside, or it could not be started: a fault of the machinery, not of the stage. */
  | { readonly kind: 'lost'; readonly cause: string };

/**
 * What is kept of a stage while it runs, where its executor can take it up again after the owner's own process has ended: on the
 * owner's disk, and in the owner's form. What is in it is the executor's.
 */
export interface StageRecord {
  /**
   * It is kept when this returns, notes and output together; so what is told to the stage as taken is told afterwards. It never
   * throws: what cannot be kept cannot be taken up again.
   */
  keep(notes: Readonly<Record<string, string>>, output?: StagePiece): void;
}

/** Output in the order in which the sink had it. */
export interface StagePiece {
  /** `masks`: what the file that `$SERVICE_MASK` names held from here on. */
  readonly stream: OutputStreamName | 'masks';
  readonly bytes: Uint8Array;
}

/** All that was noted under each name, in its order. */
export type StageNotes = ReadonlyMap<string, readonly string[]>;

export interface StageProcess {
  /** Resolves, and never rejects, when no process of the stage is left and the sink has all of its output. */
  readonly ended: Promise<StageExit>;
  /** When its first process was asked for, milliseconds of the monotonic clock; undefined before. */
  readonly startedAtMs: number | undefined;
  /** Once it has ended, by where it was to be brought: why what it has left is not there, or not all of it, as a line for its log. */
  readonly leavingFaults?: ReadonlyMap<string, string> | undefined;
  /** The content of one of its `renewedFiles` from now on: as soon as it can be brought there, and not once the stage has ended. Never throws. */
  replaceFile?(variable: string, content: string): void;
  /** SIGTERM to all of its processes, SIGKILL after the grace. Also before it has started: then it never does. Idempotent. */
  stop(reason: StopReason): void;
}

/** A stage that may be started. Nothing of its own commands has run, and nothing of it can be seen. */
export interface StagePreparation {
  /** Forks its process where that costs nobody anything: where one that could serve it idles. False: none does. */
  begin(): boolean;
  /** As the executor's `start`, in whatever state it is. Once. */
  start(sink: OutputSink): StageProcess;
  /** Instead of `start`: it never runs. */
  discard(): void;
}

/** What a stage is on its machine; also the label `executor=<kind>` of a runner that has it. */
export type ExecutorKind = 'process' | 'sandbox' | 'container' | 'kubernetes';

export interface Executor {
  readonly kind: ExecutorKind;
  /** Whether stages can be given a user of their own; known once a helper has come up. */
  readonly canChangeUser?: boolean | undefined;
  /** What a stage has written stays where it ran and goes with it: its owner finds none of its files. */
  readonly filesStayInside?: boolean | undefined;
  /** False: what a stage leaves running may outlive it, and it sees the machine's other processes. */
  readonly isIsolated?: boolean | undefined;
  /**
   * Never throws: what cannot start is `lost`, or ends with a remark and code 126. `record`: kept by those that can `resume`.
   */
  start(spec: StageSpec, sink: OutputSink, record?: StageRecord): StageProcess;
  /** Of a stage that is likely to be started soon, with this very spec. Absent or undefined: there is nothing to be gained. */
  prepare?(spec: StageSpec): StagePreparation | undefined;
  /**
   * Takes up a stage that an earlier process of the owner has started and that goes on without it; the sink has all that the record
   * holds. Absent: stages end with the process that has started them.
   */
  resume?(spec: StageSpec, sink: OutputSink, record: StageRecord, notes: StageNotes): StageProcess;
  /** Whether such a stage may have begun: if not, what `resume` is given is all that it begins with. */
  hasBegun?(notes: StageNotes): boolean;
  /** Ends such a stage instead; resolves when nothing of it can run any more. Never rejects. */
  discard?(notes: StageNotes): Promise<void>;
  /**
   * Makes sure that up to `count` stages could start at once without a new helper, as far as the machine lets it. Rejects where what stands
   * for `isIsolated` and `canChangeUser` is not known then.
   */
  prewarm(count: number): Promise<void>;
  /** Kills what runs; resolves when nothing is left. Nothing starts afterwards. */
  close(): Promise<void>;
}
