/**
 * A run on this machine: the same machine that decides a server's runs, and the same executors, with nothing between
 * them. It owns the run's state, its slots and its timers, and no output: that goes to the reporter.
 *
 * LOCALRUN-1. Events are reported in the order in which they were decided, before their effects are carried out; a stage's lines
 *    lie between its `stage_started` and what ends the attempt; no event is reported after the run's last.
 * LOCALRUN-2. At most `slots` attempts live at a time.
 * LOCALRUN-3. `settled` resolves when the run has ended and no process of it is left. One that was prepared and never started (AHEAD-1) has
 *    run nothing of it; the executors end it when they are closed, at the latest.
 */
import { dirname } from 'node:path';
import { performance } from 'node:perf_hooks';
import {
  failedBecause,
  imageLogins,
  judgeAttempt,
  limitsRemark,
  maskedOutputs,
  MaskFile,
  MaskingSink,
  secretsOf,
  stageEnvironment,
  type StageProcess,
  type StageSpec,
  giveTree,
  withLogins,
} from '@penstock/executor';
import { systemReason } from '@penstock/errors';
import { imageSecretsOf, type PipelineDefinition } from '@penstock/pipeline';
import {
  endsEventStream,
  gateViewOf,
  newRun,
  newRunId,
  planOf,
  publicEventsOf,
  workOf,
  type ResultCommand,
  type RunCommand,
  type RunEffect,
  type RunEvent,
  type RunId,
  type RunState,
  type StageText,
  type StageWork,
} from '@penstock/run';
import { RunActor } from '@penstock/run/machine';
import { WorkspaceProblem } from '../process/errors.ts';
import type { Reporter } from '../output/reporter.ts';
import { withoutMachine } from './inherited-environment.ts';
import type { LocalExecutors } from './local-executors.ts';
import type { AskGate } from './gate-prompt.ts';
import { AttemptOutput } from './attempt-output.ts';
import { LocalArtifacts, type KeptVerdict } from './local-artifacts.ts';
import { localAdded } from './local-added.ts';
import type { LocalCaches } from './local-caches.ts';
import { localReport } from './local-reports.ts';
import { likelyNext, StagesAhead, type Ahead, type PlannedStart } from './stages-ahead.ts';
import { workdirIn, type LocalWorkspace } from './local-workspace.ts';

const KEY = 'local';
/** setTimeout takes no more; a wake-up that comes early does nothing but ask for the next. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export interface LocalRunOptions {
  readonly id: RunId;
  readonly definition: PipelineDefinition;
  readonly yaml: string;
  /** A value for every input of the definition. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly workspace: LocalWorkspace;
  readonly executors: Pick<LocalExecutors, 'choose' | 'userIn' | 'lacking'>;
  readonly reporter: Reporter;
  /** Values by the names of secrets. */
  readonly secrets: ReadonlyMap<string, string>;
  /** What stages leave for later runs. */
  readonly caches: LocalCaches;
  readonly slots: number;
  readonly inheritedEnv: Readonly<Record<string, string>>;
  /** The folders of extensions' files by the hash of their package; there is one for every stage that comes from an extension. */
  readonly extensionFolders: ReadonlyMap<string, string>;
  /** Whether `stage_completed` carries the stage's text. */
  readonly keepText: boolean;
  /** What is decided at a stage that waits for approval. */
  readonly askGate: AskGate;
}

interface Attempt {
  readonly attempt: number;
  readonly output: AttemptOutput;
  readonly preparation: AbortController;
  process: StageProcess | undefined;
  stopping: 'cancelled' | 'timeout' | undefined;
}

export function localRunId(): RunId {
  // It keeps nobody out, and node:crypto takes as long to load as a short stage runs.
  const random = Uint8Array.from({ length: 10 }, () => Math.random() * 256);
  return newRunId({ now: Date.now(), key: KEY, random });
}

export class LocalRun {
  readonly settled: Promise<RunState>;
  readonly #options: LocalRunOptions;
  readonly #actor: RunActor;
  readonly #artifacts: LocalArtifacts;
  readonly #attempts = new Map<string, Attempt>();
  /** Stages that can be granted, from `#readyFrom` on. */
  readonly #ready: string[] = [];
  #readyFrom = 0;
  #credit = 0;
  readonly #ahead: StagesAhead;
  /** How many processes of stages live. */
  #busy = 0;
  #isPumping = false;
  #hasEnded = false;
  /** Nobody is asked anything about the run any more. */
  readonly #over = new AbortController();
  #lastAt = 0;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;
  #settle: (run: RunState) => void = () => {};
  #fail: (error: unknown) => void = () => {};

  constructor(options: LocalRunOptions) {
    this.#options = options;
    const { definition, yaml, id, inputs } = options;
    this.#artifacts = new LocalArtifacts(options.workspace.folder, id);
    this.#ahead = new StagesAhead({
      slots: options.slots,
      plan: (stage) => this.#plannedStart(stage),
      prepare: (spec) => options.executors.choose(undefined)?.prepare?.(spec),
    });
    const at = this.#now();
    const created = {
      type: 'run_created',
      at,
      tenant: KEY,
      key: KEY,
      pipelineName: definition.name,
      yaml,
      priority: 0,
      origin: { kind: 'local' },
      ...(definition.inputs === undefined ? {} : { inputs }),
    } as const;
    // Nobody else takes the stages of this run: waiting for a slot is no fault.
    this.#actor = new RunActor({
      run: newRun(id, created, planOf(definition)),
      settings: { queueTimeoutMs: Infinity },
    });
    this.settled = new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#fail = reject;
    });
  }

  get id(): string {
    return this.#actor.run.id;
  }

  start(): void {
    this.#tell({ type: 'start', at: this.#now() });
  }

  /** SIGTERM to everything that runs, SIGKILL after the grace; nothing starts any more. */
  cancel(): void {
    this.#over.abort();
    this.#ahead.close();
    this.#tell({ type: 'cancel', at: this.#now() });
    for (const attempt of this.#attempts.values()) attempt.preparation.abort();
  }

  #tell(command: RunCommand): void {
    try {
      const decided = this.#actor.tell(command);
      if (decided !== undefined) {
        for (const event of decided.events) {
          this.#report(event);
          if (event.type === 'gates_queued') for (const stage of event.stages) this.#ask(stage);
        }
        for (const effect of decided.effects) this.#carryOut(effect);
      }
      this.#pump();
    } catch (error) {
      // A fault of ours: there is no state left to go on with.
      clearTimeout(this.#timer);
      this.#fail(error);
    }
  }

  /** Whoever sits here stands for all whom the file names. */
  #ask(stage: string): void {
    const { run, plan } = this.#actor;
    const index = plan.indexOf.get(stage) ?? -1;
    const { quorum = 1, message } = gateViewOf(run, plan, index) ?? {};
    const answered = this.#options.askGate(stage, message, this.#over.signal).then((given) => {
      for (let person = 1; given !== undefined && person <= quorum; person++)
        this.#tell({ type: 'decide-gate', at: this.#now(), stage, person: `${KEY}/${person}`, by: KEY, ...given });
    });
    answered.catch((error: unknown) => this.#fail(error));
  }

  #report(event: RunEvent): void {
    if (this.#hasEnded) return;
    for (const emitted of publicEventsOf(event, () => this.#textOf(event))) {
      this.#hasEnded = endsEventStream(emitted);
      this.#options.reporter.event(emitted);
    }
  }

  #textOf(event: RunEvent): StageText {
    const attempt = 'stage' in event ? this.#attempts.get(event.stage) : undefined;
    return attempt?.output.text() ?? { text: '', truncated: false };
  }

  #carryOut(effect: RunEffect): void {
    switch (effect.type) {
      case 'offer-stages':
        for (const stage of effect.stages) this.#ready.push(stage);
        return;
      case 'send-grant':
        void this.#execute(effect.stage, effect.attempt).catch((error: unknown) => this.#fail(error));
        return;
      case 'stop-attempt':
        this.#stop(effect.stage, effect.attempt, effect.reason);
        return;
      case 'wake-at':
        this.#wakeAt(effect.at);
        return;
      case 'rest':
        return;
      case 'want-place':
        // There is no other run to wait for.
        this.#tell({ type: 'admit', at: this.#now() });
        return;
      case 'settle':
        clearTimeout(this.#timer);
        this.#over.abort();
        this.#ahead.close();
        this.#settle(this.#actor.run);
        return;
    }
  }

  /** Fills the free slots. A grant leads back here, so the loop is entered once. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (this.#attempts.size < this.#options.slots && this.#readyFrom < this.#ready.length) {
        const stage = this.#ready[this.#readyFrom++];
        if (stage === undefined || this.#hasEnded) continue;
        this.#credit += 1;
        this.#tell({ type: 'grant', at: this.#now(), stage, runner: KEY, session: this.id, credit: this.#credit });
      }
    } finally {
      this.#isPumping = false;
    }
  }

  #stop(stage: string, number: number, reason: 'cancelled' | 'timeout'): void {
    const attempt = this.#attempts.get(stage);
    if (attempt?.attempt !== number) return;
    attempt.stopping = reason;
    attempt.process?.stop(reason);
    attempt.preparation.abort();
  }

  async #execute(stage: string, number: number): Promise<void> {
    const { reporter, keepText } = this.#options;
    const output = new AttemptOutput(stage, reporter, { keepText });
    const attempt: Attempt = {
      attempt: number,
      output,
      preparation: new AbortController(),
      process: undefined,
      stopping: undefined,
    };
    this.#attempts.set(stage, attempt);
    const result = await this.#run(stage, attempt, workOf(this.#actor.run, this.#actor.plan, stage));
    await output.end();
    const about = { at: this.#now(), stage, attempt: number };
    this.#tell(result.type === 'lose' ? { ...about, ...result } : { ...about, ...result, logBytes: output.bytes });
    // The text was needed until here; the slot is free from here on.
    this.#attempts.delete(stage);
    this.#pump();
  }

  async #run(stage: string, attempt: Attempt, work: StageWork): Promise<AttemptResult> {
    const { workspace, executors, inheritedEnv, extensionFolders, caches, secrets: values } = this.#options;
    const { output } = attempt;
    let copy: string | undefined;
    let ahead: Ahead | undefined;
    try {
      const ofImages = imageSecretsOf(work.place);
      const lacking = [...(work.secrets ?? []).map(({ name }) => name), ...ofImages].filter(
        (name) => !values.has(name),
      );
      if (lacking.length > 0) {
        for (const name of new Set(lacking))
          output.remark(`the stage cannot start: the secret ${name} is given by neither --secret nor --secret-file`);
        return resultOf(failedBecause('secret'));
      }
      if (work.idTokens !== undefined) {
        output.remark(
          'the stage cannot start: id tokens are given by a server alone, which others know as their issuer',
        );
        return resultOf(failedBecause('secret'));
      }
      const { env: secretEnv, files, mask } = await secretsOf(work.secrets ?? [], values);
      const { logins, lacking: wrong } = imageLogins(ofImages, values);
      for (const line of wrong) output.remark(`the stage cannot start: ${line}`);
      if (wrong.length > 0) return resultOf(failedBecause('secret'));
      mask.add([...logins.values()].map(({ password }) => password));
      if (work.workspace === 'fresh') copy = await workspace.fresh(attempt.preparation.signal);
      const inherited = work.inherits?.map(({ stage: name }) => name) ?? [];
      if (copy !== undefined) await this.#artifacts.layOut(inherited, copy);
      else if (inherited.length > 0) await this.#artifacts.layOutMissing(inherited);
      const root = copy ?? workspace.folder;
      const cwd = workdirIn(root, work.workdir);
      ahead = this.#ahead.take(stage, attempt.attempt);
      const outputFile = ahead?.outputFile ?? workspace.outputFile(work.outputs.length > 0);
      const { plan } = this.#actor;
      const extensionFolder = extensionFolders.get(
        plan.stages[plan.indexOf.get(stage) ?? -1]?.definition.extension?.hash ?? '',
      );
      const place = {
        ...this.#placeOf(stage, attempt.attempt, { workspace: root, outputFile }),
        ...(work.generates === undefined ? {} : { stagesFile: `${outputFile}-stages` }),
        extensionFolder,
      };
      const executor = executors.choose(work.place);
      if (executor === undefined) throw new WorkspaceProblem('this machine has nothing that gives what it asks for');
      const remark = limitsRemark(executor.kind, work.place, false);
      if (remark !== undefined) output.remark(remark);
      const user = executors.userIn(executor);
      const folders = [root, dirname(outputFile), ...(extensionFolder === undefined ? [] : [extensionFolder])];
      if (user !== undefined) await giveTree(dirname(outputFile), user);
      const { signal } = attempt.preparation;
      const tell = (text: string): void => output.remark(mask.text(text));
      const cached = {
        ...{ run: workspace.folder, folder: root, user, signal, remark: tell },
        home: executor.kind === 'container' ? dirname(outputFile) : undefined,
      };
      const toSave = await caches.restore(work.caches ?? [], cached);
      if (attempt.stopping !== undefined) return resultOf(failedBecause(attempt.stopping));
      const own = executor.kind === 'container' ? withoutMachine(inheritedEnv, dirname(outputFile)) : inheritedEnv;
      const maskFile = new MaskFile(place.maskFile, mask, (text) => output.remark(text));
      const masked = new MaskingSink(output, mask, () => maskFile.refresh());
      this.#busy += 1;
      if (ahead === undefined) {
        this.#ahead.makeRoom(this.#busy);
        const env = stageEnvironment({}, { ...work.env, ...secretEnv }, place);
        const asked = { inherited: own, user, folders, place: withLogins(work.place, logins), files };
        attempt.process = executor.start({ ...specOf(work, cwd, env), ...asked }, masked);
      } else attempt.process = ahead.preparation.start(masked);
      this.#lookAhead();
      const exit = await attempt.process.ended;
      this.#busy -= 1;
      // Its process is forked while it is decided what comes next.
      this.#ahead.begin(this.#busy);
      maskFile.refresh();
      masked.finish();
      const judged = judgeAttempt(exit, {
        timeoutMs: work.timeoutMs,
        outputFile,
        declared: work.outputs,
        remark: tell,
      });
      const { added, ...verdict } = await localAdded(
        { ...judged, outputs: maskedOutputs(judged.outputs, mask) },
        { generates: work.generates, stagesFile: place.stagesFile, mask: (text) => mask.text(text), remark: tell },
        executors.lacking,
      );
      const left = { stage, verdict, folder: root, user, signal, remark: tell };
      const kept =
        work.artifacts === undefined ? verdict : await this.#artifacts.keep({ ...left, asked: work.artifacts });
      const report = await localReport({ ...left, asked: work.reports, mask: (text) => mask.text(text) });
      if (kept.status === 'success') await caches.save(toSave, cached);
      return resultOf({ ...kept, ...(report === undefined ? {} : { report }), added });
    } catch (error) {
      const why = attempt.process === undefined ? whyNotStarted(error) : undefined;
      if (why === undefined) throw error;
      output.remark(`the stage cannot start: ${why}`);
      return resultOf(failedBecause('checkout'));
    } finally {
      if (attempt.process === undefined) ahead?.preparation.discard();
      // Files of another user, as a container may leave them, are no failure of the stage.
      if (copy !== undefined)
        await workspace
          .discard(copy)
          .catch((error: unknown) => output.remark(`${copy} could not be removed: ${systemReason(error)}`));
    }
  }

  #placeOf(stage: string, attempt: number, { workspace, outputFile }: { workspace: string; outputFile: string }) {
    return {
      ...{ runId: this.id, pipeline: this.#actor.run.pipelineName, stage, attempt, trigger: 'local' },
      ...{ workspace, outputFile, maskFile: `${outputFile}-mask` },
    };
  }

  #lookAhead(): void {
    const { slots } = this.#options;
    // AHEAD-2.
    if (this.#over.signal.aborted || (slots > 1 && this.#busy >= slots)) return;
    const ready = this.#ready.slice(this.#readyFrom, this.#readyFrom + slots);
    this.#ahead.plan(likelyNext(ready, this.#attempts.keys(), this.#actor, slots));
  }

  /** AHEAD-1. */
  #plannedStart(stage: string): PlannedStart {
    const { workspace, inheritedEnv } = this.#options;
    const work = workOf(this.#actor.run, this.#actor.plan, stage);
    const outputFile = workspace.outputFile(false);
    const place = this.#placeOf(stage, 1, { workspace: workspace.folder, outputFile });
    const env = stageEnvironment({}, work.env, place);
    const spec = specOf(work, workdirIn(workspace.folder, work.workdir), env);
    return { spec: { ...spec, inherited: inheritedEnv }, outputFile };
  }

  #wakeAt(at: number): void {
    if (!Number.isFinite(at) || at >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(
      () => {
        this.#timerAt = Infinity;
        this.#tell({ type: 'wake', at: this.#now() });
      },
      Math.min(TIMER_MS_MAX, Math.max(0, at - Date.now())),
    );
  }

  /** Milliseconds since 1970 that never run backwards, though the clock may be set. */
  #now(): number {
    this.#lastAt = Math.max(this.#lastAt, Math.round(performance.timeOrigin + performance.now()));
    return this.#lastAt;
  }
}

/** What is wrong with its folder or the disk is this stage's alone; undefined: it is a fault of ours. */
function whyNotStarted(error: unknown): string | undefined {
  if (error instanceof WorkspaceProblem) return error.message;
  return error instanceof Error && 'syscall' in error ? systemReason(error) : undefined;
}

function specOf({ commands, shell, timeoutMs }: StageWork, cwd: string, env: StageSpec['env']): StageSpec {
  return { helperKey: KEY, commands, env, shell, cwd, timeoutMs };
}

type AttemptResult =
  | Pick<ResultCommand, 'type' | 'status' | 'reason' | 'exitCode' | 'outputs' | 'artifacts' | 'report' | 'added'>
  | { readonly type: 'lose' };

/** A lost attempt is no result: the run's machine decides whether it is tried again. */
function resultOf(kept: KeptVerdict & Pick<ResultCommand, 'report' | 'added'>): AttemptResult {
  const { status, reason, exitCode, outputs, artifacts, report, added } = kept;
  if (reason === 'runner_lost') return { type: 'lose' };
  return { type: 'result', status, reason, exitCode, outputs, artifacts, report, added };
}
