/**
 * One stage attempt from its grant to its result: folders, environment, process, log, outputs. It knows no leases and
 * no credits.
 */
import type { Time } from '@penstock/async';
import {
  Chunker,
  failedBecause,
  judgeAttempt,
  limitsRemark,
  maskedOutputs,
  MaskFile,
  MaskingSink,
  secretsGiven,
  noSecrets,
  verdictOf,
  writeMasks,
  withLogins,
  type AttemptVerdict,
  type Executor,
  type StageExit,
  type StagePlace,
  type StageSecrets,
  type StageProcess,
  type StageSpec,
  type StageUser,
  type StopReason,
} from '@penstock/executor';
import type { AttemptRef, CloneSecret, IdTokens, Job, ResultRequest } from '@penstock/bus';
import type { Log } from '@penstock/telemetry/log';
import type { Meter } from '@penstock/telemetry/metrics';
import type { Tracer } from '@penstock/telemetry/traces';
import type { Workspaces } from '@penstock/executor';
import { ArtifactsFailed } from '@penstock/artifacts';
import type { LeftInside, LeftOfStage } from '../artifacts/left-inside.ts';
import type { StageArtifacts } from '../artifacts/stage-artifacts.ts';
import type { StageReports } from '../artifacts/stage-reports.ts';
import { restoreForAttempt, saveForAttempt, type CachesOfAttempt } from '../caches/attempt-caches.ts';
import type { StageCaches } from '../caches/stage-caches.ts';
import type { OutgoingLog } from '../report/chunk-store.ts';
import { isDiskFull } from '../report/disk.ts';
import { NotPrepared } from '../workspace/errors.ts';
import {
  clearAfterStage,
  needsFetching,
  prepareStage,
  type FilesMade,
  type Prepared,
  type Sources,
} from '../workspace/preparation.ts';
import type { SlipDesk } from '../session/slip-desk.ts';
import type { AttemptRecord, EarlierAttempt } from './attempt-records.ts';
import { withAdded } from './added-stages.ts';
import { AttemptTrace } from './attempt-trace.ts';
import { StageIdTokens } from './stage-id-tokens.ts';
import { cloneSecretOf, valuesOf } from './clone-secret.ts';
import { holdsSecrets, stageSecrets, type GivenToStage } from './stage-secrets.ts';
import { TokenFiles } from './token-files.ts';
import { keepLeavings, type KeptEnding } from './leavings.ts';
import { stageSpecOf } from './stage-spec.ts';

export interface AttemptParts {
  /** Undefined: none of this runner's gives what the stage asks for. */
  readonly executor: Executor | undefined;
  /** As the executor is asked for it: what the stage asks for, and what its run's trust demands. */
  readonly place: StagePlace | undefined;
  readonly workspaces: Pick<Workspaces, 'prepare' | 'finish' | 'contentsOf'>;
  /** Whom the stage runs as; absent: as the runner. Throws NotPrepared where there is nobody left. */
  readonly userOf?: ((key: string) => StageUser) | undefined;
  /** Where workspaces and packages come from. */
  readonly sources: Sources;
  /** Where what the stage leaves is kept. */
  readonly artifacts: Pick<StageArtifacts, 'keep'>;
  readonly leftInside: Pick<LeftInside, 'of' | 'clear'>;
  /** Where it is kept how its tests went. */
  readonly reports: Pick<StageReports, 'keep'>;
  /** What its stage adds to its run; absent: read from the file that it was given. */
  readonly adds?: typeof withAdded | undefined;
  /** What it finds of earlier runs, and leaves for later ones. */
  readonly caches: Pick<StageCaches, 'restore' | 'save'>;
  readonly outgoingLog: Pick<OutgoingLog, 'append' | 'stored' | 'drop'>;
  readonly time: Time;
  readonly log: Log;
  readonly meter: Meter;
  /** Absent: what happens here is no part of any trace. */
  readonly tracer?: Tracer | undefined;
  /** Called once where there is a result, as soon as it is known: before the broker has the log (P16). */
  readonly keep: (result: ResultRequest) => void;
  /** Whether the session it belongs to goes on. */
  readonly isSessionActive: () => Promise<boolean>;
  /** Where the secrets of its stage are asked for. */
  readonly slips: SlipDesk;
  readonly graceMs?: number | undefined;
  /** Of the runner; absent: read anew for each stage, which is dear. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** What the operator gives every stage. */
  readonly lent?: Readonly<Record<string, string>> | undefined;
  /** For what its executor is to find again; absent: its stage ends with this process. */
  readonly record?: AttemptRecord | undefined;
  /** An earlier process has begun it. */
  readonly past?: PastOfAttempt | undefined;
}

export interface PastOfAttempt extends Pick<
  EarlierAttempt,
  'prepared' | 'timeoutMs' | 'masked' | 'remarks' | 'notes' | 'output'
> {
  /** Resolves with false where it counts as lost already, or may: then its stage is ended. Never rejects. */
  readonly stands: Promise<boolean>;
}

/**
 * A stage that somebody killed is seldom the only one: a machine that goes down kills everything, in any order. What is
 * killed with its runner was lost, and is retried as such; a verdict sent in the last moment would say that it failed.
 */
const KILLED_WITH_OTHERS_MS = 250;
/** What shells answer for what they found and could not execute. */
const UNSTARTABLE_CODE = 126;

interface MaskedOutput {
  readonly maskFile: MaskFile;
  readonly output: MaskingSink;
}

type Ending = KeptEnding & Pick<ResultRequest, 'caches'>;

export class Attempt {
  readonly job: Job;
  readonly ref: AttemptRef;
  /**
   * Resolves with the result when the broker has all of the attempt's log; with null where the attempt was lost with its
   * session: then it has none (P15). Never rejects.
   */
  readonly result: Promise<ResultRequest | null>;
  /** Resolves when no process of the attempt is left. */
  readonly processGone: Promise<void>;
  readonly #parts: AttemptParts;
  readonly #grantedAt: number;
  readonly #trace: AttemptTrace;
  #process: StageProcess | null = null;
  /** Of what comes before the process: a fetch ends with its attempt. */
  readonly #preparing = new AbortController();
  #stopped: StopReason | null = null;
  #abandoned = false;
  #processGoneAt: number | undefined;
  #onProcessGone: () => void = () => {};
  #kept: ResultRequest | null = null;
  #secrets: StageSecrets = noSecrets();
  /** Where its files stay inside: what is brought out of them. */
  #left: LeftOfStage | undefined;
  #logins: GivenToStage['logins'] = new Map();
  #tokens: IdTokens | undefined;
  #idTokens: StageIdTokens | undefined;
  readonly #tokenFiles = new TokenFiles(() => this.#process);
  readonly #tokensSeen: string[] = [];
  /** What was told of its preparation. */
  readonly #remarks: string[] = [];

  constructor(job: Job, parts: AttemptParts) {
    this.job = job;
    this.ref = { runId: job.runId, stage: job.stage, attempt: job.attempt, session: job.session, credit: job.credit };
    this.#parts = parts;
    this.#grantedAt = parts.time.bootNow();
    this.#trace = new AttemptTrace(job, parts.tracer, parts.time);
    this.processGone = new Promise((done) => {
      this.#onProcessGone = () => {
        this.#processGoneAt ??= parts.time.bootNow();
        done();
      };
    });
    this.result = this.#execute()
      .catch((error: unknown) => {
        // A folder that is not ours, or the like: the machinery failed, not the stage.
        parts.log.error({ err: error, ...this.ref }, 'a stage attempt could not be executed');
        if (this.#kept !== null || this.#abandoned) return this.#kept;
        return this.#keep({ ...failedBecause('runner_lost'), logBytes: 0 });
      })
      .finally(() => {
        // Of a stage that could not be started, too.
        this.#idTokens?.stop();
        this.#onProcessGone();
      });
  }

  /** For how long none of its processes has existed, milliseconds; 0 while one may. */
  get goneForMs(): number {
    return this.#processGoneAt === undefined ? 0 : this.#parts.time.bootNow() - this.#processGoneAt;
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
    const { executor, outgoingLog, time } = this.#parts;
    const { stage, attempt } = job;
    const chunker = new Chunker({
      bytesMax: job.logBytesMax,
      now: () => time.wallNow(),
      after: (milliseconds, task) => time.after(milliseconds, task),
      emit: (chunk) => outgoingLog.append({ stage, attempt, ...chunk }),
    });
    const begun = time.bootNow();
    if (this.#parts.past !== undefined) return this.#takeUp(this.#parts.past, chunker);
    if (executor === undefined) return this.#resultWithoutProcess(this.#unplaceable(chunker), chunker);
    const lacking = await this.#lackingSecrets();
    if (lacking !== null) return this.#resultWithoutProcess(this.#withoutSecrets(lacking, chunker), chunker);
    const prepared = await this.#prepare(chunker);
    if ('status' in prepared) return this.#resultWithoutProcess(prepared, chunker);
    const timeoutMs = needsFetching(job)
      ? Math.max(1, Math.round(job.timeoutMs - (time.bootNow() - begun)))
      : job.timeoutMs;
    if (this.#tokens !== undefined) {
      this.#idTokens = this.#idTokensOf(chunker);
      this.#idTokens.begin(this.#tokens);
    }
    this.#remarkLimits(executor, chunker);
    this.#left = this.#leftOf(executor, prepared);
    const record = executor.resume === undefined ? undefined : this.#parts.record;
    const masked = [...this.#secrets.values, ...this.#tokensSeen];
    record?.begin({ job, prepared, timeoutMs, masked, remarks: this.#remarks });
    record?.askForGap(() => chunker.truncated);
    const { maskFile, output } = this.#masking(prepared, chunker);
    const process = executor.start(this.#specOf(prepared, timeoutMs), output, record);
    return this.#untilEnded(process, prepared, chunker, { maskFile, output });
  }

  /** What was said of the output before is said again: the log is the same, and what the broker has of it is not told twice (P21). */
  async #takeUp(
    { prepared, timeoutMs, masked = [], remarks = [], notes, output, stands }: PastOfAttempt,
    chunker: Chunker,
  ): Promise<ResultRequest | null> {
    const { executor, record, outgoingLog, log } = this.#parts;
    const isHeld = await stands;
    // What it was to begin with of secrets is nowhere any more.
    const isGiven = !holdsSecrets(this.job) || executor?.hasBegun?.(notes) === true;
    if (executor?.resume === undefined || record === undefined || !isHeld || !isGiven || this.#abandoned) {
      log.warn(
        { ...this.ref },
        'a stage of before the restart cannot be taken up again: it is ended, and counts as lost',
      );
      await executor?.discard?.(notes);
      outgoingLog.drop();
      record?.remove();
      return null;
    }
    log.info({ ...this.ref }, 'a stage of before the restart is taken up again');
    for (const remark of remarks) void chunker.remark(remark);
    this.#remarkLimits(executor, chunker);
    this.#secrets = await secretsGiven(masked);
    this.#left = this.#leftOf(executor, prepared);
    // As it was masked then: from where each value was known.
    writeMasks(prepared.maskFile, new Uint8Array());
    const { maskFile, output: sink } = this.#masking(prepared, chunker);
    for (const { stream, bytes } of output) {
      if (stream === 'masks') {
        writeMasks(prepared.maskFile, bytes);
        // Output that is in another file of the record comes when others stand there in its place.
        maskFile.refresh();
      } else await sink.write(stream, bytes);
    }
    record.askForGap(() => chunker.truncated);
    if (this.job.idTokens !== undefined) this.#idTokens = this.#idTokensOf(chunker);
    const process = executor.resume(this.#specOf(prepared, timeoutMs), sink, record, notes);
    this.#idTokens?.takeUp();
    return this.#untilEnded(process, prepared, chunker, { maskFile, output: sink });
  }

  #leftOf({ filesStayInside }: Executor, { folders, caches }: Prepared): LeftOfStage | undefined {
    return filesStayInside === true ? this.#parts.leftInside.of(this.job, folders, caches) : undefined;
  }

  #remarkLimits({ kind }: Executor, chunker: Chunker): void {
    const remark = limitsRemark(kind, this.job.place, true);
    if (remark !== undefined) void chunker.remark(remark);
  }

  /** Secrets, and what the stage says itself, are masked before a byte of its output goes anywhere. */
  #masking({ maskFile: path }: Prepared, chunker: Chunker): MaskedOutput {
    const { mask } = this.#secrets;
    const maskFile = new MaskFile(path, mask, (text) => void chunker.remark(text));
    return { maskFile, output: new MaskingSink(chunker, mask, () => maskFile.refresh()) };
  }

  async #untilEnded(
    process: StageProcess,
    prepared: Prepared,
    chunker: Chunker,
    { maskFile, output }: MaskedOutput,
  ): Promise<ResultRequest | null> {
    const { job } = this;
    const { workspaces, outgoingLog, record, time } = this.#parts;
    this.#process = process;
    this.#trace.begun(this.#parts.past !== undefined);
    if (this.#parts.past === undefined) {
      this.#parts.meter.observe('penstock_stage_start_seconds', {}, (time.bootNow() - this.#grantedAt) / 1_000);
      this.#parts.log.debug({ ...this.ref }, 'a stage has begun');
    }
    if (this.#stopped !== null) process.stop(this.#stopped);
    const exit = await process.ended;
    this.#idTokens?.stop();
    this.#onProcessGone();
    this.#trace.ended(exit.kind === 'exit' ? exit.code : undefined);
    maskFile.refresh();
    // What is left of it.
    output.finish();
    if (exit.kind === 'signal' && exit.signal === 'SIGKILL' && !exit.oom && this.#stopped === null)
      await time.pause(KILLED_WITH_OTHERS_MS);
    // The guard ends helpers before it tells that it has fired.
    if (!isReported(exit) && (exit.kind === 'lost' || this.#abandoned)) {
      if (this.#abandoned || !(await this.#parts.isSessionActive())) {
        outgoingLog.drop();
        record?.remove();
        return null;
      }
    }
    const { mask } = this.#secrets;
    const remark = (text: string): void => void chunker.remark(mask.text(text));
    let hasOutputs = true;
    const judged = judgeAttempt(exit, {
      timeoutMs: job.timeoutMs,
      outputFile: prepared.folders.outputFile,
      declared: job.outputs,
      onNoFile: () => (hasOutputs = false),
      remark,
    });
    const outputs = maskedOutputs(judged.outputs, mask);
    const adding = { job, stagesFile: prepared.stagesFile, mask: (text: string) => mask.text(text), remark };
    const { added, ...verdict } = await (this.#parts.adds ?? withAdded)(
      outputs === undefined ? judged : { ...judged, outputs },
      adding,
    );
    const { kept, cached } = this.#left ?? {};
    const { leavingFaults } = process;
    const ending = await this.#keepLeft(verdict, prepared, leavingFaults?.get(kept?.into ?? ''), chunker);
    if (ending === null) {
      outgoingLog.drop();
      record?.remove();
      return null;
    }
    if (ending.artifacts !== undefined && !prepared.folders.fresh)
      workspaces.contentsOf(job.runId).laidOut.set(ending.artifacts.manifest, Promise.resolve());
    const caches =
      ending.status === 'success'
        ? await saveForAttempt(this.#caching(chunker), prepared, cached, leavingFaults)
        : undefined;
    const result = this.#keep({
      ...ending,
      ...(caches === undefined ? {} : { caches }),
      ...(added === undefined || ending.status !== 'success' ? {} : { added }),
      logBytes: chunker.finish(),
    });
    await Promise.all([
      this.#clear(prepared, workspaces, { masks: maskFile.isThere, outputs: hasOutputs }),
      outgoingLog.stored(),
    ]);
    this.#tellEnd(result);
    return result;
  }

  /** The labels of a stage ask for what it needs: its scheduler and this runner do not mean the same by them. */
  #unplaceable(chunker: Chunker): AttemptVerdict {
    void chunker.remark('the stage cannot start: its runner has no executor that gives what it asks for');
    return failedBecause('exit', UNSTARTABLE_CODE);
  }

  /** Of a stage that ended by itself. Null: its session is over, and it was lost. */
  async #keepLeft(
    verdict: AttemptVerdict,
    prepared: Prepared,
    fault: string | undefined,
    chunker: Chunker,
  ): Promise<KeptEnding | null> {
    const { job, ref } = this;
    const { artifacts, reports, log } = this.#parts;
    if (job.artifacts === undefined && job.reports === undefined) return verdict;
    const left = {
      job,
      ref,
      folder: this.#left?.kept?.into ?? prepared.folders.workspace,
      notTaken: this.#left?.kept?.notTaken()[0],
      fault,
      user: this.#parts.userOf?.(job.key),
      verdict,
      signal: this.#preparing.signal,
      remark: (text: string) => void chunker.remark(this.#secrets.mask.text(text)),
      mask: (text: string) => this.#secrets.mask.text(text),
    };
    return keepLeavings(left, { artifacts, reports, log }, () => this.#endingOf(chunker));
  }

  /** What becomes of an attempt that is being ended while its files are kept; undefined: it is not. */
  #endingOf(chunker: Chunker): AttemptVerdict | null | undefined {
    if (this.#stopped !== null) return this.#verdictOf({ kind: 'stopped', reason: this.#stopped }, chunker);
    return this.#abandoned ? null : undefined;
  }

  #caching(chunker: Chunker): CachesOfAttempt {
    const { caches, userOf } = this.#parts;
    return {
      caches,
      job: this.job,
      user: userOf?.(this.job.key),
      signal: this.#preparing.signal,
      remark: (text) => void chunker.remark(this.#secrets.mask.text(text)),
    };
  }

  #keep(ending: Ending & { readonly logBytes: number }): ResultRequest {
    const result = { ...this.ref, ...ending };
    this.#parts.meter.add('penstock_log_bytes_total', {}, ending.logBytes);
    this.#kept = result;
    this.#parts.keep(result);
    this.#parts.record?.remove();
    return result;
  }

  #tellEnd({ status, logBytes }: ResultRequest): void {
    this.#parts.log.debug({ ...this.ref, status, logBytes }, 'a stage has ended, and the broker has its log');
  }

  /** Null: it has all that it names. Otherwise a line for each that it lacks. */
  async #lackingSecrets(): Promise<readonly string[] | null> {
    const { slips, time } = this.#parts;
    try {
      const found = await stageSecrets(this.job, slips, () => time.bootNow(), this.#preparing.signal);
      if ('lacking' in found) return found.lacking;
      this.#secrets = found.secrets;
      this.#logins = found.logins;
      this.#tokens = found.idTokens;
      return null;
    } catch (error) {
      // It is being stopped; the verdict says so.
      if (this.#preparing.signal.aborted) return [];
      throw error;
    }
  }

  /** Of its checkout alone: the stage is given nothing of it, and would not print it if it came by it otherwise. */
  async #cloneSecret(): Promise<CloneSecret | undefined> {
    const { slips, time } = this.#parts;
    const secret = await cloneSecretOf(this.job, slips, () => time.bootNow(), this.#preparing.signal);
    if (secret !== undefined) this.#secrets.mask.add(valuesOf(secret));
    return secret;
  }

  #idTokensOf(chunker: Chunker): StageIdTokens {
    const { job } = this;
    const { executor, slips, time, record } = this.#parts;
    const { mask } = this.#secrets;
    return new StageIdTokens({
      ...{ job, time, desk: slips, place: this.#tokenFiles },
      onTokens: (tokens) => {
        mask.add(tokens);
        this.#tokensSeen.push(...tokens);
        record?.mask(tokens);
      },
      remark: (text) => {
        const remark = mask.text(text);
        // Whoever takes the attempt up says it again, at its place.
        if (executor?.resume !== undefined) record?.keep({}, { stream: 'system', bytes: Buffer.from(`${remark}\n`) });
        void chunker.remark(remark);
      },
    });
  }

  #withoutSecrets(lacking: readonly string[], chunker: Chunker): AttemptVerdict {
    if (this.#stopped !== null) return this.#verdictOf({ kind: 'stopped', reason: this.#stopped }, chunker);
    for (const line of lacking) void chunker.remark(line);
    return failedBecause('secret');
  }

  /** What the stage has left costs it nothing any more. */
  async #clear(prepared: Prepared, workspaces: AttemptParts['workspaces'], made: FilesMade): Promise<void> {
    try {
      await this.#idTokens?.end();
      await clearAfterStage(prepared, workspaces, made);
      if (this.#left !== undefined) await this.#parts.leftInside.clear(this.#left);
    } catch (error) {
      this.#parts.log.warn({ err: error, ...this.ref }, 'the folders of a stage attempt could not be removed');
    }
  }

  /** Or the verdict on a stage that comes to nothing. Fetching counts as the stage's time. */
  async #prepare(chunker: Chunker): Promise<Prepared | AttemptVerdict> {
    const { job } = this;
    const { workspaces, sources, userOf, time } = this.#parts;
    let isLate = false;
    const callOff = needsFetching(job)
      ? time.after(job.timeoutMs, () => {
          isLate = true;
          this.#preparing.abort();
        })
      : undefined;
    try {
      const inside = this.#parts.executor?.filesStayInside === true;
      const prepared = await prepareStage(job, workspaces, sources, this.#preparing.signal, {
        user: userOf?.(job.key),
        filesStayInside: inside,
        cloneSecret: () => this.#cloneSecret(),
      });
      const caching = this.#caching(chunker);
      const remark = (text: string): void => {
        this.#remarks.push(this.#secrets.mask.text(text));
        caching.remark(text);
      };
      return await restoreForAttempt({ ...caching, remark }, prepared, inside);
    } catch (error) {
      if (this.#stopped !== null) return this.#verdictOf({ kind: 'stopped', reason: this.#stopped }, chunker);
      if (isLate) return this.#verdictOf({ kind: 'timeout' }, chunker);
      // Whatever is said of it: it has no result.
      if (this.#abandoned) return failedBecause('runner_lost');
      if (error instanceof ArtifactsFailed) {
        void chunker.remark(error.message);
        return failedBecause(error.reason);
      }
      const why = reasonOf(error);
      if (why === undefined) throw error;
      // What is the stage's own fault has no trace that would tell anybody more than its log.
      const isOfStage = error instanceof NotPrepared && error.cause === undefined;
      this.#parts.log.warn({ ...(isOfStage ? { why } : { err: error }), ...this.ref }, 'a stage could not be prepared');
      void chunker.remark(why);
      return failedBecause('checkout');
    } finally {
      callOff?.();
    }
  }

  async #resultWithoutProcess(verdict: AttemptVerdict, chunker: Chunker): Promise<ResultRequest | null> {
    this.#onProcessGone();
    const { outgoingLog, isSessionActive } = this.#parts;
    if (this.#abandoned || !(await isSessionActive())) {
      outgoingLog.drop();
      return null;
    }
    const result = this.#keep({ ...verdict, logBytes: chunker.finish() });
    await outgoingLog.stored();
    this.#tellEnd(result);
    return result;
  }

  #specOf(prepared: Prepared, timeoutMs: number): StageSpec {
    const { executor, environment = process.env, lent, userOf, place, graceMs } = this.#parts;
    return stageSpecOf({
      job: this.job,
      prepared,
      timeoutMs,
      graceMs,
      user: userOf?.(this.job.key),
      environment,
      sharesPrograms: !hasImages(executor),
      lent,
      traced: this.#trace.environment,
      secrets: this.#secrets,
      place: withLogins(place, this.#logins),
      renewedFiles: this.#tokenFiles.files,
      leavings: this.#left?.all,
    });
  }

  /** On an attempt that has come to no process. */
  #verdictOf(exit: StageExit, chunker: Chunker): AttemptVerdict {
    return verdictOf(exit, { timeoutMs: this.job.timeoutMs, remark: (text) => void chunker.remark(text) });
  }
}

function hasImages(executor: Executor | undefined): boolean {
  return executor?.kind === 'container' || executor?.kind === 'kubernetes';
}

/** The helper said how its stage ended (P16). What is killed, or was being stopped, may have been ended by the guard. */
function isReported(exit: StageExit): boolean {
  return exit.kind === 'exit' || (exit.kind === 'signal' && exit.signal !== 'SIGKILL');
}

/** For the log of a stage that could not be prepared. Undefined: it was no fault of what the stage asks for. */
function reasonOf(error: unknown): string | undefined {
  if (isDiskFull(error)) return 'the stage could not be prepared: the disk of its runner is full';
  return error instanceof NotPrepared ? error.message : undefined;
}
