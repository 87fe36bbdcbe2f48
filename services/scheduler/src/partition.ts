/**
 * The owner's side of one partition: decide, commit, act. Owns the live runs of the partition, the commit that fills
 * while another is under way, and everything that waits for an acknowledgement. Free of I/O and deterministic: the world
 * is its ports, and the simulation drives this very class.
 *
 *  I1 A command is decided on memory at once; its answer, its effects and its events to watchers go out when its commit
 *     is acknowledged, in the order of their decisions (P1).
 *  I2 One commit is under way at a time. A refused one means that this memory is worth nothing: `close` it, open anew (P2).
 *  I3 What is shown or stored is committed. Reads of a run whose decisions are ahead wait for their commit.
 *  I4 A run leaves memory only once it has settled and its last commit is projected (P6).
 *  I5 Nothing is answered before `start`, nor after `close` (P3).
 */
import type {
  CancelReply, CancelRequest, CreateReply, CreateRequest, GetReply, GetRequest, OpenReply, OpenRequest, OwnerErrorCode,
  OwnerRefusal, ResultReply, ResultRequest, RunnerLease, WatchReply, WatchRequest,
} from '@penstock/bus';
import { groupOf, nextDeadline, newRun, planOf, runIdTime, viewOf, type Decided, type RunCommand, type RunCreated, type RunEvent, type RunState } from '@penstock/run';
import { CommitBuilder, type CommitDraft } from './commit-builder.ts';
import { COMMIT_FORMAT, DECISION_BYTES_MAX, encodeCommit, encodeEvent, type CommitHead } from './commit.ts';
import { BadPipeline, type DefinitionSource } from './definitions.ts';
import { Deliveries, liveAttemptOf } from './deliveries.ts';
import type { Dispatch, ReadyStage } from './dispatch.ts';
import { ConcurrencyGroups } from './groups.ts';
import { Heap } from './heap.ts';
import { LiveRun } from './live-run.ts';
import type { PartitionPorts } from './ports.ts';

export interface PartitionSettings {
  readonly partition: number;
  readonly member: string;
  readonly epoch: number;
  readonly queueTimeoutMs: number;
  readonly logBytesMax: number;
  /** How long a runner may be without a session before its workspaces count as lost (P19). */
  readonly workspaceGraceMs: number;
  readonly liveRunsPerKeyMax: number;
}

/** Shared by the partitions of a scheduler. */
export interface SchedulerLoad {
  liveRuns: number;
  readonly liveRunsMax: number;
  /** Of JOURNAL's bytes, 0 to 1: from 0.8 no creates, from 0.95 no grants (P8). */
  journalUsed: number;
  /** Bytes of ended runs that the store has not taken yet; from 256 MiB no creates (P6). */
  unprojectedBytes: number;
}

/** What take-over read (P6): where the log stands and the runs that are still of interest. */
export interface RestoredPartition {
  /** Of the `opened` commit. */
  readonly sequence: number;
  readonly commitNumber: number;
  readonly runs: readonly LiveRun[];
}

const CREATES_STOP_AT = 0.8;
const GRANTS_STOP_AT = 0.95;
const UNPROJECTED_BYTES_MAX = 256 * 1024 * 1024;
/** Full commits waiting behind the one under way; beyond this the broker is too slow and new runs are refused. */
const DRAFTS_MAX = 16;
/** Ids of runs seen are remembered this long (P7). */
const IDS_REMEMBERED_MS = 60 * 60 * 1000;
/** About 30 MB; a partition that closes more runs in an hour asks the store about the ids of its older ones. */
const IDS_REMEMBERED_MAX = 200_000;
/** Ids in one word to a runner: 40 KB. After an outage of the store tens of thousands of runs are closed at once. */
const RELEASED_IDS_MAX = 1_000;
/** After opening, ids as old as this and younger ask the store: an earlier owner may have closed their runs (P7). */
const OPENED_SLACK_MS = 60 * 1000;
/** Of events in one answer to `watch`; more is asked for again. */
const WATCH_BYTES_MAX = 384 * 1024;
const RETRY_AFTER_SECS = 2;
/** Deadlines within this are kept as timers; all live runs are looked through for them every SWEEP_MS. */
const NEAR_MS = 3 * 60 * 1000;
const SWEEP_MS = 60 * 1000;

export class Partition {
  readonly settings: PartitionSettings;
  readonly #ports: PartitionPorts;
  readonly #dispatch: Dispatch;
  readonly #definitions: DefinitionSource;
  readonly #load: SchedulerLoad;
  readonly #runs = new Map<string, LiveRun>();
  readonly #liveByKey = new Map<string, number>();
  readonly #groups = new ConcurrencyGroups();
  readonly #deliveries: Deliveries;
  readonly #builder = new CommitBuilder();
  /** Deadlines of the next minutes; far ones are found by `#sweepDeadlines`, so that ended runs leave nothing behind here. */
  readonly #timers = new Heap<{ readonly at: number; readonly runId: string }>((a, b) => a.at < b.at);
  /** Runs whose documents are behind their commits. */
  readonly #dirty = new Set<LiveRun>();
  /** Settled and projected, but by a commit that the checkpoint has not reached. */
  readonly #leaving = new Set<LiveRun>();
  /** Ids of runs that have left memory, and when. */
  readonly #recentIds = new Map<string, number>();
  /** The latest time in an id that is remembered no more: those up to here ask the store (P7). */
  #idsForgottenTo = 0;
  /** Runners without a session that hold workspaces, and since when. */
  readonly #absentRunners = new Map<string, number>();
  #inFlight: CommitDraft | undefined;
  #sequence = 0;
  #commitNumber = 0;
  #openedAt = 0;
  #clock = 0;
  #sweptAt = 0;
  #open = false;
  #advancing = false;
  #released: (() => void) | undefined;

  constructor(settings: PartitionSettings, ports: PartitionPorts, shared: { readonly dispatch: Dispatch; readonly definitions: DefinitionSource; readonly load: SchedulerLoad }) {
    this.settings = settings;
    this.#ports = ports;
    this.#dispatch = shared.dispatch;
    this.#definitions = shared.definitions;
    this.#load = shared.load;
    this.#deliveries = new Deliveries(settings, ports, {
      inFlight: (run) => this.#inFlight?.runs.has(run.id) === true,
      returned: (run, stage, attempt) => this.#decideLater(run, { type: 'return-grant', at: this.#now(), stage, attempt }),
      undeliverable: (run, stage, attempt) =>
        this.#decideLater(run, { type: 'result', at: this.#now(), stage, attempt, status: 'failed', reason: 'quota', logBytes: 0 }),
    });
  }

  get open(): boolean {
    return this.#open;
  }

  /** The sequence of the last acknowledged commit. */
  get sequence(): number {
    return this.#sequence;
  }

  get commitNumber(): number {
    return this.#commitNumber;
  }

  get liveRuns(): Iterable<LiveRun> {
    return this.#runs.values();
  }

  // --- Opening and closing -----------------------------------------------------------------------------------------

  /** The log is ours from `restored.sequence` on: takes the runs over, and answers from now on. */
  start(restored: RestoredPartition): void {
    this.#sequence = restored.sequence;
    this.#commitNumber = restored.commitNumber;
    this.#openedAt = this.#now();
    this.#open = true;
    const inOrder = [...restored.runs].sort((a, b) => a.state.createdAt - b.state.createdAt || (a.id < b.id ? -1 : 1));
    for (const run of inOrder) {
      this.#adopt(run);
      this.#dirty.add(run);
    }
    for (const run of inOrder) this.#resume(run);
    // The end of the run before may have been committed, and the owner gone before this one's turn was.
    for (const run of inOrder) if (run.state.held && this.#isFirst(run)) this.#admit(run);
    this.#ports.projectSoon();
    this.#advance();
  }

  /** Decides nothing new; calls back when all that was decided is acknowledged, so that `released` can be appended. */
  release(then: () => void): void {
    this.#released = then;
    this.#advance();
  }

  /** Forgets everything, unanswered requests included; nothing is sent any more. */
  close(): void {
    this.#open = false;
    this.#load.liveRuns -= this.#runs.size;
    this.#runs.clear();
  }

  #adopt(run: LiveRun): void {
    this.#runs.set(run.id, run);
    this.#load.liveRuns += 1;
    const { key, group } = run.state;
    this.#liveByKey.set(key, (this.#liveByKey.get(key) ?? 0) + 1);
    if (group !== undefined && !run.settled) this.#groups.enter(key, group, run.id);
  }

  /** Takes up what an earlier owner left: waiting stages, timers, grants without a known answer, stops, lost sessions. */
  #resume(run: LiveRun): void {
    const { state } = run;
    const waiting = state.stages.filter((stage) => stage.status === 'QUEUED' && !run.ended).map((stage) => stage.name);
    this.#offer(run, waiting);
    // The run before it settled in one commit, and its own admission was to follow in the next.
    if (state.held && state.group !== undefined && this.#groups.isFirst(state.key, state.group, run.id)) this.#decide(run, { type: 'admit', at: this.#now() });
    const deadline = nextDeadline(state, run.plan, this.settings);
    if (deadline !== undefined) this.#wakeAt(run, deadline);
    for (const { name, live } of state.stages) {
      if (live === undefined) continue;
      if (!this.#dispatch.hasSession(live.session)) this.#loseAttempt(run, name, live.attempt, live.runner);
      else if (live.stopping === undefined) this.#deliveries.adopt(run, name, live.attempt);
      else this.#deliveries.stop(run, name, live.attempt);
    }
    for (const runner of Object.values(state.workspaces)) this.#watchRunner(runner);
    if (run.poison !== undefined && !run.ended) this.#quarantine(run, run.poison);
  }

  // --- Requests ----------------------------------------------------------------------------------------------------

  create(request: CreateRequest, reply: (reply: CreateReply) => void): void {
    if (!this.#accepts()) return;
    const known = this.#runs.get(request.runId);
    if (known !== undefined) {
      if (known.state.key !== request.key || known.state.tenant !== request.tenant) reply(this.#refusal('CONFLICT', 'another run has this id'));
      else this.#read(known, () => reply({ ok: true, created: false, epoch: this.settings.epoch, run: viewOf(known.committedState()) }));
      return;
    }
    const born = runIdTime(request.runId);
    const now = this.#now();
    const seen = this.#recentIds.has(request.runId);
    if (!seen && born > this.#idsForgottenTo && born >= now - IDS_REMEMBERED_MS && born >= this.#openedAt + OPENED_SLACK_MS) {
      this.#createNew(request, reply);
      return;
    }
    this.#ports.isStored(request.runId, (stored) => {
      if (!this.#accepts()) return;
      if (this.#runs.has(request.runId)) this.create(request, reply);
      else if (stored === 'unavailable') reply(this.#unavailable('the store does not answer'));
      else if (stored || this.#recentIds.has(request.runId)) reply({ ok: true, created: false, epoch: this.settings.epoch, run: null });
      else this.#createNew(request, reply);
    });
  }

  cancel(request: CancelRequest, reply: (reply: CancelReply) => void): void {
    if (!this.#accepts()) return;
    const run = this.#runs.get(request.runId);
    if (run === undefined || !request.tenants.includes(run.state.tenant)) {
      // What is not here is a read like any other: an owner that was frozen may have missed the run (P4).
      if (this.#mayAnswer()) reply(this.#refusal('NOT_FOUND', 'there is no such run'));
      return;
    }
    if (run.ended) {
      this.#read(run, () => reply(this.#refusal('CONFLICT', `the run has ended: ${run.state.status}`)));
      return;
    }
    this.#decide(run, { type: 'cancel', at: this.#now() });
    this.#whenCommitted(run, () => {
      const state = run.committedState();
      reply({ ok: true, epoch: this.settings.epoch, cancelledStages: state.cancelledStages ?? 0, run: viewOf(state) });
    });
    this.#advance();
  }

  get(request: GetRequest, reply: (reply: GetReply) => void): void {
    if (!this.#mayAnswer()) return;
    const found = new Set(request.runIds.flatMap((id) => this.#runs.get(id) ?? []));
    if (request.tenants !== undefined && request.newest !== undefined) {
      const { tenants } = request;
      const theirs = [...this.#runs.values()].filter((run) => tenants.includes(run.state.tenant)).sort((a, b) => (a.id < b.id ? 1 : -1));
      for (const run of theirs.slice(0, request.newest)) found.add(run);
    }
    const answer = (): void => {
      if (this.#mayAnswer()) reply({ ok: true, epoch: this.settings.epoch, runs: [...found].filter((run) => run.committedVersion > 0).map((run) => viewOf(run.committedState())) });
    };
    // What is ahead of its commit is answered with it: an older state than the asker may have seen is never shown.
    if ([...found].every((run) => run.isCommitted)) answer();
    else this.#afterLastDraft(answer);
  }

  watch(request: WatchRequest, reply: (reply: WatchReply) => void): void {
    if (!this.#mayAnswer()) return;
    const { epoch } = this.settings;
    const run = this.#runs.get(request.runId);
    if (run === undefined) {
      reply({ ok: true, epoch, run: null });
      return;
    }
    this.#read(run, () => {
      const events: RunEvent[] = [];
      let bytes = 0;
      for (let version = request.after; version < run.committedVersion && bytes < WATCH_BYTES_MAX; version++) {
        const event = run.events[version] as RunEvent;
        events.push(event);
        bytes += sizeOf(event);
      }
      const more = request.after + events.length < run.committedVersion;
      reply({ ok: true, epoch, run: { tenant: run.state.tenant, version: run.committedVersion, events, more } });
    });
  }

  openRuns(request: OpenRequest, reply: (reply: OpenReply) => void): void {
    if (!this.#mayAnswer()) return;
    reply({ ok: true, epoch: this.settings.epoch, open: request.runIds.filter((id) => this.#runs.has(id)) });
  }

  result(request: ResultRequest, runner: string, reply: (reply: ResultReply) => void): void {
    if (!this.#accepts()) return;
    const { epoch, member } = this.settings;
    const { offer } = request;
    const offerTaken = offer?.scheduler === member;
    if (offerTaken) this.#dispatch.addCredits(this.#now(), { runner, session: request.session, credits: [offer.credit] });
    const run = this.#runs.get(request.runId);
    const live = run && liveAttemptOf(run, request.stage);
    if (run === undefined || live?.attempt !== request.attempt || live.session !== request.session || live.credit !== request.credit || live.runner !== runner) {
      // Said only by an owner that is sure to be the owner, and only of what is committed (P7).
      const answer = (): void => { if (this.#mayAnswer()) reply({ ok: true, answer: 'obsolete', epoch, offerTaken }); };
      if (run === undefined) answer();
      else this.#whenCommitted(run, answer);
    } else {
      const { stage, attempt, status, reason, exitCode, outputs, logBytes } = request;
      this.#decide(run, { type: 'result', at: this.#now(), stage, attempt, status, reason, exitCode, outputs, logBytes });
      this.#whenCommitted(run, () => reply({ ok: true, answer: 'committed', epoch, offerTaken }));
    }
    this.#advance();
  }

  // --- What happens to runners -------------------------------------------------------------------------------------

  /** Credits or sessions have changed: see who can have them. */
  creditsChanged(): void {
    this.#advance();
  }

  leaseSeen(lease: RunnerLease): void {
    if (!this.#open) return;
    this.#absentRunners.delete(lease.runner);
    this.#deliveries.leaseLists(lease, (runId) => this.#runs.get(runId));
  }

  /** The broker says that the session's lease has run out, or that it was given up (P5). */
  sessionLost(session: string, runner: string): void {
    if (!this.#open) return;
    for (const run of this.#runs.values()) {
      for (const { name, live } of run.state.stages) {
        if (live?.session === session) this.#loseAttempt(run, name, live.attempt, live.runner);
      }
    }
    this.#watchRunner(runner);
  }

  /** Timers, repeats and clean-up; about every second, and when `nextWake` comes. */
  tick(): void {
    if (!this.#open) return;
    const now = this.#now();
    for (let timer = this.#timers.peek(); timer !== undefined && timer.at <= now; timer = this.#timers.peek()) {
      this.#timers.pop();
      const run = this.#runs.get(timer.runId);
      if (run?.wakeAt !== timer.at) continue;
      run.wakeAt = undefined;
      if (!run.ended) this.#decide(run, { type: 'wake', at: now });
    }
    if (now - this.#sweptAt >= SWEEP_MS) this.#sweepDeadlines(now);
    this.#deliveries.repeat();
    this.#forgetAbsentRunners(now);
    for (const [id, seenAt] of this.#recentIds) {
      if (seenAt >= now - IDS_REMEMBERED_MS && this.#recentIds.size <= IDS_REMEMBERED_MAX) break;
      this.#recentIds.delete(id);
      // The time in an id may be ahead of ours, so that it is younger than the time for which it was remembered.
      this.#idsForgottenTo = Math.max(this.#idsForgottenTo, runIdTime(id));
    }
    this.#advance();
  }

  /** When `tick` has a timer to handle, milliseconds since 1970; undefined: none. */
  nextWake(): number | undefined {
    return this.#timers.peek()?.at;
  }

  // --- Commit cycle ------------------------------------------------------------------------------------------------

  /** The commit under way is stored: show it, act on it, send the next. */
  acknowledged(sequence: number): void {
    const draft = this.#inFlight;
    if (!this.#open || draft === undefined) return;
    this.#inFlight = undefined;
    this.#sequence = sequence;
    this.#commitNumber += 1;
    for (const { run, id, from, to } of draft.runs.values()) {
      run.committedVersion = to;
      run.committedSequence = sequence;
      this.#dirty.add(run);
      this.#ports.publishEvents({ runId: id, epoch: this.settings.epoch, version: to, events: run.events.slice(from - 1, to) });
    }
    for (const act of draft.afterwards) act();
    this.#ports.projectSoon();
    this.#advance();
  }

  get dirtyRuns(): number {
    return this.#dirty.size;
  }

  /**
   * Up to `count` runs with commits that no document stands for yet, longest waiting first, with the state to store. The
   * state may be the machine's own: it is to be encoded before anything else is done.
   */
  takeDirty(count: number): { readonly run: LiveRun; readonly state: RunState; readonly events: readonly RunEvent[] }[] {
    const taken = [];
    for (const run of this.#dirty) {
      if (taken.length === count) break;
      this.#dirty.delete(run);
      if (run.committedVersion > 0) taken.push({ run, state: run.committedState(), events: run.events.slice(0, run.committedVersion) });
    }
    return taken;
  }

  /** The store did not take them: they are to be written again. */
  stillDirty(runs: Iterable<LiveRun>): void {
    for (const run of runs) if (this.#runs.get(run.id) === run) this.#dirty.add(run);
  }

  /** These runs' documents are written, and the checkpoint stands at `sequence`: settled runs behind it leave memory (I4, P6). */
  projected(sequence: number, runs: Iterable<LiveRun>): void {
    for (const run of runs) if (run.settled && run.isCommitted) this.#leaving.add(run);
    const released = new Map<string, string[]>();
    for (const run of this.#leaving) {
      if (run.committedSequence > sequence) continue;
      this.#leaving.delete(run);
      if (this.#runs.get(run.id) !== run) continue;
      this.#forget(run);
      for (const runner of new Set(Object.values(run.state.workspaces))) {
        const ids = released.get(runner);
        if (ids === undefined) released.set(runner, [run.id]);
        else ids.push(run.id);
      }
    }
    for (const [runner, runIds] of released) {
      for (let from = 0; from < runIds.length; from += RELEASED_IDS_MAX) this.#ports.release(runner, runIds.slice(from, from + RELEASED_IDS_MAX));
    }
  }

  #forget(run: LiveRun): void {
    this.#runs.delete(run.id);
    this.#dirty.delete(run);
    this.#load.liveRuns -= 1;
    const { key } = run.state;
    const left = (this.#liveByKey.get(key) ?? 1) - 1;
    if (left > 0) this.#liveByKey.set(key, left);
    else this.#liveByKey.delete(key);
    this.#recentIds.delete(run.id);
    this.#recentIds.set(run.id, this.#now());
  }

  /** Gives free slots to waiting stages, then sends the next commit if none is under way. */
  #advance(): void {
    if (!this.#open) return;
    this.#advancing = true;
    if (this.#load.journalUsed < GRANTS_STOP_AT && this.#ports.mayAct() && this.#released === undefined) {
      this.#dispatch.match(this.#now());
    }
    this.#advancing = false;
    this.#send();
  }

  #send(): void {
    if (this.#inFlight !== undefined) return;
    const draft = this.#builder.take();
    if (draft === undefined) {
      this.#released?.();
      return;
    }
    this.#inFlight = draft;
    const { partition, epoch, member } = this.settings;
    const head: CommitHead = {
      id: this.#ports.newCommitId(), kind: 'runs', partition, epoch, number: this.#commitNumber + 1, owner: member, minReader: COMMIT_FORMAT, at: this.#now(),
    };
    this.#ports.append(encodeCommit(head, draft.runs.values()), { commitId: head.id, expectedSequence: this.#sequence });
  }

  // --- Decisions ---------------------------------------------------------------------------------------------------

  #createNew(request: CreateRequest, reply: (reply: CreateReply) => void): void {
    const refusal = this.#admission(request);
    if (refusal !== undefined) {
      reply(refusal);
      return;
    }
    let run: LiveRun;
    try {
      run = this.#newRun(request);
    } catch (error) {
      if (!(error instanceof BadPipeline)) throw error;
      reply(this.#refusal('BAD_USER_INPUT', error.message));
      return;
    }
    const { key, group } = run.state;
    const before = group === undefined ? [] : this.#groups.members(key, group);
    this.#adopt(run);
    const decided = run.tell({ type: 'start', at: run.state.createdAt, held: before.length > 0 ? 'group' : undefined });
    this.#join(run, 1, [run.events[0] as RunEvent, ...(decided?.events ?? [])], decided);
    if (run.definition.concurrency?.cancelInProgress === true) {
      // The last first, so that none has its turn on the way.
      for (const id of before.toReversed()) this.#cancelSuperseded(id);
    }
    this.#whenCommitted(run, () => reply({ ok: true, created: true, epoch: this.settings.epoch, run: viewOf(run.committedState()) }));
    this.#advance();
  }

  #newRun(request: CreateRequest): LiveRun {
    const { runId, tenant, key, yaml, origin, priority = 0 } = request;
    const definition = this.#definitions.of(yaml);
    const base: RunCreated = { type: 'run_created', at: this.#now(), tenant, key, pipelineName: definition.name, yaml, priority, origin };
    const plan = planOf(definition);
    const group = groupOf(newRun(runId, base, plan), plan);
    // The order of a group is that of its runs' times, at a take-over too: no two have the same.
    const last = group === undefined ? undefined : this.#runs.get(this.#groups.last(key, group) ?? '');
    const created = group === undefined ? base : { ...base, group, at: Math.max(base.at, (last?.state.createdAt ?? 0) + 1) };
    if (Buffer.byteLength(encodeEvent(created)) > DECISION_BYTES_MAX / 2) throw new BadPipeline('the pipeline is too large to be stored');
    // They stand in one commit, with the text: when all of them are queued at once, or skipped.
    const names = plan.stages.reduce((sum, { definition: { name } }) => sum + Buffer.byteLength(JSON.stringify(name)) + 1, 0);
    if (names > DECISION_BYTES_MAX / 2) throw new BadPipeline('the names of the stages are too long to be stored');
    return LiveRun.create(runId, definition, created, this.settings);
  }

  #isFirst({ id, state: { key, group } }: LiveRun): boolean {
    return group !== undefined && this.#groups.members(key, group)[0] === id;
  }

  #cancelSuperseded(runId: string): void {
    const run = this.#runs.get(runId);
    if (run !== undefined && !run.ended) this.#decide(run, { type: 'cancel', at: this.#now() });
  }

  #admission(request: CreateRequest): OwnerRefusal | undefined {
    if (this.#load.journalUsed >= CREATES_STOP_AT) return this.#unavailable('the journal is nearly full');
    if (this.#load.unprojectedBytes >= UNPROJECTED_BYTES_MAX) return this.#unavailable('the store is too far behind');
    if (this.#load.liveRuns >= this.#load.liveRunsMax) return this.#unavailable('too many runs are live');
    if ((this.#liveByKey.get(request.key) ?? 0) >= this.settings.liveRunsPerKeyMax) return this.#unavailable(`too many runs of '${request.key}' are live`);
    if (this.#builder.waiting >= DRAFTS_MAX) return this.#unavailable('the journal is too slow');
    return undefined;
  }

  /** Tells the run's machine; what it decides joins the next commit. */
  #decide(run: LiveRun, command: RunCommand): boolean {
    const from = run.events.length + 1;
    const decided = run.tell(command);
    if (decided === undefined) return false;
    this.#join(run, from, decided.events, decided);
    return true;
  }

  /** For answers that arrive by themselves: nothing follows them in the same turn. */
  #decideLater(run: LiveRun, command: RunCommand): void {
    if (!this.#open || this.#runs.get(run.id) !== run) return;
    this.#decide(run, command);
    this.#advance();
  }

  #join(run: LiveRun, from: number, events: readonly RunEvent[], decided: Decided | undefined): void {
    const draft = events.length > 0 ? this.#builder.add(run, from, events) : undefined;
    for (const effect of decided?.effects ?? []) {
      switch (effect.type) {
        case 'offer-stages':
          this.#offer(run, effect.stages);
          break;
        case 'wake-at':
          this.#wakeAt(run, effect.at);
          break;
        case 'send-grant':
          draft?.afterwards.push(() => this.#deliveries.grant(run, effect.stage, effect.attempt));
          break;
        case 'stop-attempt':
          draft?.afterwards.push(() => this.#deliveries.stop(run, effect.stage, effect.attempt));
          break;
        case 'settle':
          this.#settled(run);
          break;
      }
    }
  }

  #offer(run: LiveRun, stages: readonly string[]): void {
    for (const stage of stages) this.#dispatch.offer(this.#readyStage(run, stage));
  }

  #readyStage(run: LiveRun, stage: string): ReadyStage {
    const index = run.plan.indexOf.get(stage) ?? -1;
    const planned = run.plan.stages[index];
    return {
      key: run.state.key,
      priority: run.state.priority,
      labels: planned?.definition.runsOn ?? [],
      labelSet: planned?.labelSet ?? '',
      stage,
      waits: () => this.#released === undefined && this.#runs.get(run.id) === run && run.state.stages[index]?.status === 'QUEUED',
      boundTo: () => (planned?.definition.workspace === 'shared' ? run.state.workspaces[planned.labelSet] : undefined),
      grant: ({ runner, session, credit }) => {
        const taken = this.#decide(run, { type: 'grant', at: this.#now(), stage, runner, session, credit });
        // Matched on behalf of another partition: nobody else sends this one's commit.
        if (taken && !this.#advancing) this.#send();
        return taken;
      },
    };
  }

  /** Frees the run's place in its group; the next one is admitted in the same commit. */
  #settled(run: LiveRun): void {
    const { key, group } = run.state;
    if (group === undefined) return;
    const next = this.#runs.get(this.#groups.leave(key, group, run.id) ?? '');
    if (next !== undefined) this.#admit(next);
  }

  /** Its turn has come. What could not be restored has not its own stages, and must not go on without them. */
  #admit(run: LiveRun): void {
    if (run.poison !== undefined) this.#quarantine(run, run.poison);
    else this.#decide(run, { type: 'admit', at: this.#now() });
  }

  #quarantine(run: LiveRun, cause: string): void {
    this.#decide(run, { type: 'quarantine', at: this.#now(), cause });
  }

  #wakeAt(run: LiveRun, at: number): void {
    if (at - this.#now() > NEAR_MS || (run.wakeAt !== undefined && run.wakeAt <= at)) return;
    run.wakeAt = at;
    this.#timers.push({ at, runId: run.id });
  }

  #sweepDeadlines(now: number): void {
    this.#sweptAt = now;
    for (const run of this.#runs.values()) {
      const deadline = nextDeadline(run.state, run.plan, this.settings);
      if (deadline !== undefined) this.#wakeAt(run, deadline);
    }
  }

  #loseAttempt(run: LiveRun, stage: string, attempt: number, runner: string): void {
    this.#ports.storedLogBytes({ runId: run.id, runner, stage, attempt }, (logBytes) => {
      this.#decideLater(run, { type: 'lose', at: this.#now(), stage, attempt, logBytes });
    });
  }

  #watchRunner(runner: string): void {
    if (!this.#dispatch.hasRunner(runner) && !this.#absentRunners.has(runner)) this.#absentRunners.set(runner, this.#now());
  }

  #forgetAbsentRunners(now: number): void {
    for (const [runner, since] of this.#absentRunners) {
      if (now - since < this.settings.workspaceGraceMs) continue;
      this.#absentRunners.delete(runner);
      if (this.#dispatch.hasRunner(runner)) continue;
      for (const run of this.#runs.values()) this.#decide(run, { type: 'lose-workspace', at: now, runner });
    }
  }

  // --- Waiting for commits -------------------------------------------------------------------------------------------

  /** Calls back once everything decided about the run so far is acknowledged; at once where it is. */
  #whenCommitted(run: LiveRun, then: () => void): void {
    if (run.isCommitted) then();
    else this.#afterLastDraft(then);
  }

  /** The same for an answer that shows state: only while the owner is sure to be it (P4). */
  #read(run: LiveRun, then: () => void): void {
    this.#whenCommitted(run, () => { if (this.#mayAnswer()) then(); });
  }

  #afterLastDraft(then: () => void): void {
    const draft = this.#builder.last ?? this.#inFlight;
    if (draft === undefined) then();
    else draft.afterwards.push(then);
  }

  #accepts(): boolean {
    return this.#open && this.#released === undefined;
  }

  #mayAnswer(): boolean {
    return this.#open && this.#ports.mayAct();
  }

  #refusal(code: OwnerErrorCode, message: string): OwnerRefusal {
    return { ok: false, code, message, epoch: this.settings.epoch };
  }

  #unavailable(message: string): OwnerRefusal {
    return { ...this.#refusal('UNAVAILABLE', message), retryAfterSecs: RETRY_AFTER_SECS };
  }

  /** Never runs backwards, whatever the machine's clock does. */
  #now(): number {
    this.#clock = Math.max(this.#clock, this.#ports.now());
    return this.#clock;
  }
}

/** Roughly, in bytes: enough to bound an answer. */
function sizeOf(event: RunEvent): number {
  if (event.type === 'run_created') return event.yaml.length + 200;
  return 160 + ('outputs' in event && event.outputs !== undefined ? JSON.stringify(event.outputs).length : 0) + (event.type === 'stages_queued' ? event.stages.length * 40 : 0);
}
