/**
 * A runner: it offers its slots to schedulers, executes what they grant, and reports. It owns the attempts that run, the
 * present session and the folders of runs; everything it promises to others stands in its lease.
 *
 * RUNNER-1. An attempt starts at most once: from an open credit of the present session, and never after its stop (P12, P14).
 * RUNNER-2. An attempt is listed in the lease from its grant until its result is answered, in that of a later session too
 *     (P13).
 * RUNNER-3. `gone` is answered only for what has no process here and can never have one any more (P14). A cancelled attempt that
 *     has ended is told by its result instead, unless the broker does not take its log.
 * RUNNER-4. A session's end takes everything with it that has no result yet; results stay (P15).
 * RUNNER-6. An attempt of an earlier process is taken up only where the lease that listed it last lived when the present one, which
 *     lists it too, was taken: so it was not lost in between, and no other runs in its place (P36).
 * RUNNER-7. No two attempts of a stage are executed here at a time, whatever owners have forgotten: they would share a folder.
 * RUNNER-8. With `once` one slot is on offer until it is taken, and from then on only the run of that stage is served (P12: a grant of
 *     another is refused at no cost).
 * RUNNER-9. Of a runner that leaves and may finish runs only stages of runs start that have their shared folder here, and in the end none.
 * RUNNER-5. No stage is taken where the disk has no room for its result (P16) or little room for anything else.
 */
import {
  type AttemptRef,
  type BusSubscription,
  GONE_WITHOUT_LOG_MS,
  isSameAttempt,
  type Job,
  type JobReply,
  type PullRequest,
  LATER,
  type Release,
  type Responder,
  type ResultRequest,
  RUNNER_LEASE_MS,
  type RunnerLease,
  type SlipAnswer,
  type SlipRequest,
  type StopReply,
  type StopRequest,
  subjects,
} from '@penstock/bus';
import { guarded, type Border } from '@penstock/telemetry/borders';
import { backoffMs } from '@penstock/async';
import type { PastOfAttempt } from './attempt/attempt.ts';
import type { Runner, RunnerOptions } from './runner-options.ts';
import type { Chunks, RunnerPorts, RunningAttempt, SessionStages } from './runner-ports.ts';
import { Credits } from './session/credits.ts';
import { NotIsolated } from './workspace/errors.ts';
import { RunFolders } from './workspace/run-folders.ts';
import { Offers } from './session/offers.ts';
import type { EarlierAttempt } from './attempt/attempt-records.ts';
import { Outbox, resultId } from './report/outbox.ts';
import { Schedulers } from './session/schedulers.ts';
import { Session, type SessionGuard } from './session/session.ts';
import { SessionList } from './session/session-list.ts';
import { Finishing } from './finishing.ts';
import type { SlipDesk } from './session/slip-desk.ts';
import { StopMemory } from './session/stop-memory.ts';

const BEGIN_BACKOFF = { firstMs: 100, maxMs: 2_000 };
/** After the last stage has ended its result is answered within this, or at the next start. */
const ANSWERS_MS_MAX = 3_000;

/** Auth reads a lease and the store for each. */
const SLIP_ANSWER_MS = 10_000;

/** What belongs to one session. */
interface ActiveSession<Stages extends SessionStages> {
  readonly session: Session<Stages>;
  readonly credits: Credits;
  readonly offers: Offers;
}

/** What it is told about itself; the rest of a runner's options is for its ports. */
type Options = Pick<
  RunnerOptions,
  | 'log'
  | 'runnerId'
  | 'tenant'
  | 'slots'
  | 'labels'
  | 'capacity'
  | 'leaseMs'
  | 'goneWithoutLogMs'
  | 'isolationRequired'
  | 'once'
>;

export class RunnerService<Guarding extends SessionGuard, Stages extends SessionStages> implements Runner {
  readonly #options: Options;
  readonly #ports: RunnerPorts<Guarding, Stages>;
  readonly #schedulers: Schedulers;
  readonly #outbox: Outbox;
  readonly #earlierAnswered: Promise<boolean>;
  /** Attempts of an earlier process that no session has taken up yet. */
  #earlier: readonly EarlierAttempt[];
  /** Those of them that one has, by `resultId`. */
  readonly #takenUp = new Set<string>();
  #takingUp: Promise<unknown> = Promise.resolve();
  readonly #chunks: Chunks;
  readonly #folders: RunFolders;
  readonly #stops: StopMemory;
  /** By `resultId`. Each holds a slot until its processes are gone, and its place in the lease until its result is answered. */
  readonly #held = new Map<string, RunningAttempt>();
  readonly #running = new Set<RunningAttempt>();
  readonly #subscriptions: BusSubscription[] = [];
  readonly #sessions: SessionList;
  #active: ActiveSession<Stages> | null = null;
  /** The session that is ending: its processes may not be gone yet. */
  #ending: string | null = null;
  #closing: Promise<void> | null = null;
  #serving: Promise<void> = Promise.resolve();
  #isListening = false;
  /** RUNNER-9. */
  #takes: 'all' | 'bound' | 'nothing' = 'all';
  #finishing: Finishing | null = null;
  /** RUNNER-8. */
  #only: PullRequest['only'];
  #onIdle: (() => void)[] = [];

  constructor(options: Options, ports: RunnerPorts<Guarding, Stages>) {
    this.#options = options;
    this.#ports = ports;
    const { log, runnerId } = options;
    const { bus, time } = ports;
    this.#stops = new StopMemory(() => time.bootNow());
    this.#sessions = new SessionList({ ports, log, runner: runnerId });
    this.#outbox = new Outbox({ bus, time, log, runner: runnerId, file: ports.results });
    this.#earlier = ports.records.earlier;
    this.#chunks = ports.openChunks(this.#outbox.pending);
    this.#earlierAnswered = this.#outbox.resume(async ({ request, chunks }) => {
      if (chunks !== undefined) await this.#chunks.resend(request.runId, runnerId, chunks);
    });
    this.#folders = new RunFolders({
      bus,
      log,
      time,
      disk: ports.folders,
      isBusy: (runId) => [...this.#running, ...this.#earlier].some(({ job }) => job.runId === runId),
      released: () => this.#finishing?.changed(),
    });
    this.#schedulers = new Schedulers(ports, options, this.#border(), {
      changed: () => {
        this.#finishing?.changed();
        this.#active?.offers.pump();
      },
      gone: (scheduler) => this.#active?.offers.gone(scheduler),
    });
    this.#subscriptions.push(
      bus.subscribe<Release>(
        subjects.release(runnerId),
        guarded('runner.folders', this.#border(), ({ runIds }) => this.#folders.release(runIds)),
      ),
    );
  }

  get running(): number {
    return this.#running.size;
  }

  get openRuns(): number {
    return this.#folders.size;
  }

  get heldRuns(): number {
    return this.#folders.shared;
  }

  get hasServed(): boolean {
    return this.#only !== undefined && this.#running.size === 0 && !this.#folders.has(this.#only.runId);
  }

  get session(): string | null {
    return this.#active?.session.id ?? null;
  }

  /** Throws where the first session cannot begin; later ones are tried without end. */
  async begin(): Promise<void> {
    try {
      const first = await this.#beginSession();
      this.#serving = this.#serve(first);
      // The runner can be reached before its start is reported.
      await this.#ports.bus.flush().catch(() => {});
      void this.#takingUp.then(() => this.#sessions.endEarlier(this.#earlierAnswered));
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async drain(limitMs: number, { finishesRuns = false }: Parameters<Runner['drain']>[1] = {}): Promise<void> {
    const { log } = this.#options;
    const { time } = this.#ports;
    const until = time.bootNow() + limitMs;
    // What begins last has as long again.
    if (finishesRuns) await this.#endsWithin(limitMs / 2, this.#finishRuns());
    this.#takes = 'nothing';
    this.#finishing?.end();
    const offers = this.#active?.offers.stop();
    const ended = Promise.all([offers, this.#idle()]);
    if (!(await this.#endsWithin(Math.max(0, until - time.bootNow()), ended)) && this.#running.size > 0)
      log.warn(
        { stages: this.#running.size },
        'stages still run at the end of the drain; they are ended and count as lost',
      );
    else await this.#endsWithin(ANSWERS_MS_MAX, this.#outbox.empty());
    await this.close();
  }

  /** Resolves when no run has its shared folder here, or none is gone on with: it waits for people, or for stages that are not its own. */
  async #finishRuns(): Promise<void> {
    if (this.#folders.shared === 0) return;
    this.#takes = 'bound';
    this.#active?.offers.leaving();
    this.#options.log.info({ runs: this.#folders.shared }, 'the runner leaves when these runs have ended');
    this.#finishing = new Finishing(this.#ports.time, () => ({
      goesOn: this.#takes === 'bound' && this.#active !== null && this.#folders.shared > 0,
      hasScheduler: this.#schedulers.members.size > 0,
      isBusy: this.#running.size > 0,
    }));
    await this.#finishing.over;
  }

  async #endsWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<false>();
    const callOff = this.#ports.time.after(milliseconds, () => resolve(false));
    const ended = await Promise.race([work, promise]);
    callOff();
    return ended !== false;
  }

  runningStages(): readonly Pick<Job, 'stage' | 'pipelineName'>[] {
    return [...this.#running].map(({ job }) => job);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const active = this.#active;
    if (active !== null) {
      this.#abandonAll();
      active.credits.closeAll();
      void active.offers.stop();
      await this.#endSession(active.session);
    }
    // Also a session that was ending by itself.
    await this.#serving;
    this.#release();
  }

  #release(): void {
    for (const subscription of this.#subscriptions) subscription.stop();
    this.#schedulers.stop();
    this.#folders.close();
    this.#outbox.close();
    this.#chunks.close();
    this.#ports.records.close();
  }

  async #beginSession(): Promise<ActiveSession<Stages>> {
    const { log, runnerId, labels, slots, leaseMs = RUNNER_LEASE_MS } = this.#options;
    const ports = this.#ports;
    const session = await Session.begin({
      ports: ports.session,
      time: ports.time,
      newId: () => ports.newId(),
      log,
      runner: runnerId,
      leaseMs,
      lease: (id) => this.#leaseOf(id),
      createExecutors: (guard) => ports.createExecutors(guard),
    });
    try {
      if (this.#options.isolationRequired === true && !session.executors.areIsolated) throw new NotIsolated();
      this.#sessions.begun(session.id);
    } catch (error) {
      // A full disk: nothing renews a lease, and no guard stands, for a session that does not begin.
      await session.end();
      throw error;
    }
    // The exact one takes a file to read.
    const credits = new Credits(
      () => ports.guardNow(),
      () => ports.time.bootNow(),
    );
    const offers = new Offers({
      ports,
      log,
      runner: runnerId,
      session: session.id,
      labels,
      slots: () => {
        if (!ports.hasRoom()) return 0;
        return this.#isChoosing ? 1 : slots;
      },
      only: () => this.#only,
      isLeaving: () => this.#takes === 'bound',
      credits,
      schedulers: this.#schedulers,
      busy: () => this.#running.size,
    });
    this.#active = { session, credits, offers };
    this.#takeUpEarlier(this.#active);
    this.#listen();
    log.info({ runner: runnerId, session: session.id, slots, labels }, 'the runner takes stages');
    offers.pump();
    return this.#active;
  }

  /** RUNNER-6. Before anybody is answered: a stop must find them. */
  #takeUpEarlier(active: ActiveSession<Stages>): void {
    const holders = new Map<string, Promise<boolean>>();
    for (const past of this.#earlier) {
      const { job, record, holder } = past;
      const held = holders.get(holder) ?? this.#sessions.endHolder(holder);
      holders.set(holder, held);
      const stands = held.then((isHeld) => {
        // A result that is on disk is all that is to come of it.
        if (!isHeld || this.#outbox.has(job)) return false;
        record.heldBy(active.session.id);
        return true;
      });
      this.#takenUp.add(resultId(job));
      this.#outbox.reserve(job);
      this.#start(job, active, null, { ...past, stands });
    }
    this.#earlier = [];
    this.#takingUp = Promise.all(holders.values());
  }

  /**
   * Not before the first session has its lease: a grant to a session of an earlier process finds nobody then, and comes to
   * nothing at no cost (P12); answered by silence it would count as given.
   */
  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    const { runnerId } = this.#options;
    const { bus } = this.#ports;
    this.#subscriptions.push(
      bus.respond<Job, JobReply>(subjects.job(runnerId), (job, call) => {
        const { runId, stage } = job;
        // Not answered: the grant counts as given, and is repeated until this session takes or refuses it (P12).
        const border = this.#border({ runId, stage }, () => call.drop());
        guarded('runner.job', border, () => {
          const reply = this.#onJob(job, call);
          if (reply !== LATER) call.answer(reply);
        })();
        return LATER;
      }),
      bus.respond<StopRequest, StopReply>(subjects.stop(runnerId), (request) => this.#onStop(request)),
    );
  }

  /** From one session to the next. */
  async #serve(first: ActiveSession<Stages>): Promise<void> {
    const { log } = this.#options;
    for (let active = first; ;) {
      const why = await active.session.over;
      if (this.#closing !== null) return;
      log.warn({ session: active.session.id, why }, 'the session is over: what it ran is ended, and a new one begins');
      // RUNNER-4, before anything of it can report.
      this.#abandonAll();
      this.#ending = active.session.id;
      this.#active = null;
      this.#finishing?.changed();
      active.credits.closeAll();
      void active.offers.stop();
      await this.#endSession(active.session);
      this.#ending = null;
      const next = await this.#nextSession();
      if (next === null) return;
      active = next;
    }
  }

  /** A lease that is given up says that nothing is left to come of it: one with unanswered results runs out instead (P13). */
  async #endSession(session: Session<Stages>): Promise<void> {
    await session.end(() => !this.#outbox.hasOf(session.id));
  }

  async #nextSession(): Promise<ActiveSession<Stages> | null> {
    for (let tries = 0; this.#closing === null && this.#takes === 'all'; tries += 1) {
      try {
        const active = await this.#beginSession();
        if (this.#closing === null) return active;
        await active.session.end();
        return null;
      } catch (error) {
        this.#options.log.warn({ err: error }, 'a new session could not begin; it is tried again');
        await this.#ports.time.pause(backoffMs(tries + 1, { ...BEGIN_BACKOFF, random: () => this.#ports.random() }));
      }
    }
    return null;
  }

  #leaseOf(session: string): RunnerLease {
    const { runnerId, labels, slots, capacity } = this.#options;
    const taken = this.#earlier.map(({ job }) => job);
    const held = [...this.#held.values()]
      .map(({ ref }) => ref)
      .filter((ref) => ref.session === session || this.#takenUp.has(resultId(ref)));
    const unfinished = [...held, ...taken].filter((ref) => ref.session === session || !this.#outbox.has(ref));
    const earlier = this.#outbox.pending.filter(({ request }) => request.session !== session);
    return {
      runner: runnerId,
      session,
      labels,
      slots,
      ...(capacity === undefined ? {} : { capacity }),
      attempts: [...unfinished, ...earlier.map(({ request }) => request)].map(refOf),
    };
  }

  /** P12. */
  #onJob(job: Job, call: Responder<JobReply>): JobReply | typeof LATER {
    const answer = (kind: JobReply['answer']): JobReply => ({ ...refOf(job), answer: kind });
    const id = resultId(job);
    const held = this.#held.get(id);
    if (held !== undefined && isSameAttempt(held.ref, job)) return answer('held');
    if (this.#outbox.has(job)) return answer('held');
    const active = this.#active;
    if (active === null || job.session !== active.session.id) {
      // Of another session: that one's lease decides.
      call.drop();
      return LATER;
    }
    const earlier = this.#executionOf(job);
    if (earlier !== undefined && active.credits.isOpen(job.credit)) {
      // RUNNER-7. Its owner's log has lost the grant of that one, whose result nobody waits for; this one is repeated until it is gone.
      earlier.stop('cancelled');
      call.drop();
      return LATER;
    }
    const scheduler = active.credits.take(job.credit);
    if (scheduler === null && active.session.isOver) {
      // It may have been started, and ended with its session, without a result: not at no cost, then.
      call.drop();
      return LATER;
    }
    const mayStart =
      scheduler !== null &&
      (this.#only === undefined || this.#only.runId === job.runId) &&
      this.#mayTake(job) &&
      !active.session.isOver &&
      !this.#stops.has(job) &&
      this.#ports.hasRoom();
    if (!mayStart || !this.#outbox.reserve(job)) {
      if (scheduler !== null && !this.#mayTake(job)) active.offers.declined(scheduler);
      active.offers.pump();
      return answer('refused');
    }
    this.#start(job, active, scheduler);
    return answer('accepted');
  }

  /** RUNNER-9. */
  #mayTake({ runId }: Job): boolean {
    return this.#takes === 'all' || (this.#takes === 'bound' && this.#folders.isShared(runId));
  }

  /** RUNNER-8: it has no run yet. */
  get #isChoosing(): boolean {
    return this.#options.once === true && this.#only === undefined;
  }

  #executionOf({ runId, stage }: Job): RunningAttempt | undefined {
    for (const running of this.#running) if (running.job.runId === runId && running.job.stage === stage) return running;
    return undefined;
  }

  /** `scheduler`: whose credit it has taken; null: of an earlier process. */
  #start(
    job: Job,
    active: ActiveSession<Stages>,
    scheduler: string | null,
    past?: EarlierAttempt & PastOfAttempt,
  ): void {
    const id = resultId(job);
    const { partition } = job;
    const outgoingLog = this.#chunks.open(job.runId, this.#options.runnerId);
    const attempt = this.#ports.startAttempt(
      job,
      active.session.executors,
      {
        workspaces: this.#folders.of(job.partition),
        outgoingLog,
        keep: (request) => this.#outbox.keep({ partition, request, chunks: outgoingLog.keep() }),
        isSessionActive: () => active.session.isActive(),
        record: past?.record ?? this.#ports.records.open(job),
        past,
        slips: this.#slipDesk(active.session),
      },
      () => new Set([...this.#running].map((running) => running.job.key)),
    );
    if (this.#isChoosing) this.#only = { runId: job.runId, key: job.key };
    this.#held.set(id, attempt);
    this.#running.add(attempt);
    // Known from here on to the sweep, whatever becomes of the callbacks about its end (P19).
    const isShared = job.workspace === 'shared';
    this.#folders.used(job.runId, job.partition, isShared);
    this.#finishing?.changed();
    const about = { runId: job.runId, stage: job.stage, attempt: job.attempt };
    void attempt.processGone.then(
      guarded('runner.attempt-gone', this.#border(about), () => this.#folders.used(job.runId, job.partition, isShared)),
    );
    const done = (): void => {
      this.#held.delete(id);
      this.#takenUp.delete(id);
    };
    const ended = (result: ResultRequest | null): void => {
      this.#running.delete(attempt);
      this.#finishing?.changed();
      // Whatever fails: the result is on disk, and goes without a credit.
      const border = this.#border(about, () => {
        if (result === null) done();
        else this.#outbox.send(job, null, { offerTaken: () => {}, done });
      });
      guarded('runner.attempt-ended', border, () => {
        if (result === null) {
          done();
          this.#outbox.giveUp(job);
        } else this.#sendResult(job, active, scheduler, done);
      })();
      active.offers.pump();
      if (this.#running.size === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    };
    void attempt.result.then(ended, () => ended(null));
  }

  /** P31. */
  #slipDesk(session: Session<Stages>): SlipDesk {
    const subject = subjects.slip(this.#options.runnerId);
    const limits = { deadlineMs: SLIP_ANSWER_MS, timeoutMs: SLIP_ANSWER_MS };
    return {
      present: (slip, tokensOnly) =>
        this.#ports.bus.requestRetrying<SlipRequest, SlipAnswer>(
          subject,
          { slip, ...(tokensOnly ? { tokensOnly } : {}) },
          limits,
        ),
      renewLease: () => session.renewNow(),
      open: (sealed) => session.key.open(sealed),
    };
  }

  #sendResult(job: Job, active: ActiveSession<Stages>, scheduler: string | null, done: () => void): void {
    // A credit that a result carries along does not say which runs it is for.
    const isCarried = scheduler !== null && this.#options.once !== true && this.#takes === 'all';
    const credit = isCarried ? active.offers.offerAlong(scheduler) : null;
    this.#outbox.send(job, scheduler === null || credit === null ? null : { scheduler, credit }, {
      offerTaken: (taken) => {
        if (!taken && credit !== null) active.credits.close([credit]);
        active.offers.pump();
      },
      done,
    });
  }

  #border(about: Readonly<Record<string, unknown>> = {}, failed?: () => void): Border {
    const { log, runnerId } = this.#options;
    return { log, about: { runner: runnerId, ...about }, failed };
  }

  /** P14. */
  #onStop(request: StopRequest): StopReply {
    const answer = (kind: StopReply['answer']): StopReply => ({ ...refOf(request), answer: kind });
    this.#stops.remember(request);
    const id = resultId(request);
    const held = this.#held.get(id);
    if (held !== undefined && isSameAttempt(held.ref, request)) {
      held.stop(request.reason);
      const { goneWithoutLogMs = GONE_WITHOUT_LOG_MS } = this.#options;
      return answer(request.reason === 'cancelled' && held.goneForMs > goneWithoutLogMs ? 'gone' : 'stopping');
    }
    if (this.#outbox.has(request) || request.session === this.#ending) return answer('stopping');
    // Its grant, should it still come, is refused; so the slot can be offered anew.
    if (request.session === this.#active?.session.id) {
      this.#active.credits.close([request.credit]);
      this.#active.offers.pump();
    }
    return answer('gone');
  }

  #abandonAll(): void {
    for (const attempt of this.#running) attempt.abandon();
  }

  #idle(): Promise<void> {
    return this.#running.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }
}

function refOf({ runId, stage, attempt, session, credit }: AttemptRef): AttemptRef {
  return { runId, stage, attempt, session, credit };
}
