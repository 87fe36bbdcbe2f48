/** What a runner is started with, and what it is to whoever has started it. */
import type { Bus, Job, RunnerLease } from '@penstock/bus';
import type { IsolationLevel, StageLimits } from '@penstock/executor';
import type { MirrorCache } from '@penstock/git';
import type { Log } from '@penstock/telemetry/log';
import type { Meter } from '@penstock/telemetry/metrics';
import type { Tracer } from '@penstock/telemetry/traces';
import type { StorageLine } from './artifacts/storage-line.ts';
import type { ExecutorSource, UidRange } from './executors/executor-source.ts';

export interface RunnerOptions {
  readonly bus: Bus;
  /** The same at each start, so that workspaces are found again (P19). A token of a subject: no dots or blanks. */
  readonly runnerId: string;
  /** Stages at a time. */
  readonly slots: number;
  readonly labels: readonly string[];
  /** Of its machine, for stages that ask for much. Absent: as found; none where stages run elsewhere. */
  readonly capacity?: RunnerLease['capacity'];
  /** Holds the folders of runs (`work`) and the runner's own (`runner`). Looks empty to stages, but for `work`. */
  readonly dataDir: string;
  /** Of the session's lease; default `RUNNER_LEASE_MS`. `RUNNER_LEASE_MS_MIN` is the least that leaves time for a renewal before the fence. */
  readonly leaseMs?: number | undefined;
  /** Lists guard and helpers for `killLeftovers` (P17). Default: in the runner's own folder. */
  readonly leftoversFile?: string | undefined;
  /** Log chunks kept on disk while the broker is away, default 512 MiB; beyond it stages wait. */
  readonly spoolBytesMax?: number | undefined;
  /** With less free on the disk of `dataDir` no stage is taken. Default 16 MiB. */
  readonly freeBytesMin?: number | undefined;
  /** Between SIGTERM and SIGKILL, default 10,000. */
  readonly graceMs?: number | undefined;
  /** How long a cancelled attempt waits for the broker to take its log. Default `GONE_WITHOUT_LOG_MS`. */
  readonly goneWithoutLogMs?: number | undefined;
  /** Where the bytes that stages leave go to, and come from. Default: a registry, by the bus. */
  readonly storage?: StorageLine | undefined;
  /** Where the workspaces of runs with a repository come from, closed by who opened it; without it such stages fail. */
  readonly mirrors?: MirrorCache | undefined;
  /** Where the runner is root: stages of each key run as a user of their own from this range. Absent: as the runner. */
  readonly stageUids?: UidRange | undefined;
  /** Names and addresses of machines that no stage is to reach, where its executor has a say in that: broker and store. */
  readonly deniedHosts?: readonly string[] | undefined;
  /** Folders of the machine that stages in a sandbox see beside its programs. */
  readonly stagePaths?: readonly string[] | undefined;
  /** Names of variables of this process that every stage is given as they are at the start. */
  readonly stageEnv?: readonly string[] | undefined;
  /** What a stage may take of this machine, where that is not what the machine gives when stages share it equally. */
  readonly stageLimits?: Partial<StageLimits> | undefined;
  /** Rejects the start where stages cannot be kept apart from this machine's other processes. */
  readonly isolationRequired?: boolean | undefined;
  /** It is of a fleet (P37), and so makes no consumer at the broker to know the schedulers by. Default: false. */
  readonly hearsMembers?: boolean | undefined;
  /** Whose stages alone it is given, and hears of; absent: everybody's. */
  readonly tenant?: string | undefined;
  readonly log: Log;
  /** Default: nothing is counted. */
  readonly meter?: Meter | undefined;
  /** Default: it sends no traces. */
  readonly tracer?: Tracer | undefined;
  /**
   * Whether the next start takes up stages that go on without this process. Not where that start ends all leases (P17). Default: false.
   */
  readonly takesUp?: boolean | undefined;
  /** It serves the run of the first stage that it is given, and no other. Default: false. */
  readonly once?: boolean | undefined;
  /** What stages can run in here, the most preferred first. Default: plain processes alone. */
  readonly executors?: readonly ExecutorSource[] | undefined;
  /** The least isolation of a stage whose run is not trusted. Default `none`. */
  readonly untrustedIsolation?: IsolationLevel | undefined;
}

export interface Runner {
  /** Attempts that run at this moment. */
  readonly running: number;
  /** Runs whose folders it has, since their owners have not said that they are closed. */
  readonly openRuns: number;
  /** Of these, runs whose stages share their folder, so that the next one has to come here. */
  readonly heldRuns: number;
  /** With `once`: whether its run has ended, and no stage of it runs here any more. */
  readonly hasServed: boolean;
  /** The present session's id; null between two sessions. */
  readonly session: string | null;
  /**
   * Takes no further stage, waits up to `limitMs` for those that run and for the answers to their results, then ends as
   * `close` does. What had to be ended counts as lost: its owner sees the lease go. `finishesRuns`: within the same time it still takes
   * stages of open runs whose shared folder is here, and waits for the end of these runs. Default: false.
   */
  drain(limitMs: number, options?: { readonly finishesRuns?: boolean | undefined }): Promise<void>;
  /** What runs at this moment, for people. */
  runningStages(): readonly Pick<Job, 'stage' | 'pipelineName'>[];
  /** Ends everything at once; resolves when no process is left and the lease is given up. */
  close(): Promise<void>;
}
