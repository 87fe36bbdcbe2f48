/**
 * What executors of helpers have in common: it binds a stage to a helper and its run's folders to that, and turns what cannot
 * start into an ending with a remark. How helpers are launched, and what they can give, is each executor's own.
 */
import { rmSync } from 'node:fs';
import { totalmem } from 'node:os';
import { UnstartableStage } from '../contract/errors.ts';
import type { Guard } from '../guard/guard.ts';
import type {
  Executor,
  ExecutorKind,
  OutputSink,
  StageExit,
  StageFiles,
  StagePreparation,
  StageProcess,
  StageSpec,
  StopReason,
} from '../contract/port.ts';
import { ControlGroups } from '../limits/control-groups.ts';
import { NO_SHELL_LIMITS, shellLimits, type ShellLimits, type StageLimits } from '../limits/stage-limits.ts';
import { exitOfStop, type Helper } from './helper.ts';
import { HelperPool, type Way } from './helper-pool.ts';
import { renderJob, type Job } from './job.ts';
import type { Isolation } from './launch.ts';
import { Leftovers } from './leftovers.ts';
import { OomCounter } from './oom.ts';
import { memoryOf, StageBounds } from './stage-bounds.ts';
import { isDash } from './own-shell.ts';
import { PreparedProcess, type Prepared } from './prepared-process.ts';
import { RenewedFiles } from './renewed-files.ts';
import { Scratch } from './scratch.ts';
import { viewOf, viewTable } from './view.ts';
import { newStageFolder } from '../system/memory.ts';

export interface HelperExecutorOptions {
  /** Every helper is held by it before a stage starts there; once it is gone nothing starts any more. */
  readonly guard?: Guard | undefined;
  /** Lists the processes to be killed by `killLeftovers` after a crash. */
  readonly leftoversFile?: string | undefined;
  /** Helpers kept idle, default 16. */
  readonly idleMax?: number | undefined;
  /** Of these, how many are kept when they have rested for long; default all. */
  readonly idleLasting?: number | undefined;
  /** For tests: how long that is. */
  readonly restMsMax?: number | undefined;
  /** Of these, how many of no key yet, default 0. */
  readonly spareCount?: number | undefined;
  /** What a stage may take; absent: what it can get. */
  readonly limits?: StageLimits | undefined;
  /** For tests: what bounds them; null for a machine without control groups. Default: what there is. */
  readonly groups?: ControlGroups | null | undefined;
  readonly warn?: ((message: string) => void) | undefined;
}

/** How an executor's helpers are started. */
export interface Launching {
  /** The best way first: the first that works is kept to. */
  readonly ways: (scratch: Scratch, limits: ShellLimits) => readonly Way[];
  /** Where a stage has to run (`Way.launch`). Throws UnstartableStage for what no helper can give. */
  readonly placeOf: (spec: StageSpec) => string;
  /** Whether a stage of no run sees none of the executor's small files. */
  readonly hidesScratch: boolean;
}

/** What a run may have in memory as files. */
const VIEW_LIMITS = { memoryFolderBytes: Math.max(64 * 1024 ** 2, Math.round(totalmem() / 8)) };
const IDLE_MAX = 16;
/** A burst of many keys is over by then. */
const REST_MS_MAX = 10 * 60_000;
const GRACE_MS = 10_000;
/** What shells answer for what they found and could not execute. */
const UNSTARTABLE_CODE = 126;

export abstract class HelperExecutor implements Executor {
  abstract readonly kind: ExecutorKind;
  readonly #scratch = new Scratch();
  readonly #oom = new OomCounter();
  readonly #pool: HelperPool;
  readonly #running = new Set<RunningProcess>();
  readonly #launching: Launching;
  readonly #limits: StageLimits | undefined;
  readonly #groups: ControlGroups | null;
  /** By what a stage bounds itself whose helper has no group, though the machine has some. */
  readonly #ungrouped: string;
  #closing: Promise<void> | null = null;

  constructor(options: HelperExecutorOptions, launching: Launching) {
    const { limits } = options;
    this.#launching = launching;
    this.#limits = limits;
    this.#groups = limits === undefined ? null : options.groups === undefined ? ControlGroups.find() : options.groups;
    const shell = limits === undefined ? NO_SHELL_LIMITS : shellLimits(limits, this.#groups === null);
    this.#ungrouped = limits === undefined || this.#groups === null ? '' : shellLimits(limits, true).own;
    const leftovers = this.#listOf(options.leftoversFile);
    if (options.guard !== undefined) {
      leftovers?.add([options.guard.identity]);
      // Held by nobody, a helper must not live on: the session is over (P15).
      void options.guard.gone.then(() => this.#pool.close());
    }
    this.#pool = new HelperPool({
      scratch: this.#scratch,
      guard: options.guard,
      leftovers,
      idleMax: options.idleMax ?? IDLE_MAX,
      idleLasting: options.idleLasting ?? options.idleMax ?? IDLE_MAX,
      restMsMax: options.restMsMax ?? REST_MS_MAX,
      spareCount: options.spareCount ?? 0,
      ways: launching.ways(this.#scratch, shell),
      groups: this.#groups,
      limits,
      warn: options.warn ?? ((message) => process.emitWarning(message)),
    });
  }

  /** A full disk takes no list: then nothing of this executor is left behind. */
  #listOf(file: string | undefined): Leftovers | undefined {
    try {
      return file === undefined ? undefined : new Leftovers(file);
    } catch (error) {
      this.#oom.close();
      this.#scratch.close();
      throw error;
    }
  }

  /** How stages are kept apart; may step down until the first helper is ready. */
  get isolation(): Isolation {
    return this.#pool.isolation;
  }

  abstract get canChangeUser(): boolean;

  /** For people: what bounds a stage here. */
  get limitsLine(): string {
    if (this.#limits === undefined) return 'a stage takes what it can get';
    const { memoryBytes, processes, diskBytes } = this.#limits;
    const by =
      this.#groups === null ? 'watching and by its own limits' : `control groups (version ${this.#groups.version})`;
    return (
      `a stage may take ${mebibytes(memoryBytes)} of memory and ${processes} processes, bounded by ${by}, ` +
      `and ${mebibytes(diskBytes)} of the disk, bounded by watching`
    );
  }

  get isIsolated(): boolean {
    return this.isolation !== 'group';
  }

  start(spec: StageSpec, sink: OutputSink): StageProcess {
    return this.#start(spec, sink);
  }

  prepare(spec: StageSpec): StagePreparation | undefined {
    const { user, run, files, renewedFiles, place } = spec;
    const isBound = this.#limits !== undefined || this.#launching.hidesScratch;
    if (!isDash || isBound || [user, run, files, renewedFiles, place].some((asked) => asked !== undefined))
      return undefined;
    try {
      return new PreparedProcess(spec, this.#pool, (sink, prepared) => this.#start(spec, sink, prepared));
    } catch (error) {
      // `start` says so in the stage's log.
      if (error instanceof UnstartableStage) return undefined;
      throw error;
    }
  }

  #start(spec: StageSpec, sink: OutputSink, prepared?: Prepared): StageProcess {
    const parts = {
      pool: this.#pool,
      scratch: this.#scratch,
      oom: this.#oom,
      launching: this.#launching,
      limits: this.#limits,
      ungrouped: this.#ungrouped,
      prepared,
    };
    const stage = new RunningProcess(spec, sink, parts);
    this.#running.add(stage);
    void stage.ended.then(() => this.#running.delete(stage));
    return stage;
  }

  prewarm(count: number): Promise<void> {
    return this.#pool.prewarm(count);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#pool.close();
    await Promise.all([...this.#running].map((stage) => stage.ended));
    this.#oom.close();
    this.#scratch.close();
  }
}

interface StageParts {
  readonly pool: HelperPool;
  readonly scratch: Scratch;
  readonly oom: OomCounter;
  readonly launching: Launching;
  readonly limits: StageLimits | undefined;
  readonly ungrouped: string;
  readonly prepared?: Prepared | undefined;
}

class RunningProcess implements StageProcess {
  readonly ended: Promise<StageExit>;
  startedAtMs: number | undefined;
  #helper: Helper | null = null;
  #stopped: StopReason | null = null;
  #onStopped: () => void = () => {};
  readonly #sink: OutputSink;
  readonly #renewed: RenewedFiles | undefined;

  constructor(spec: StageSpec, sink: OutputSink, parts: StageParts) {
    this.#sink = sink;
    this.#renewed = RenewedFiles.of(spec, newStageFolder);
    this.ended = this.#run(spec, sink, parts);
  }

  stop(reason: StopReason): void {
    this.#stopped ??= reason;
    this.#helper?.stop(reason);
    this.#onStopped();
  }

  replaceFile(variable: string, content: string): void {
    const why = this.#renewed?.replace(variable, content);
    if (why !== undefined) void this.#sink.write('system', Buffer.from(`${why}\n`));
  }

  /** Up to the helper's order without a turn of the event loop, where a helper idles. */
  async #run(spec: StageSpec, sink: OutputSink, parts: StageParts): Promise<StageExit> {
    const { pool, scratch, launching, prepared } = parts;
    let job: Job;
    let place: string;
    const written: string[] = [];
    try {
      place = launching.placeOf(spec);
      const folder = spec.run?.folder ?? (launching.hidesScratch ? spec.cwd : undefined);
      const write = (script: string): string => {
        const path = scratch.writeScript(script, spec.user, folder);
        written.push(path);
        return path;
      };
      job =
        prepared?.job ??
        renderJob({ ...spec, env: { ...spec.env, ...this.#renewed?.env } }, write, { isHelpers: true });
    } catch (error) {
      // Nobody else knows of them.
      for (const file of written) scratch.remove(file);
      return await unstartable(error, sink);
    }
    let helper: Helper | null = null;
    let bounds: StageBounds | null = null;
    const view = viewOf(spec.run);
    try {
      const acquired = prepared?.helper ?? pool.acquire({ key: spec.helperKey, place, view });
      helper = acquired instanceof Promise ? await this.#unlessStopped(acquired, pool) : acquired;
      if (helper === null) return exitOfStop(this.#stopped ?? 'cancelled');
      const { bases } = helper.launch;
      // What earlier stages have left in memory counts to the group: it goes before one that may take less than they.
      if (helper.group !== null && memoryOf(spec, parts.limits) < (helper.memoryBytes ?? 0)) helper.view = null;
      if (bases !== undefined && !helper.shows(view)) {
        await helper.bind(view, viewTable(bases, spec.run, VIEW_LIMITS));
        if (this.#stopped !== null) {
          pool.release(helper);
          return exitOfStop(this.#stopped);
        }
      }
      this.#renewed?.lay(helper.inMemory(this.#renewed.folder));
      this.#helper = helper;
      this.startedAtMs = performance.now();
      bounds = new StageBounds(helper, spec, parts);
      const times = { timeoutMs: spec.timeoutMs, graceMs: spec.graceMs ?? GRACE_MS };
      const isUngrouped = helper.group === null && parts.ungrouped !== '';
      const text = isUngrouped ? Buffer.concat([Buffer.from(`${parts.ungrouped}\n`), job.text]) : job.text;
      const exit = bounds.judge(await helper.run(text, times, sink, spec.user));
      this.#helper = null;
      for (const remark of bounds.remarks) await sink.write('system', Buffer.from(`${remark}\n`));
      this.#forgetFiles(spec.files, helper);
      pool.release(helper);
      return exit;
    } catch (error) {
      if (error instanceof UnstartableStage && helper !== null) {
        this.#forgetFiles(spec.files, helper);
        pool.release(helper);
        return await unstartable(error, sink);
      }
      // It may have a part of the job.
      helper?.kill();
      return { kind: 'lost', cause: error instanceof Error ? error.message : String(error) };
    } finally {
      bounds?.close();
      this.#renewed?.close();
      for (const file of job.files) scratch.remove(file);
    }
  }

  /** The next stage of this helper finds nothing of what this one was given. */
  #forgetFiles(files: StageFiles | undefined, helper: Helper): void {
    this.#renewed?.close();
    if (files === undefined && this.#renewed === undefined) return;
    // What the stage had as /dev/shm is mounted anew for the next one, also of the same run.
    if (helper.launch.bases !== undefined) helper.view = null;
    // Where stages share the machine's. A link in its place is removed, and not followed.
    else if (files !== undefined)
      try {
        rmSync(files.folder, { recursive: true, force: true });
      } catch {
        // The stage has shut something in it: what its owner leaves there goes at the next start of any.
      }
  }

  /** Null when it was stopped first; the helper then goes back to the pool by itself. */
  async #unlessStopped(acquired: Promise<Helper>, pool: HelperPool): Promise<Helper | null> {
    const stopped = new Promise<null>((resolve) => {
      this.#onStopped = () => resolve(null);
    });
    const helper = await Promise.race([acquired, stopped]);
    if (helper !== null && this.#stopped === null) return helper;
    acquired.then(
      (late) => pool.release(late),
      () => {},
    );
    return null;
  }
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1024 ** 2)} MiB`;
}

async function unstartable(error: unknown, sink: OutputSink): Promise<StageExit> {
  if (!(error instanceof UnstartableStage))
    return { kind: 'lost', cause: error instanceof Error ? error.message : String(error) };
  await sink.write('system', Buffer.from(`the stage cannot start: ${error.message}\n`));
  return { kind: 'exit', code: UNSTARTABLE_CODE };
}
