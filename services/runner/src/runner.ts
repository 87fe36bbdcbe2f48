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
 * RUNNER-5. No stage is taken where the disk has no room for its result (P16) or little room for anything else.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type AttemptRef,
  type BusSubscription,
  createLogWriter,
  GONE_WITHOUT_LOG_MS,
  type Job,
  type JobReply,
  LATER,
  type LogWriter,
  type Release,
  type Responder,
  type ResultRequest,
  RUNNER_LEASE_MS,
  type RunnerLease,
  type StopReply,
  type StopRequest,
  subjects,
} from '@penstock/bus';
import { bootClockMs, type Executor, type Guard } from '@penstock/executor';
import { guarded, type Border } from '@penstock/telemetry/borders';
import { backoffMs } from '@penstock/async';
import type { Runner, RunnerOptions } from './runner-options.ts';
import { Attempt, type AttemptParts } from './attempt/attempt.ts';
import { SessionExecutors } from './executors/session-executors.ts';
import { executorsOf, hasUsers } from './executors/executor-parts.ts';
import { Checkouts } from './workspace/checkouts.ts';
import { ChunkStore } from './report/chunk-store.ts';
import { FreeRoom } from './report/free-room.ts';
import { Credits } from './session/credits.ts';
import { NotIsolated } from './workspace/errors.ts';
import { RunFolders } from './workspace/run-folders.ts';
import { StageUsers } from './workspace/stage-users.ts';
import { Offers } from './session/offers.ts';
import { isSame, Outbox, resultId } from './report/outbox.ts';
import { Packages } from './workspace/packages.ts';
import type { Sources } from './workspace/preparation.ts';
import { Schedulers } from './session/schedulers.ts';
import { Session, sessionPorts } from './session/session.ts';
import { SessionList } from './session/session-list.ts';
import { StopMemory } from './session/stop-memory.ts';

const SPOOL_BYTES_MAX = 512 * 1024 * 1024;
const BEGIN_BACKOFF = { firstMs: 100, maxMs: 2_000 };
/** After the last stage has ended its result is answered within this, or at the next start. */
const ANSWERS_MS_MAX = 3_000;

/** What belongs to one session. */
interface ActiveSession {
  readonly session: Session;
  readonly credits: Credits;
  readonly offers: Offers;
}

export class RunnerService implements Runner {
  readonly #options: RunnerOptions;
  readonly #schedulers: Schedulers;
  readonly #outbox: Outbox;
  readonly #earlierAnswered: Promise<boolean>;
  readonly #writer: LogWriter;
  readonly #chunks: ChunkStore;
  readonly #folders: RunFolders;
  readonly #sources: Sources;
  readonly #users: StageUsers | undefined;
  readonly #stops = new StopMemory();
  /** By `resultId`. Each holds a slot until its processes are gone, and its place in the lease until its result is answered. */
  readonly #held = new Map<string, Attempt>();
  readonly #running = new Set<Attempt>();
  readonly #subscriptions: BusSubscription[] = [];
  readonly #sessions: SessionList;
  #active: ActiveSession | null = null;
  /** The session that is ending: its processes may not be gone yet. */
  #ending: string | null = null;
  #closing: Promise<void> | null = null;
  #serving: Promise<void> = Promise.resolve();
  #isListening = false;
  #draining = false;
  /** RUNNER-5. */
  readonly #room: FreeRoom;
  #onIdle: (() => void)[] = [];

  constructor(options: RunnerOptions, own: string) {
    this.#options = options;
    const { bus, log, runnerId } = options;
    this.#room = new FreeRoom(options.dataDir, log, options.freeBytesMin);
    this.#sessions = new SessionList({ bus, log, runner: runnerId, file: join(own, 'sessions') });
    this.#writer = createLogWriter(bus);
    this.#outbox = new Outbox({ bus, log, runner: runnerId, file: join(own, 'results') });
    this.#chunks = new ChunkStore(
      {
        writer: this.#writer,
        folder: join(own, 'spool'),
        spoolBytesMax: options.spoolBytesMax ?? SPOOL_BYTES_MAX,
        log,
      },
      this.#outbox.pending.flatMap(({ chunks }) => (chunks === undefined ? [] : [chunks])),
    );
    this.#earlierAnswered = this.#outbox.resume(async ({ request, chunks }) => {
      if (chunks !== undefined) await this.#chunks.resend(request.runId, runnerId, chunks);
    });
    this.#folders = new RunFolders({
      bus,
      log,
      root: join(options.dataDir, 'work'),
      isBusy: (runId) => [...this.#running].some(({ job }) => job.runId === runId),
    });
    if (options.stageUids !== undefined && hasUsers(options))
      this.#users = new StageUsers(options.stageUids, () => ({
        keys: new Set([...this.#running].map(({ job }) => job.key)),
        uids: this.#folders.owners(),
      }));
    this.#sources = {
      checkouts: new Checkouts({ folder: join(own, 'checkouts'), mirrors: options.mirrors, log }),
      packages: new Packages({ bus, folder: own, log }),
    };
    this.#schedulers = new Schedulers(bus, options.labels, this.#border(), {
      changed: () => this.#active?.offers.pump(),
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

  get session(): string | null {
    return this.#active?.session.id ?? null;
  }

  /** Throws where the first session cannot begin; later ones are tried without end. */
  async begin(): Promise<void> {
    try {
      const first = await this.#beginSession();
      this.#serving = this.#serve(first);
      // The runner can be reached before its start is reported.
      await this.#options.bus.flush().catch(() => {});
      void this.#sessions.endEarlier(this.#earlierAnswered);
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async drain(limitMs: number): Promise<void> {
    this.#draining = true;
    const { log } = this.#options;
    const deadline = delay(limitMs, 'late' as const, { ref: false });
    await this.#active?.offers.stop();
    if ((await Promise.race([this.#idle(), deadline])) === 'late')
      log.warn(
        { stages: this.#running.size },
        'stages still run at the end of the drain; they are ended and count as lost',
      );
    else await Promise.race([this.#outbox.empty(), delay(ANSWERS_MS_MAX, undefined, { ref: false })]);
    await this.close();
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
    this.#writer.close();
  }

  async #beginSession(): Promise<ActiveSession> {
    const { bus, log, runnerId, labels, slots, leaseMs = RUNNER_LEASE_MS } = this.#options;
    const session = await Session.begin({
      ports: sessionPorts(bus, leaseMs),
      log,
      runner: runnerId,
      leaseMs,
      lease: (id) => this.#leaseOf(id),
      createExecutors: (guard) => this.#createExecutors(guard),
    });
    try {
      if (this.#options.isolationRequired === true && !session.executors.areIsolated) throw new NotIsolated();
      this.#sessions.begun(session.id);
    } catch (error) {
      // A full disk: nothing renews a lease, and no guard stands, for a session that does not begin.
      await session.end();
      throw error;
    }
    const credits = new Credits(bootClockMs);
    const offers = new Offers({
      bus,
      log,
      runner: runnerId,
      session: session.id,
      labels,
      slots: () => (this.#room.hasRoom() ? slots : 0),
      credits,
      schedulers: this.#schedulers,
      busy: () => this.#running.size,
    });
    this.#active = { session, credits, offers };
    this.#listen();
    log.info({ runner: runnerId, session: session.id, slots, labels }, 'the runner takes stages');
    offers.pump();
    return this.#active;
  }

  /**
   * Not before the first session has its lease: a grant to a session of an earlier process finds nobody then, and comes to
   * nothing at no cost (P12); answered by silence it would count as given.
   */
  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    const { bus, runnerId } = this.#options;
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

  /** Undefined where stages run as the runner does. */
  #userOf(executor: Executor): AttemptParts['userOf'] {
    const users = this.#users;
    return users !== undefined && executor.canChangeUser === true ? (key) => users.userOf(key) : undefined;
  }

  #createExecutors(guard: Guard): SessionExecutors {
    const executors = executorsOf(this.#options).map(({ source, parts }) => source.create(parts, guard));
    return new SessionExecutors(executors, this.#options.untrustedIsolation ?? 'none');
  }

  /** From one session to the next. */
  async #serve(first: ActiveSession): Promise<void> {
    const { log } = this.#options;
    for (let active = first; ;) {
      const why = await active.session.over;
      if (this.#closing !== null) return;
      log.warn({ session: active.session.id, why }, 'the session is over: what it ran is ended, and a new one begins');
      // RUNNER-4, before anything of it can report.
      this.#abandonAll();
      this.#ending = active.session.id;
      this.#active = null;
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
  async #endSession(session: Session): Promise<void> {
    await session.end(() => !this.#outbox.hasOf(session.id));
  }

  async #nextSession(): Promise<ActiveSession | null> {
    for (let tries = 0; this.#closing === null && !this.#draining; tries += 1) {
      try {
        const active = await this.#beginSession();
        if (this.#closing === null) return active;
        await active.session.end();
        return null;
      } catch (error) {
        this.#options.log.warn({ err: error }, 'a new session could not begin; it is tried again');
        await delay(backoffMs(tries + 1, BEGIN_BACKOFF));
      }
    }
    return null;
  }

  #leaseOf(session: string): RunnerLease {
    const { runnerId, labels, slots } = this.#options;
    const held = [...this.#held.values()].filter(({ ref }) => ref.session === session).map(({ ref }) => ref);
    const earlier = this.#outbox.pending.filter(({ request }) => request.session !== session);
    return {
      runner: runnerId,
      session,
      labels,
      slots,
      attempts: [...held, ...earlier.map(({ request }) => refOf(request))],
    };
  }

  /** P12. */
  #onJob(job: Job, call: Responder<JobReply>): JobReply | typeof LATER {
    const answer = (kind: JobReply['answer']): JobReply => ({ ...refOf(job), answer: kind });
    const id = resultId(job);
    const held = this.#held.get(id);
    if (held !== undefined && isSame(held.ref, job)) return answer('held');
    if (this.#outbox.has(job)) return answer('held');
    const active = this.#active;
    if (active === null || job.session !== active.session.id) {
      // Of another session: that one's lease decides.
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
      scheduler !== null && !this.#draining && !active.session.isOver && !this.#stops.has(job) && this.#room.hasRoom();
    if (!mayStart || !this.#outbox.reserve(job)) {
      active.offers.pump();
      return answer('refused');
    }
    this.#start(job, active, scheduler);
    return answer('accepted');
  }

  #start(job: Job, active: ActiveSession, scheduler: string): void {
    const { log, runnerId, graceMs } = this.#options;
    const id = resultId(job);
    const { partition } = job;
    const outgoingLog = this.#chunks.open(job.runId, runnerId);
    const { executor, place } = active.session.executors.assign(job);
    const attempt = new Attempt(job, {
      executor,
      place,
      workspaces: this.#folders.of(job.partition),
      userOf: executor && this.#userOf(executor),
      sources: this.#sources,
      outgoingLog,
      keep: (request) => this.#outbox.keep({ partition, request, chunks: outgoingLog.keep() }),
      isSessionActive: () => active.session.isActive(),
      log,
      graceMs,
    });
    this.#held.set(id, attempt);
    this.#running.add(attempt);
    const about = { runId: job.runId, stage: job.stage, attempt: job.attempt };
    void attempt.processGone.then(
      guarded('runner.attempt-gone', this.#border(about), () => this.#folders.used(job.runId, job.partition)),
    );
    const done = (): void => void this.#held.delete(id);
    const ended = (result: ResultRequest | null): void => {
      this.#running.delete(attempt);
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

  #sendResult(job: Job, active: ActiveSession, scheduler: string, done: () => void): void {
    const credit = active.offers.offerAlong(scheduler);
    this.#outbox.send(job, credit === null ? null : { scheduler, credit }, {
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
    if (held !== undefined && isSame(held.ref, request)) {
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
