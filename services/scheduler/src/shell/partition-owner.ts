/**
 * One partition in one scheduler, from opening it to giving it up: wires a `Partition` to the broker, the store and the
 * clock, and throws it away when its log says that it is another's (P2). Opened again, it begins from what is stored.
 */
import type { RunCreated, RunId, Sequence } from '@penstock/run';
import {
  type BusSubscription,
  type CommittedEvents,
  LATER,
  MessageTooLarge,
  type PartitionLog,
  type PartitionOpened,
  type PartitionReleased,
  type RunnerLease,
  subjects,
} from '@penstock/bus';
import { isDamage, type RunsLedger } from '@penstock/store';
import type { Log } from '@penstock/telemetry/log';
import { guarded, type BorderName } from '@penstock/telemetry/borders';
import type { Meter } from '@penstock/telemetry/metrics';
import type { Tracer } from '@penstock/telemetry/traces';
import type { DefinitionSource } from '../run/definitions.ts';
import type { Dispatch } from '../dispatch/dispatch.ts';
import type { PartitionSettings } from '../partition/partition-settings.ts';
import { Partition } from '../partition/partition.ts';
import type { PartitionPorts } from '../run/ports.ts';
import type { ReadAddedText } from './added-texts.ts';
import type { CreateIntake } from './create-intake.ts';
import type { DefinitionReader } from './definition-reader.ts';
import type { EncodedStories } from './encoded-stories.ts';
import { LogEnds } from './log-ends.ts';
import { LogPurges } from './log-purges.ts';
import { HookAnnouncer } from './hook-announcer.ts';
import { Projector } from './projector.ts';
import { RequestDesk } from './request-desk.ts';
import { RunnerCalls } from './runner-calls.ts';
import { RunLog } from '../run/run-log.ts';
import { RunMeter } from '../run/run-meter.ts';
import { RunTracer } from '../run/run-tracer.ts';
import type { SchedulerLoad } from '../run/scheduler-load.ts';
import type { LiveRun } from '../run/live-run.ts';
import { inSlices } from '../run/slices.ts';
import type { SchedulerPorts } from './scheduler-ports.ts';
import { RetentionSweep, type Retention } from './retention-sweep.ts';
import { RestoreRoom } from './restore-room.ts';
import {
  handBack,
  loadPartition,
  openPartition,
  readRun,
  type LoadedPartition,
  type OpenedPartition,
  type Opening,
  type Restoring,
} from './take-over.ts';

export interface OwnerOptions {
  readonly ports: Omit<SchedulerPorts, 'membership'>;
  readonly ledger: RunsLedger;
  readonly retention?: Retention | undefined;
  readonly log: Log;
  readonly partition: number;
  readonly settings: Omit<PartitionSettings, 'partition' | 'member' | 'epoch'>;
  readonly definitions: DefinitionSource;
  readonly reader: Pick<DefinitionReader, 'readAgain'> & { readonly readAdded: ReadAddedText };
  readonly intake: CreateIntake;
  readonly dispatch: Dispatch;
  readonly load: SchedulerLoad;
  readonly stories: EncodedStories;
  readonly meter: Meter;
  /** Undefined: traces are off. */
  readonly tracer?: Tracer | undefined;
  mayAct(): boolean;
  /** Whether a lease has passed since the broker was connected. */
  mayDeclareLoss(): boolean;
  /** Whether a member's lease has run out, as the stream's leader says. */
  isGone(member: string): Promise<boolean>;
  /** Makes the dispatch know all sessions that hold a lease now, read fresh from the broker; of these it is sure then. */
  refreshSessions(sessions: readonly RunnerSession[], signal: AbortSignal): Promise<void>;
}

export interface RunnerSession {
  readonly runner: string;
  readonly session: string;
}

/** Ids of hooks that one message names. */
const HOOKS_IN_MESSAGE = 1_000;

/** `another`: the log says so, or does not answer. `failed`: something here has thrown that must not. */
type LossReason = 'another' | 'failed';

export class PartitionOwner {
  readonly #options: OwnerOptions;
  readonly #journal: PartitionLog;
  readonly #member: string;
  readonly #abort = new AbortController();
  readonly #subscriptions: BusSubscription[] = [];
  #opened: OpenedPartition | undefined;
  #partition: Partition | undefined;
  #projector: Projector | undefined;
  #retention: RetentionSweep | undefined;
  #callOffTimer: () => void = () => {};
  readonly #logEnds: LogEnds;
  readonly #logPurges: LogPurges;
  readonly #runLog: RunLog;
  readonly #runMeter: RunMeter;
  readonly #runTracer: RunTracer | undefined;
  readonly #runnerCalls: RunnerCalls;
  #refusal: string | undefined;
  #tellsParked = false;
  readonly #onLost: (reason: LossReason) => void;

  /** `onLost` is called once, when the partition turns out to be another's, or what is in memory of it is worth nothing. */
  constructor(member: string, options: OwnerOptions, onLost: (reason: LossReason) => void) {
    this.#options = options;
    this.#member = member;
    this.#onLost = onLost;
    this.#runLog = new RunLog(options.log);
    this.#runMeter = new RunMeter(options.meter);
    this.#runTracer = options.tracer && new RunTracer(options.tracer);
    this.#runnerCalls = new RunnerCalls(options.ports.bus, this.#runTracer);
    this.#logEnds = new LogEnds({
      ports: options.ports,
      log: options.log,
      signal: this.#abort.signal,
      failed: () => this.#drop(),
    });
    this.#logPurges = new LogPurges({
      purge: (runId) => options.ports.purgeLogs(runId),
      time: options.ports.time,
      log: options.log,
      signal: this.#abort.signal,
    });
    this.#journal = options.ports.openLog(options.partition, {
      onTrouble: ({ operation, attempt, error }) => {
        if (operation === 'append') this.#refusal = error.message;
        options.log.warn(
          { err: error, partition: options.partition, operation, attempt },
          'the journal does not answer; trying again',
        );
      },
    });
  }

  /** Why the last try of its last commit was not stored; undefined where it was. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  get partition(): Partition | undefined {
    return this.#partition;
  }

  /** How long the oldest commit waits that the store does not have. */
  get projectionLagMs(): number {
    return this.#projector?.lagMs ?? 0;
  }

  get member(): string {
    return this.#member;
  }

  get number(): number {
    return this.#options.partition;
  }

  /** False: it is another's. Answers requests once it resolves with true. */
  async open(): Promise<boolean> {
    const { load, meter, ports } = this.#options;
    const begunAt = ports.time.bootNow();
    const opening = this.#opening(this.#abort.signal);
    const opened = await openPartition(opening);
    this.#refusal = undefined;
    if (opened === null) return false;
    this.#opened = opened;
    const room = new RestoreRoom(load);
    try {
      const loaded = await loadPartition(opened, opening, { ...this.#restoring(), room });
      await this.#options.refreshSessions(await this.#sessionsIn(loaded.runs), this.#abort.signal);
      const hasBegun = await this.#begin(opened, { ...loaded, room });
      if (hasBegun) meter.observe('penstock_takeover_seconds', {}, (ports.time.bootNow() - begunAt) / 1_000);
      return hasBegun;
    } finally {
      room.freeAll();
    }
  }

  /** False: it was given up meanwhile. */
  async #begin(
    opened: OpenedPartition,
    { runs, parked, usages, schedules, deleted, leftOut, room }: LoadedPartition & { readonly room: RestoreRoom },
  ): Promise<boolean> {
    const { signal } = this.#abort;
    if (signal.aborted) return false;
    const { partition, ledger, ports, log, definitions, settings, dispatch, load } = this.#options;
    const { bus, time } = ports;
    const core = new Partition({ ...settings, partition, member: this.#member, epoch: opened.epoch }, this.#ports(), {
      dispatch,
      definitions,
      load,
      readRun: (runId, then) => void this.#readRun(runId).then(this.#guarded('partition.run-read', then, this.#drop)),
      readText: (request, then) =>
        this.#options.intake.take(request, this.#guarded('partition.text-read', then, this.#drop)),
    });
    this.#partition = core;
    this.#projector = new Projector({
      partition: core,
      incarnation: opened.incarnation,
      ledger,
      journal: this.#journal,
      load,
      log,
      clock: time,
      stories: this.#options.stories,
      announcer: this.#announcer(),
      failed: this.#drop,
    });
    const { retention } = this.#options;
    if (retention !== undefined)
      this.#retention = new RetentionSweep({
        retention,
        partition: core,
        newestRunAt: opened.idsTo,
        now: () => time.wallNow(),
        bootNow: () => time.bootNow(),
        log,
      });
    const opening = core.opening({
      sequence: opened.sequence,
      commitNumber: opened.commitNumber,
      idsTo: opened.idsTo,
      neverOwned: opened.neverOwned,
      runs,
      parked,
      usages,
      schedules,
      deleted,
      leftOut,
      room,
    });
    while (opening.next().done !== true) {
      await time.turn();
      if (signal.aborted) return false;
    }
    const desk = this.#desk(core);
    // Whoever asks before is told that nobody is there yet, and asks again (P3).
    this.#subscriptions.push(
      bus.respond<unknown, unknown>(subjects.ownerAll(partition), (body, call) => {
        desk.take(body, call);
        return LATER;
      }),
    );
    const message: PartitionOpened = { partition, epoch: opened.epoch, owner: this.#member };
    bus.publish(subjects.opened(partition), message);
    log.info(
      { partition, epoch: opened.epoch, runs: runs.length + parked.length, parked: parked.length },
      'owns the partition',
    );
    return true;
  }

  #desk(core: Partition): RequestDesk {
    const { partition, intake, reader, log } = this.#options;
    return new RequestDesk({
      number: partition,
      partition: core,
      intake,
      readAdded: reader.readAdded,
      log,
      called: () => this.#armTimer(),
    });
  }

  #announcer(): HookAnnouncer {
    const { ledger, log, meter, ports } = this.#options;
    const { bus, time } = ports;
    return new HookAnnouncer({
      ledger,
      log,
      bootNow: () => time.bootNow(),
      wallNow: () => time.wallNow(),
      turn: () => time.turn(),
      onWaiting: (hooks) => {
        for (let from = 0; from < hooks.length; from += HOOKS_IN_MESSAGE)
          bus.publish(subjects.hooksWaiting, { hooks: hooks.slice(from, from + HOOKS_IN_MESSAGE) });
      },
      onLeftOut: (count) => meter.add('penstock_outgoing_total', { outcome: 'left_out' }, count),
    });
  }

  /** Those that hold attempts of the runs, each once. */
  async #sessionsIn(runs: readonly LiveRun[]): Promise<RunnerSession[]> {
    const sessions = new Map<string, RunnerSession>();
    const looking = inSlices(runs, ({ state }) => {
      if (state.liveAttempts === 0) return;
      for (const { live } of state.stages.touched())
        if (live !== undefined) sessions.set(live.session, { runner: live.runner, session: live.session });
    });
    while (looking.next().done !== true) await this.#options.ports.time.turn();
    return [...sessions.values()];
  }

  /** An opening that is under way ends; one that has ended has not begun anything else. */
  giveUpOpening(): void {
    if (this.#partition?.open !== true) this.#abort.abort();
  }

  leaseSeen(lease: RunnerLease): void {
    this.#decisive('partition.lease', () => this.#partition?.leaseSeen(lease));
  }

  sessionLost(session: string, runner: string): void {
    this.#decisive('partition.lease', () => {
      this.#partition?.sessionLost(session, runner);
      // What is left of a session with very many attempts goes on at once.
      this.#armTimer();
    });
  }

  tick(): void {
    if (this.#abort.signal.aborted) return;
    this.#decisive('partition.tick', () => {
      this.#partition?.tick();
      this.#projector?.tick();
      if (this.#partition?.open === true) this.#retention?.tick();
      this.#armTimer();
    });
    this.#tellParked();
  }

  /** Once when it begins, and once when it is over. */
  #tellParked(): void {
    const { log, partition } = this.#options;
    const runs = this.#partition?.parkedRuns ?? 0;
    if (runs > 0 === this.#tellsParked) return;
    this.#tellsParked = runs > 0;
    if (this.#tellsParked) log.info({ partition, parked: runs }, 'runs wait outside of memory until there is room');
    else log.info({ partition }, 'no run waits outside of memory any more');
  }

  /**
   * Hands the partition over: all that was decided is committed, then `released`, from which on nothing is said (P3).
   * False, and after an error: to be called again, for nobody else can open the partition while this member lives.
   */
  async release(signal: AbortSignal): Promise<boolean> {
    const core = this.#partition;
    let known: Pick<OpenedPartition, 'epoch' | 'sequence' | 'commitNumber' | 'idsTo'> | undefined;
    try {
      if (core?.open === true && this.#opened !== undefined) {
        const over = AbortSignal.any([signal, this.#abort.signal]);
        await new Promise<void>((resolve) => {
          if (over.aborted) resolve();
          over.addEventListener('abort', () => resolve(), { once: true });
          core.release(resolve);
        });
        if (!over.aborted)
          known = {
            epoch: this.#opened.epoch,
            sequence: core.sequence,
            commitNumber: core.commitNumber,
            idsTo: core.idsTo,
          };
        core.close();
        this.#stopListening();
      }
      // An opening that is under way is given up: it would go on beside the one that hands over what its log says.
      else this.giveUpOpening();
      const isFree = await handBack(this.#opening(signal), known);
      const message: PartitionReleased = { partition: this.number };
      if (isFree && this.#opened !== undefined)
        this.#options.ports.bus.publish(subjects.released(this.number), message);
      return isFree;
    } finally {
      await this.forget();
    }
  }

  /** Drops everything at once: nothing is answered or sent from here on. */
  async forget(): Promise<void> {
    this.#partition?.close();
    this.#stopListening();
    this.#abort.abort();
    await Promise.all([this.#retention?.stop(), this.#projector?.stop()]);
  }

  #restoring(): Omit<Restoring, 'room'> {
    const { definitions, settings, log } = this.#options;
    const { time } = this.#options.ports;
    return {
      definitions,
      settings,
      log,
      read: (created) => this.#readAgain(created),
      readAdded: this.#options.reader.readAdded,
      turn: () => time.turn(),
    };
  }

  /** One that is parked, or that another repeats. */
  async #readRun(runId: RunId): Promise<LiveRun | null | 'unavailable' | 'damaged'> {
    const { ledger, log, partition } = this.#options;
    if (this.#opened === undefined) return 'unavailable';
    try {
      return await readRun(runId, this.#opened, ledger, this.#restoring());
    } catch (error) {
      log.warn({ err: error, partition, runId }, 'a run that is not in memory could not be read; tried again');
      return isDamage(error) ? 'damaged' : 'unavailable';
    }
  }

  #opening(signal: AbortSignal): Opening {
    const { partition, ledger, ports } = this.#options;
    return {
      partition,
      member: this.#member,
      log: this.#journal,
      ledger,
      isGone: (member: string) => this.#options.isGone(member),
      now: () => ports.time.wallNow(),
      newCommitId: () => ports.newId(),
      after: (milliseconds, task) => ports.time.after(milliseconds, task),
      signal,
    };
  }

  #stopListening(): void {
    this.#callOffTimer();
    for (const subscription of this.#subscriptions.splice(0)) subscription.stop();
  }

  /** Of a run that was created before: its text is good. */
  async #readAgain(created: RunCreated): Promise<DefinitionSource> {
    const { reader, definitions, partition } = this.#options;
    if (created.yaml === '') return definitions;
    const defined = await reader.readAgain(created, partition);
    return { find: () => defined };
  }

  #armTimer(): void {
    this.#callOffTimer();
    const { time } = this.#options.ports;
    const at = this.#partition?.nextWake();
    if (at !== undefined && this.#partition?.open === true)
      this.#callOffTimer = time.after(Math.max(1, at - time.bootNow()), () => {
        this.#decisive('partition.timer', () => {
          this.#partition?.tick();
          this.#armTimer();
        });
      });
  }

  #ports(): PartitionPorts {
    const { ports, ledger, log } = this.#options;
    const { bus, time } = ports;
    return {
      now: () => time.wallNow(),
      bootNow: () => time.bootNow(),
      newCommitId: () => ports.newId(),
      append: this.#guarded('partition.acknowledged', (bytes, options) => this.#append(bytes, options), this.#drop),
      mayAct: () => this.#options.mayAct(),
      mayDeclareLoss: () => this.#options.mayDeclareLoss(),
      publishEvents: this.#guarded('partition.show-events', (message) => this.#publishEvents(message)),
      counted: this.#guarded('partition.counted', (parts) => {
        this.#options.meter.observe('penstock_commit_runs', {}, parts.length);
        for (const part of parts) {
          this.#runMeter.committed(part);
          this.#runLog.committed(part);
          this.#runTracer?.committed(part);
        }
      }),
      sendJob: (runner, job, answered) =>
        void this.#runnerCalls.sendJob(runner, job).then(this.#answered(job.runId, answered)),
      sendStop: (runner, request, answered) =>
        void this.#runnerCalls.sendStop(runner, request).then(this.#answered(request.runId, answered)),
      release: (runner, runIds) => bus.publish(subjects.release(runner), { runIds }),
      isStored: (runId, then) =>
        void ledger
          .exists([runId])
          .then(
            (ids) => ids.has(runId),
            () => 'unavailable' as const,
          )
          .then(this.#guarded('partition.id-looked-up', then)),
      storedRuns: (runIds, then) =>
        void ledger
          .exists(runIds)
          .catch(() => 'unavailable' as const)
          .then(this.#guarded('partition.ids-looked-up', then, this.#drop)),
      storedStanding: (runId, then) =>
        void ledger
          .standingOf(runId)
          .catch(() => 'unavailable' as const)
          .then(this.#guarded('partition.id-looked-up', then)),
      forgetLogs: (runs) => this.#logPurges.add(runs),
      headInStore: (of, then) =>
        void ledger
          .headOf(of)
          .catch(() => 'unavailable' as const)
          .then(this.#guarded('partition.head-looked-up', then)),
      closeLog: (attempt, stands, then) => this.#logEnds.close(attempt, stands, this.#answered(attempt.runId, then)),
      projectSoon: this.#guarded('partition.projector', () => this.#projector?.projectSoon()),
      broken: this.#drop,
      warn: (fields, message) => log.warn(fields, message),
    };
  }

  async #append(
    bytes: Uint8Array,
    options: { readonly commitId: string; readonly expectedSequence: Sequence },
  ): Promise<void> {
    const { meter, ports } = this.#options;
    const sentAt = ports.time.bootNow();
    try {
      const result = await this.#journal.append(bytes, options, this.#abort.signal);
      meter.add('penstock_commits_total', { outcome: result.ok ? 'stored' : 'refused' });
      if (result.ok) {
        meter.observe('penstock_commit_seconds', {}, (ports.time.bootNow() - sentAt) / 1_000);
        this.#refusal = undefined;
        this.#partition?.acknowledged(result.sequence);
        this.#armTimer();
        return;
      }
      this.#options.log.warn(
        { partition: this.number },
        "the partition is another's; everything decided here and not committed is forgotten",
      );
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      meter.add('penstock_commits_total', { outcome: 'failed' });
      this.#options.log.error(
        { err: error, partition: this.number },
        'a commit could not be stored; the partition is opened anew',
      );
    }
    await this.forget();
    this.#onLost('another');
  }

  /** A callback about the whole partition: who throws in it leaves a memory that nothing may be decided on. */
  #decisive(name: BorderName, callback: () => void): void {
    this.#guarded(name, callback, this.#drop)();
  }

  /** An answer about one run, which is quarantined where the answer cannot be taken. */
  #answered<Answer>(runId: RunId, then: (answer: Answer) => void): (answer: Answer) => void {
    return this.#guarded('partition.job-answered', then, (error) => this.#partition?.quarantine(runId, error));
  }

  #guarded<Args extends unknown[]>(
    name: BorderName,
    callback: (...args: Args) => unknown,
    failed?: (error: unknown) => void,
  ): (...args: Args) => void {
    return guarded(name, { log: this.#options.log, about: { partition: this.number }, failed }, callback);
  }

  /** What is in memory is worth nothing: all of it is read again from the log and the store, at the scheduler's next tick. */
  readonly #drop = (): void => {
    if (this.#abort.signal.aborted) return;
    this.#options.log.error({ partition: this.number }, 'the partition is dropped after a fault, and opened anew');
    void this.forget().then(
      () => this.#onLost('failed'),
      (error: unknown) => {
        this.#options.log.error(
          { err: error, partition: this.number },
          'not all of a dropped partition could be ended',
        );
        this.#onLost('failed');
      },
    );
  };

  /** Events too large for one message are announced by their version alone: watchers ask for them. */
  #publishEvents(message: CommittedEvents): void {
    const { bus } = this.#options.ports;
    try {
      bus.publish(subjects.events(message.runId), message);
    } catch (error) {
      if (!(error instanceof MessageTooLarge)) throw error;
      bus.publish(subjects.events(message.runId), { ...message, events: [] });
    }
  }
}
