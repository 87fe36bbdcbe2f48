/**
 * The port of every executor: it runs one stage attempt and says how that ended. It knows no runs, no journal and no
 * broker; whoever calls it counts slots and decides what an ending means.
 */

export type OutputStreamName = 'stdout' | 'stderr' | 'system';

/**
 * Takes a stage's output in the order in which it was written, each stream by itself. `bytes` belongs to the caller
 * again when the call returns: copy what you keep. While a returned promise is pending nothing more of that stage is
 * read, so its pipes fill and its processes wait. `system` carries the executor's own remarks, whole lines.
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

export interface StageSpec {
  /** Processes that serve one key's stages never serve another's. */
  readonly helperKey: string;
  /** Run in order; the first that fails ends the stage. See the README for how they share a shell. */
  readonly commands: readonly StageCommand[];
  /** The whole environment of the stage: nothing of the owner's own is added but a PATH and a HOME where they lack. */
  readonly env: Readonly<Record<string, string>>;
  /** A program's name or path that takes a script by `-c` (or `-e`, where that is its way). Default `sh`. */
  readonly shell?: string | undefined;
  /** Absent: the owner's own user. Only where `canChangeUser` says so. */
  readonly user?: StageUser | undefined;
  /** An absolute path. */
  readonly cwd: string;
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
  /** Ended from outside, or it could not be started: a fault of the machinery, not of the stage. */
  | { readonly kind: 'lost'; readonly cause: string };

export interface StageProcess {
  /** Resolves, and never rejects, when no process of the stage is left and the sink has all of its output. */
  readonly ended: Promise<StageExit>;
  /** When its first process was asked for, milliseconds of the monotonic clock; undefined before. */
  readonly startedAtMs: number | undefined;
  /** SIGTERM to all of its processes, SIGKILL after the grace. Also before it has started: then it never does. Idempotent. */
  stop(reason: StopReason): void;
}

export interface Executor {
  /** Whether stages can be given a user of their own; known once a helper has come up. */
  readonly canChangeUser?: boolean | undefined;
  /** False: what a stage leaves running may outlive it, and it sees the machine's other processes. */
  readonly isIsolated?: boolean | undefined;
  /** Never throws: what cannot start is `lost`, or ends with a remark and code 126. */
  start(spec: StageSpec, sink: OutputSink): StageProcess;
  /** Makes sure that up to `count` stages could start at once without a new helper. */
  prewarm(count: number): Promise<void>;
  /** Kills what runs; resolves when nothing is left. Nothing starts afterwards. */
  close(): Promise<void>;
}
