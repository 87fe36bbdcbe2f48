/**
 * The process executor: stages as processes of this machine, each alone in a PID and mount namespace where those are
 * to be had. It binds a stage to a helper, and turns what cannot start into an ending with a remark.
 */
import { UnstartableStage } from '../contract/errors.ts';
import type { Guard } from '../guard/guard.ts';
import type { Executor, OutputSink, StageExit, StageProcess, StageSpec, StopReason } from '../contract/port.ts';
import { exitOfStop, type Helper } from './helper.ts';
import { HelperPool } from './helper-pool.ts';
import { renderJob, type Job } from './job.ts';
import type { CoveredFolder, Isolation } from './launch.ts';
import { Leftovers } from './leftovers.ts';
import { OomCounter } from './oom.ts';
import { Scratch } from './scratch.ts';

export interface ProcessExecutorOptions {
  /** Every helper is held by it before a stage starts there; once it is gone nothing starts any more. */
  readonly guard?: Guard | undefined;
  /** Looks empty to stages: the owner's data. `keep` in it, the workspaces, stays visible. */
  readonly covered?: CoveredFolder | undefined;
  /** Lists the processes to be killed by `killLeftovers` after a crash. */
  readonly leftoversFile?: string | undefined;
  /** Helpers kept idle, default 16. */
  readonly idleMax?: number | undefined;
  /** Of these, how many of no key yet, default 0. */
  readonly spareCount?: number | undefined;
  /** For tests: the ways to isolate that are tried, in order. */
  readonly isolations?: readonly Isolation[] | undefined;
  readonly warn?: ((message: string) => void) | undefined;
}

const IDLE_MAX = 16;
const GRACE_MS = 10_000;
/** What shells answer for what they found and could not execute. */
const UNSTARTABLE_CODE = 126;

export class ProcessExecutor implements Executor {
  readonly kind = 'process';
  readonly #scratch = new Scratch();
  readonly #oom = new OomCounter();
  readonly #pool: HelperPool;
  readonly #running = new Set<RunningProcess>();
  #closing: Promise<void> | null = null;

  constructor(options: ProcessExecutorOptions = {}) {
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
      covered: options.covered,
      idleMax: options.idleMax ?? IDLE_MAX,
      spareCount: options.spareCount ?? 0,
      isolations: options.isolations,
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

  get canChangeUser(): boolean {
    return this.isolation === 'namespace';
  }

  get isIsolated(): boolean {
    return this.isolation !== 'group';
  }

  start(spec: StageSpec, sink: OutputSink): StageProcess {
    const stage = new RunningProcess(spec, sink, { pool: this.#pool, scratch: this.#scratch, oom: this.#oom });
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

class RunningProcess implements StageProcess {
  readonly ended: Promise<StageExit>;
  startedAtMs: number | undefined;
  #helper: Helper | null = null;
  #stopped: StopReason | null = null;
  #onStopped: () => void = () => {};

  constructor(spec: StageSpec, sink: OutputSink, parts: { pool: HelperPool; scratch: Scratch; oom: OomCounter }) {
    this.ended = this.#run(spec, sink, parts);
  }

  stop(reason: StopReason): void {
    this.#stopped ??= reason;
    this.#helper?.stop(reason);
    this.#onStopped();
  }

  /** Up to the helper's order without a turn of the event loop, where a helper idles. */
  async #run(
    spec: StageSpec,
    sink: OutputSink,
    { pool, scratch, oom }: { pool: HelperPool; scratch: Scratch; oom: OomCounter },
  ): Promise<StageExit> {
    let job: Job;
    try {
      job = renderJob(spec, (script) => scratch.writeScript(script, spec.user));
    } catch (error) {
      return await unstartable(error, sink);
    }
    let helper: Helper | null = null;
    try {
      const acquired = pool.acquire(spec.helperKey);
      helper = acquired instanceof Promise ? await this.#unlessStopped(acquired, pool) : acquired;
      if (helper === null) return exitOfStop(this.#stopped ?? 'cancelled');
      this.#helper = helper;
      this.startedAtMs = performance.now();
      const oomKills = oom.read();
      const times = { timeoutMs: spec.timeoutMs, graceMs: spec.graceMs ?? GRACE_MS };
      const exit = await helper.run(job.text, times, sink, spec.user);
      this.#helper = null;
      pool.release(helper);
      return exit.kind === 'signal' && exit.signal === 'SIGKILL' ? { ...exit, oom: oom.read() !== oomKills } : exit;
    } catch (error) {
      // It may have a part of the job.
      helper?.kill();
      return { kind: 'lost', cause: error instanceof Error ? error.message : String(error) };
    } finally {
      for (const file of job.files) scratch.remove(file);
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

async function unstartable(error: unknown, sink: OutputSink): Promise<StageExit> {
  if (!(error instanceof UnstartableStage))
    return { kind: 'lost', cause: error instanceof Error ? error.message : String(error) };
  await sink.write('system', Buffer.from(`the stage cannot start: ${error.message}\n`));
  return { kind: 'exit', code: UNSTARTABLE_CODE };
}
