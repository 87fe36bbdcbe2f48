/**
 * One stage attempt from its grant to its result: folders, environment, process, log, outputs. It knows no leases and
 * no credits.
 */
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  BadOutputs,
  Chunker,
  readOutputs,
  type Executor,
  type StageExit,
  type StageFolders,
  type StageProcess,
  type StageSpec,
  type StopReason,
  type Workspaces,
} from '@penstock/executor';
import type { AttemptRef, Job, ResultRequest } from '@penstock/bus';
import type { StageReason } from '@penstock/run';
import type { Logger } from '@penstock/telemetry';
import type { AttemptLog } from './chunk-store.ts';
import { NotPrepared } from './errors.ts';
import { clearAfterStage, needsFetching, prepareStage, type Prepared, type Sources } from './preparation.ts';
import { stageEnvironment } from './stage-env.ts';

export interface AttemptParts {
  readonly executor: Executor;
  readonly workspaces: Workspaces;
  /** Where workspaces and packages come from. */
  readonly sources: Sources;
  readonly attemptLog: AttemptLog;
  readonly log: Logger;
  /** Whether the session it belongs to goes on. */
  readonly sessionLives: () => Promise<boolean>;
  readonly graceMs?: number | undefined;
}

/**
 * A stage that somebody killed is seldom the only one: a machine that goes down kills everything, in any order. What is
 * killed with its runner was lost, and is retried as such; a verdict sent in the last moment would say that it failed.
 */
const KILLED_WITH_OTHERS_MS = 250;

type Verdict = Pick<ResultRequest, 'status' | 'reason' | 'exitCode'>;

export class Attempt {
  readonly job: Job;
  readonly ref: AttemptRef;
  /** Resolves with the result, or null where the attempt was lost with its session: then it has none (P15). Never rejects. */
  readonly result: Promise<ResultRequest | null>;
  /** Resolves when no process of the attempt is left. */
  readonly processGone: Promise<void>;
  readonly #parts: AttemptParts;
  #process: StageProcess | null = null;
  /** Of what comes before the process: a fetch ends with its attempt. */
  readonly #preparing = new AbortController();
  #stopped: StopReason | null = null;
  #abandoned = false;
  #onProcessGone: () => void = () => {};

  constructor(job: Job, parts: AttemptParts) {
    this.job = job;
    this.ref = { runId: job.runId, stage: job.stage, attempt: job.attempt, session: job.session, credit: job.credit };
    this.#parts = parts;
    this.processGone = new Promise((done) => {
      this.#onProcessGone = done;
    });
    this.result = this.#execute()
      .catch((error: unknown) => {
        // A full disk, a folder that is not ours: the machinery failed, not the stage.
        parts.log.error({ err: error, ...this.ref }, 'a stage attempt could not be executed');
        return this.#abandoned ? null : { ...this.ref, ...lost, logBytes: 0 };
      })
      .finally(() => this.#onProcessGone());
  }

  stop(reason: StopReason): void {
    this.#stopped ??= reason;
    this.#preparing.abort();
    this.#process?.stop(reason);
  }

  /** The session is over: whatever still runs is being killed, and has no result. */
  abandon(): void {
    this.#abandoned = true;
    this.#preparing.abort();
  }

  async #execute(): Promise<ResultRequest | null> {
    const { job } = this;
    const { executor, workspaces, attemptLog } = this.#parts;
    const { stage, attempt } = job;
    const chunker = new Chunker({
      bytesMax: job.logBytesMax,
      emit: (chunk) => attemptLog.append({ stage, attempt, ...chunk }),
    });
    const begun = performance.now();
    const prepared = await this.#prepare(chunker);
    if ('status' in prepared) return this.#resultWithoutProcess(prepared, chunker);
    const timeoutMs = needsFetching(job)
      ? Math.max(1, Math.round(job.timeoutMs - (performance.now() - begun)))
      : job.timeoutMs;
    this.#process = executor.start(this.#specOf(prepared, timeoutMs), chunker);
    if (this.#stopped !== null) this.#process.stop(this.#stopped);
    const exit = await this.#process.ended;
    this.#onProcessGone();
    if (exit.kind === 'signal' && exit.signal === 'SIGKILL' && !exit.oom && this.#stopped === null)
      await delay(KILLED_WITH_OTHERS_MS);
    // The guard ends helpers before it tells that it has fired.
    if ((exit.kind === 'lost' || this.#abandoned) && (this.#abandoned || !(await this.#parts.sessionLives()))) {
      attemptLog.drop();
      return null;
    }
    const verdict = this.#verdictOf(exit, chunker);
    const published = this.#outputsOf(prepared.folders, verdict, chunker);
    const logBytes = await chunker.end();
    await Promise.all([clearAfterStage(prepared, workspaces), attemptLog.stored()]);
    return { ...this.ref, ...published, logBytes };
  }

  /** Or the verdict on a stage that comes to nothing. Fetching counts as the stage's time. */
  async #prepare(chunker: Chunker): Promise<Prepared | Verdict> {
    const { job } = this;
    let isLate = false;
    const timer = needsFetching(job)
      ? setTimeout(() => {
          isLate = true;
          this.#preparing.abort();
        }, job.timeoutMs)
      : undefined;
    try {
      return await prepareStage(job, this.#parts.workspaces, this.#parts.sources, this.#preparing.signal);
    } catch (error) {
      if (this.#stopped !== null) return this.#verdictOf({ kind: 'stopped', reason: this.#stopped }, chunker);
      if (isLate) return this.#verdictOf({ kind: 'timeout' }, chunker);
      if (!(error instanceof NotPrepared)) throw error;
      this.#parts.log.warn({ err: error, ...this.ref }, 'a stage could not be prepared');
      void chunker.remark(error.message);
      return failed('checkout');
    } finally {
      clearTimeout(timer);
    }
  }

  async #resultWithoutProcess(verdict: Verdict, chunker: Chunker): Promise<ResultRequest | null> {
    this.#onProcessGone();
    const { attemptLog, sessionLives } = this.#parts;
    if (this.#abandoned || !(await sessionLives())) {
      attemptLog.drop();
      return null;
    }
    const logBytes = await chunker.end();
    await attemptLog.stored();
    return { ...this.ref, ...verdict, logBytes };
  }

  #specOf({ folders, packageFolder }: Prepared, timeoutMs: number): StageSpec {
    const { job } = this;
    return {
      helperKey: job.key,
      commands: job.commands,
      env: stageEnvironment(job, folders, packageFolder, process.env),
      shell: job.shell,
      cwd:
        job.workdir === undefined || job.workdir === '' ? folders.workspace : resolve(folders.workspace, job.workdir),
      timeoutMs,
      graceMs: this.#parts.graceMs,
    };
  }

  #verdictOf(exit: StageExit, chunker: Chunker): Verdict {
    switch (exit.kind) {
      case 'exit':
        return exit.code === 0 ? { status: 'success', exitCode: 0 } : failed('exit', exit.code);
      case 'signal':
        if (exit.oom) void chunker.remark('the stage was killed: it ran out of memory');
        return failed(exit.oom ? 'oom' : 'signal', exit.code);
      case 'timeout':
        void chunker.remark(`the stage was stopped: it did not end within ${this.job.timeoutMs / 1000} s`);
        return failed('timeout');
      case 'stopped':
        return failed(exit.reason);
      case 'lost':
        void chunker.remark(`the stage was lost: ${exit.cause}`);
        return lost;
    }
  }

  /** Outputs that cannot be understood fail a stage: those after it would work with nothing. */
  #outputsOf(folders: StageFolders, verdict: Verdict, chunker: Chunker): Verdict & Pick<ResultRequest, 'outputs'> {
    try {
      const { outputs, warnings } = readOutputs(folders.outputFile, this.job.outputs);
      for (const warning of warnings) void chunker.remark(warning);
      return Object.keys(outputs).length === 0 ? verdict : { ...verdict, outputs };
    } catch (error) {
      if (!(error instanceof BadOutputs)) throw error;
      void chunker.remark(error.message);
      return verdict.status === 'success' ? failed('exit', 0) : verdict;
    }
  }
}

const lost: Verdict = { status: 'failed', reason: 'runner_lost' };

function failed(reason: StageReason, exitCode?: number): Verdict {
  return { status: 'failed', reason, ...(exitCode === undefined ? {} : { exitCode }) };
}
