/**
 * The owner's side of one partition: decide, commit, act. Owns the live runs of the partition and what is decided about
 * them; what its keys may do is kept by `ConcurrencySlots` and `KeyCounts`, its commits by `CommitCycle`. Free of I/O and
 * deterministic: the world is its ports, and the simulation drives this very class.
 *
 *  PARTITION-1 A command is decided on memory at once; its answer, its effects and its events to watchers go out when its commit
 *     is acknowledged, in the order of their decisions (P1).
 *  PARTITION-2 One commit is under way at a time. A refused one means that this memory is worth nothing: `close` it, open anew (P2).
 *  PARTITION-3 What is shown or stored is committed. Reads of a run whose decisions are ahead wait for their commit.
 *  PARTITION-4 A run leaves memory only once its last commit is projected, and it has settled (P6) or is parked (`Parking`).
 *  PARTITION-5 Nothing is answered, offered or sent before the last slice of `opening`, nor after `close` (P3).
 */
import type {
  ApproveReply,
  ApproveRequest,
  AttemptReply,
  AttemptRequest,
  CancelReply,
  CancelRequest,
  CommittedEvents,
  CreateReply,
  CreateRequest,
  DecideReply,
  DecideRequest,
  DeleteReply,
  DeleteRequest,
  GetReply,
  GetRequest,
  OpenReply,
  OpenRequest,
  PauseReply,
  PauseRequest,
  ResultReply,
  ResultRequest,
  RunnerLease,
  WaitsReply,
  WaitsRequest,
  SchedulesReply,
  SchedulesRequest,
  SetScheduleReply,
  SetScheduleRequest,
  WatchReply,
  WatchRequest,
} from '@penstock/bus';
import type { RunId, Sequence } from '@penstock/run';
import type { StoredStanding } from '@penstock/store';
import { HeldAttempts } from './held-attempts.ts';
import { AbsentRunners } from './absent-runners.ts';
import { CommitCycle } from './commit-cycle.ts';
import { Deletions, type DirtyDeletion } from './deletions.ts';
import { Decisions } from './decisions.ts';
import { AwakeRuns } from '../run/awake-runs.ts';
import { Deadlines } from '../run/deadlines.ts';
import type { DefinitionSource } from '../run/definitions.ts';
import { JobDeliveries } from '../dispatch/job-deliveries.ts';
import type { Dispatch } from '../dispatch/dispatch.ts';
import { KeyCounts, type KeyCounter } from '../admission/key-counts.ts';
import { HeldBytes } from '../run/held-bytes.ts';
import { RunLengths } from '../run/lengths.ts';
import type { LiveRun } from '../run/live-run.ts';
import { NewestRuns } from '../run/newest-runs.ts';
import { RunPhases, type RunPhase } from '../run/run-phases.ts';
import { WideMap } from '../run/wide-map.ts';
import type { PartitionSettings } from './partition-settings.ts';
import type { RestoredPartition } from './restored-partition.ts';
import { Resumption } from './resumption.ts';
import { RunBorder } from './run-border.ts';
import { Adoptions } from './adoptions.ts';
import { Approvals } from './approvals.ts';
import { PullRequests } from '../admission/pull-requests.ts';
import { PartitionInvariants } from './partition-invariants.ts';
import { RunRequests } from './run-requests.ts';
import type { ReadAdded } from './results.ts';
import { RunCreation } from './run-creation.ts';
import { RunnerRuns } from './runner-runs.ts';
import { ConcurrencySlots, turnOf } from '../admission/concurrency-slots.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { Offers } from '../dispatch/offers.ts';
import { OutsideRuns } from './outside-runs.ts';
import { Parents, type ReadParent } from './parents.ts';
import { Parking } from './parking.ts';
import { openPartition, type PartitionOpeningHost } from './partition-opening.ts';
import { ProjectionBacklog, type DirtyRun } from './projection-backlog.ts';
import { releasesOf } from './releases.ts';
import { Reads } from './reads.ts';
import { RememberedIds } from './remembered-ids.ts';
import { Schedules, type DirtySchedule } from './schedules.ts';
import { SlotsInUse } from './slots-in-use.ts';
import { Waits } from './waits.ts';
import { mayGrant, type SchedulerLoad } from '../run/scheduler-load.ts';

/** Runs about which something is decided, or looked at, in one turn for all of what is due: 0.2 ms each. */
const DECISIONS_AT_ONCE = 40;

export class Partition {
  readonly settings: PartitionSettings;
  readonly #ports: PartitionPorts;
  readonly #dispatch: Dispatch;
  readonly #definitions: DefinitionSource;
  readonly #load: SchedulerLoad;
  readonly #runs = new WideMap<RunId, LiveRun>((id) => id);
  readonly #slots: ConcurrencySlots;
  readonly #counts = new KeyCounts();
  readonly #cycle: CommitCycle;
  readonly #reads: Reads;
  readonly #creation: RunCreation;
  readonly #pulls: PullRequests;
  readonly #approvals: Approvals;
  readonly #decisions: Decisions;
  readonly #requests: RunRequests;
  readonly #invariants: PartitionInvariants;
  readonly #border: RunBorder;
  readonly #parking: Parking;
  readonly #outside: OutsideRuns;
  readonly #newest = new NewestRuns();
  readonly #phases = new RunPhases();
  readonly #held: HeldBytes;
  readonly #jobs: JobDeliveries;
  readonly #deadlines: Deadlines;
  readonly #awake = new AwakeRuns();
  readonly #backlog = new ProjectionBacklog();
  readonly #ids = new RememberedIds();
  readonly #absentRunners: AbsentRunners;
  readonly #runnerRuns: RunnerRuns;
  readonly #slotsInUse: SlotsInUse;
  readonly #lengths: RunLengths;
  readonly #waits: Waits;
  /** The last match has left something to the next. */
  #matchesMore = false;
  readonly #heldAttempts: HeldAttempts;
  readonly #offers: Offers;
  readonly #resumption: Resumption;
  readonly #schedules: Schedules;
  readonly #parents: Parents;
  readonly #adoptions: Adoptions;
  readonly #deletions: Deletions;
  readonly #openingHost: PartitionOpeningHost;
  #open = false;
  #advancing = false;
  #released: (() => void) | undefined;

  constructor(
    settings: PartitionSettings,
    ports: PartitionPorts,
    shared: {
      readonly dispatch: Dispatch;
      readonly definitions: DefinitionSource;
      readonly load: SchedulerLoad;
      /** Reads the text of a run to be made where that holds up nobody. Answers as the ports do, or at once. */
      readText(request: CreateRequest, then: (source: DefinitionSource) => void): void;
      /** Makes a run anew from its document; null: there is none. Answers as the ports do. */
      readRun(runId: RunId, then: (run: ReadParent) => void): void;
    },
  ) {
    this.settings = settings;
    this.#ports = ports;
    this.#dispatch = shared.dispatch;
    this.#definitions = shared.definitions;
    this.#load = shared.load;
    this.#held = new HeldBytes(shared.load);
    this.#cycle = new CommitCycle(settings, ports);
    this.#parking = new Parking({
      load: shared.load,
      bytesOfKey: (key) => this.#held.ofKey(key),
      slotsOf: (key) => this.#slots.use(key),
      read: (runId, then) =>
        shared.readRun(runId, (run) => {
          if (run === null) ports.warn({ runId }, 'the document of an open run is not in the store; asked for again');
          then(run ?? 'unavailable');
        }),
      unparked: (runId) => this.#outside.unparked(runId),
      enter: (run, parked) => this.#outside.enter(run, parked),
      advance: () => this.#advance(),
      broken: (error) => ports.broken(error),
    });
    this.#reads = new Reads({
      epoch: settings.epoch,
      runs: this.#runs,
      parking: this.#parking,
      newest: this.#newest,
      counts: this.#counts,
      cycle: this.#cycle,
      mayAnswer: () => this.#mayAnswer(),
    });
    this.#border = new RunBorder({
      ports,
      holdsAllOf: (run) => this.#cycle.holdsAllOf(run),
      quarantine: (run, cause) => this.#decisions.quarantine(run, cause),
    });
    this.#deadlines = new Deadlines();
    this.#absentRunners = new AbsentRunners(settings.workspaceGraceMs);
    this.#runnerRuns = new RunnerRuns(shared.dispatch);
    this.#slotsInUse = new SlotsInUse(shared.dispatch.keySlots);
    this.#lengths = new RunLengths(shared.dispatch.lengths);
    this.#heldAttempts = new HeldAttempts(
      shared.dispatch,
      () => ports.mayDeclareLoss(),
      (...lost) => this.#decisions.loseAttempt(...lost),
    );
    this.#pulls = new PullRequests(settings);
    this.#slots = new ConcurrencySlots({
      turnOf: (runId) => {
        const state = this.#runs.get(runId)?.state ?? this.#parking.find(runId);
        return state && turnOf(state);
      },
      admit: (runId) => this.#outside.admit(runId),
      recall: (runId) => this.#parking.recalled(runId),
    });
    this.#decisions = new Decisions({
      ports,
      runs: this.#runs,
      cycle: this.#cycle,
      border: this.#border,
      parking: this.#parking,
      held: this.#held,
      phases: this.#phases,
      awake: this.#awake,
      deadlines: this.#deadlines,
      slots: this.#slots,
      slotsInUse: this.#slotsInUse,
      lengths: this.#lengths,
      pulls: this.#pulls,
      runnerRuns: this.#runnerRuns,
      parts: () => ({ jobs: this.#jobs, offers: this.#offers, resumption: this.#resumption }),
      isOpen: () => this.#open,
      isReleasing: () => this.#released !== undefined,
      advance: () => this.#advance(),
      sendUnlessAdvancing: () => {
        if (!this.#advancing) this.#send();
      },
    });
    this.#outside = new OutsideRuns({
      parking: this.#parking,
      runs: this.#runs,
      newest: this.#newest,
      held: this.#held,
      phases: this.#phases,
      awake: this.#awake,
      slots: this.#slots,
      counts: this.#counts,
      deadlines: this.#deadlines,
      backlog: this.#backlog,
      border: this.#border,
      bootNow: () => ports.bootNow(),
      offerWaiting: (run) => this.#decisions.offerWaiting(run),
      decide: (run, type) => void this.#decisions.decide(run, { type, at: this.#decisions.at(run) }),
      quarantine: (run, cause) => this.#decisions.quarantine(run, cause),
    });
    this.#parents = new Parents({
      runs: this.#runs,
      parking: this.#parking,
      cycle: this.#cycle,
      readStored: (runId, then) => shared.readRun(runId, then),
      isDeleted: (runId) => this.#deletions.has(runId),
    });
    this.#adoptions = new Adoptions({
      parents: this.#parents,
      cycle: this.#cycle,
      has: (run) => this.#runs.get(run.id) === run,
      decide: (run, command) => void this.#decisions.decide(run, command),
      at: (run) => this.#decisions.at(run),
      advance: () => this.#advance(),
    });
    this.#deletions = new Deletions({
      epoch: settings.epoch,
      ports,
      runs: this.#runs,
      cycle: this.#cycle,
      parkedTenant: (runId) => this.#parking.find(runId)?.tenant,
      removed: (tenant, sequence) => this.#cycle.changes.removed(tenant, sequence),
      isTakenFrom: (runId) => this.#parents.isReading(runId) || this.#adoptions.isTakenFrom(runId),
      accepts: () => this.#accepts(),
      mayAnswer: () => this.#mayAnswer(),
      advance: () => this.#advance(),
    });
    this.#creation = new RunCreation({
      settings,
      ports,
      load: shared.load,
      held: this.#held,
      runs: this.#runs,
      parking: this.#parking,
      ids: this.#ids,
      slots: this.#slots,
      counts: this.#counts,
      pulls: this.#pulls,
      cycle: this.#cycle,
      reads: this.#reads,
      bootNow: () => this.#ports.bootNow(),
      now: () => this.#ports.now(),
      accepts: () => this.#accepts(),
      mayAnswer: () => this.#mayAnswer(),
      remember: (run) => this.#remember(run),
      begin: (run, start) => this.#decisions.begin(run, start),
      parents: this.#parents,
      adopt: (run, lists) => this.#adoptions.begin(run, lists),
      supersede: (runId) => this.#outside.supersede(runId),
      cancel: (run) => void this.#decisions.decide(run, { type: 'cancel', at: this.#decisions.at(run) }),
      giveUp: (run) => void this.#decisions.decide(run, { type: 'give-up', at: this.#decisions.at(run) }),
      advance: () => this.#advance(),
    });
    this.#approvals = new Approvals({
      epoch: settings.epoch,
      runs: this.#runs,
      slots: this.#slots,
      counts: this.#counts,
      cycle: this.#cycle,
      reads: this.#reads,
      at: (run) => this.#decisions.at(run),
      accepts: () => this.#accepts(),
      mayAnswer: () => this.#mayAnswer(),
      decide: (run, command) => this.#decisions.decide(run, command),
      supersede: (runId) => this.#outside.supersede(runId),
      advance: () => this.#advance(),
    });
    this.#requests = new RunRequests({
      settings,
      runs: this.#runs,
      parking: this.#parking,
      dispatch: shared.dispatch,
      cycle: this.#cycle,
      reads: this.#reads,
      decisions: this.#decisions,
      bootNow: () => ports.bootNow(),
      accepts: () => this.#accepts(),
      mayAnswer: () => this.#mayAnswer(),
      advance: () => this.#advance(),
    });
    this.#waits = new Waits({
      epoch: settings.epoch,
      ports,
      runs: this.#runs,
      parking: this.#parking,
      slots: this.#slots,
      dispatch: shared.dispatch,
      cycle: this.#cycle,
      load: shared.load,
      controls: shared.dispatch.controls,
      mayAnswer: () => this.#mayAnswer(),
      isReleasing: () => this.#released !== undefined,
    });
    this.#invariants = new PartitionInvariants({
      runs: this.#runs,
      slots: this.#slots,
      counts: this.#counts,
      slotsInUse: this.#slotsInUse,
      pulls: this.#pulls,
      phases: this.#phases,
      cycle: this.#cycle,
      parking: this.#parking,
    });
    this.#jobs = new JobDeliveries(settings, ports, {
      inFlight: (run) => this.#cycle.isUnderWay(run),
      returned: (run, stage, attempt) =>
        this.#decisions.decideLater(run, { type: 'return-grant', at: this.#decisions.at(run), stage, attempt }),
      gone: (run, stage, attempt, runner) => this.#decisions.loseAttempt(run, stage, attempt, runner, () => true),
      undeliverable: (run, stage, attempt) =>
        this.#decisions.decideLater(run, {
          type: 'result',
          at: this.#decisions.at(run),
          stage,
          attempt,
          status: 'failed',
          reason: 'quota',
          logBytes: 0,
        }),
    });
    this.#offers = new Offers(shared.dispatch);
    this.#resumption = new Resumption({
      dispatch: shared.dispatch,
      heldAttempts: this.#heldAttempts,
      jobs: this.#jobs,
      border: this.#border,
      bootNow: () => ports.bootNow(),
      has: (run) => this.#runs.get(run.id) === run,
      watchRunner: (runner) => this.#watchRunner(runner),
    });
    this.#schedules = new Schedules({
      epoch: settings.epoch,
      ports,
      cycle: this.#cycle,
      creation: this.#creation,
      isKnown: (runId) => this.#runs.has(runId) || this.#parking.find(runId) !== undefined || this.#ids.has(runId),
      readText: (request, then) => shared.readText(request, then),
      accepts: () => this.#accepts(),
      mayAnswer: () => this.#mayAnswer(),
      mayFire: () => this.#accepts() && this.#mayAnswer(),
      advance: () => this.#advance(),
    });
    this.#openingHost = {
      settings,
      ports,
      load: shared.load,
      cycle: this.#cycle,
      ids: this.#ids,
      held: this.#held,
      backlog: this.#backlog,
      runnerRuns: this.#runnerRuns,
      slotsInUse: this.#slotsInUse,
      lengths: this.#lengths,
      counts: this.#counts,
      pulls: this.#pulls,
      slots: this.#slots,
      parking: this.#parking,
      newest: this.#newest,
      deadlines: this.#deadlines,
      resumption: this.#resumption,
      adoptions: this.#adoptions,
      deletions: this.#deletions,
      border: this.#border,
      schedules: this.#schedules,
      remember: (run) => this.#remember(run),
      offerWaiting: (run) => this.#decisions.offerWaiting(run),
      supersede: (runId) => this.#outside.supersede(runId),
      quarantine: (run, cause) => this.#decisions.quarantine(run, cause),
    };
  }

  get open(): boolean {
    return this.#open;
  }

  /** The sequence of the last acknowledged commit. */
  get sequence(): number {
    return this.#cycle.sequence;
  }

  get commitNumber(): number {
    return this.#cycle.number;
  }

  /** The latest time in an id of a run of the partition (P7). */
  get idsTo(): number {
    return this.#cycle.idsTo;
  }

  /** How many of its open runs wait outside of memory. */
  get parkedRuns(): number {
    return this.#parking.out;
  }

  get runsInMemory(): number {
    return this.#runs.size;
  }

  /** How many runs in memory are in which phase. */
  get phases(): ReadonlyMap<RunPhase, number> {
    return this.#phases.counts;
  }

  get liveRuns(): Iterable<LiveRun> {
    return this.#runs.values();
  }

  // --- Opening and closing -----------------------------------------------------------------------------------------

  /** The log is ours from `restored.sequence` on: takes the runs over slice by slice, and answers from the end of the last one on. */
  *opening(restored: RestoredPartition): Generator<void, void> {
    yield* openPartition(this.#openingHost, restored);
    this.#open = true;
    this.#offers.open();
    this.#parking.fill();
    this.#ports.projectSoon();
    this.#advance();
    this.#resumption.goOn();
    this.#adoptions.goOn();
  }

  /** Decides nothing new; calls back when all that was decided is acknowledged, so that `released` can be appended. */
  release(then: () => void): void {
    this.#released = then;
    this.#advance();
  }

  /** Forgets everything, unanswered requests included; nothing is sent any more. */
  close(): void {
    this.#open = false;
    this.#load.liveRuns -= this.#runs.size + this.#parking.out;
    this.#parking.clear();
    this.#outside.clear();
    this.#newest.clear();
    this.#held.clear();
    this.#phases.clear();
    this.#awake.clear();
    this.#offers.clear();
    this.#resumption.clear();
    this.#parents.clear();
    this.#adoptions.clear();
    this.#deletions.clear();
    this.#slotsInUse.clear();
    this.#lengths.clear();
    this.#pulls.clear();
    this.#schedules.clear();
    this.#runs.clear();
  }

  /** Between two steps. Throws InvariantBroken. */
  assertInvariants(): void {
    if (this.#open) this.#invariants.assertAll();
  }

  /** The same of some of the runs, where all of them are more than one turn is for. */
  sampleInvariants(): void {
    if (this.#open) this.#invariants.assertSample();
  }

  // --- Requests ----------------------------------------------------------------------------------------------------

  /** `definitions` has what the request's text means where it was read before; else it is read here. */
  create(request: CreateRequest, reply: (reply: CreateReply) => void, definitions = this.#definitions): void {
    this.#creation.create(request, reply, definitions);
  }

  cancel(request: CancelRequest, reply: (reply: CancelReply) => void): void {
    this.#requests.cancel(request, reply);
  }

  /** A closed run is deleted (P34). */
  delete(request: DeleteRequest, reply: (reply: DeleteReply) => void): void {
    this.#deletions.delete(request, reply);
  }

  /** Of closed runs that are too old as many are deleted as can be; how many. */
  expire(runs: readonly (StoredStanding & { readonly id: RunId })[]): number {
    return this.#open ? this.#deletions.expire(runs.slice(0, this.#deletions.room)) : 0;
  }

  approve(request: ApproveRequest, reply: (reply: ApproveReply) => void): void {
    this.#approvals.approve(request, reply);
  }

  /** Somebody approves or rejects a stage (P26). */
  decide(request: DecideRequest, reply: (reply: DecideReply) => void): void {
    this.#requests.decideGate(request, reply);
  }

  get(request: GetRequest, reply: (reply: GetReply) => void): void {
    this.#reads.get(request, reply);
  }

  watch(request: WatchRequest, reply: (reply: WatchReply) => void): void {
    this.#reads.watch(request, reply);
  }

  waits(request: WaitsRequest, reply: (reply: WaitsReply) => void): void {
    this.#waits.ask(request, reply);
  }

  openRuns(request: OpenRequest, reply: (reply: OpenReply) => void): void {
    this.#reads.open(request, reply);
  }

  attempt(request: AttemptRequest, reply: (reply: AttemptReply) => void): void {
    this.#reads.attempt(request, this.settings.artifactExpireMs, reply);
  }

  setSchedule(request: SetScheduleRequest, reply: (reply: SetScheduleReply) => void): void {
    this.#schedules.set(request, reply);
  }

  schedules(request: SchedulesRequest, reply: (reply: SchedulesReply) => void): void {
    this.#schedules.list(request, reply);
  }

  pauseSchedule(request: PauseRequest, reply: (reply: PauseReply) => void): void {
    this.#schedules.pause(request, reply);
  }

  /** How what the result adds to its run is to be read before `result`; undefined: it adds nothing. */
  addedOptions(request: ResultRequest, runner: string): ReturnType<RunRequests['addedOptions']> {
    return this.#requests.addedOptions(request, runner);
  }

  result(request: ResultRequest, runner: string, reply: (reply: ResultReply) => void, added?: ReadAdded): void {
    this.#requests.result(request, runner, reply, added);
  }

  // --- What happens to runners -------------------------------------------------------------------------------------

  /** Credits or sessions have changed: see who can have them. */
  creditsChanged(): void {
    this.#advance();
  }

  leaseSeen(lease: RunnerLease): void {
    if (!this.#open) return;
    this.#absentRunners.delete(lease.runner);
    this.#runnerRuns.seen(lease.runner, lease.session, lease.labels);
    // An attempt that nobody knows of any more is stopped by the run that it is of.
    for (const { runId } of lease.attempts)
      if (this.#parking.find(runId) !== undefined) this.#parking.bringBack(runId, () => {});
    this.#jobs.leaseLists(lease, (runId) => {
      const run = this.#runs.get(runId);
      if (run !== undefined) this.#resumption.resume(run);
      return run;
    });
  }

  /** The broker says that the session's lease has run out, or that it was given up (P5). */
  sessionLost(session: string, runner: string): void {
    if (!this.#open) return;
    this.#runnerRuns.sessionLost(session, runner);
    this.#watchRunner(runner);
    this.#loseSessions(DECISIONS_AT_ONCE);
  }

  /** Those of a session with very many attempts are lost turn after turn. */
  #loseSessions(max: number): number {
    return this.#runnerRuns.lookOnAtSessions(max, (run, session) => {
      if (this.#runs.get(run.id) !== run || run.state.liveAttempts === 0) return false;
      if (this.#resumption.resume(run)) return true;
      let some = false;
      for (const { name, live } of run.state.stages.touched()) {
        if (live?.session !== session) continue;
        some = true;
        this.#border.run(run, () => this.#heldAttempts.loseUnlessHeld(run, name, live));
      }
      return some;
    });
  }

  /** Timers, repeats and clean-up; about every second, and when `nextWake` comes. */
  tick(): void {
    if (!this.#open) return;
    const boot = this.#ports.bootNow();
    let left = DECISIONS_AT_ONCE;
    left -= this.#deadlines.wakeDue(this.#runs, { boot, max: left / 2 }, (run, due) => {
      this.#decisions.decide(run, { type: 'wake', at: this.#decisions.at(run), due });
    });
    this.#deadlines.look(this.#runs, boot);
    const givenUp = this.#pulls.takeDue(boot, left);
    left -= givenUp.length;
    for (const run of givenUp) this.#decisions.decide(run, { type: 'give-up', at: this.#decisions.at(run) });
    this.#awake.tick();
    this.#jobs.repeat();
    left -= this.#loseSessions(left);
    left -= this.#heldAttempts.loseReleased(left);
    left -= this.#resumption.goOn(left);
    this.#adoptions.goOn();
    for (const runner of this.#absentRunners.takeLost(boot)) this.#runnerRuns.away(runner);
    this.#runnerRuns.lookOn(left, (run, runner, labelSets) => {
      this.#decisions.decide(run, { type: 'lose-workspace', at: this.#decisions.at(run), runner, labelSets });
    });
    this.#ids.forgetOld(boot);
    this.#counts.forgetOld(this.#ports.now());
    this.#parking.tick(boot);
    this.#outside.tick();
    this.#schedules.tick();
    this.#advance();
  }

  /** When `tick` has a timer to handle, by the boot clock; undefined: none. */
  nextWake(): number | undefined {
    const boot = this.#ports.bootNow();
    return this.#matchesMore ||
      this.#offers.isBusy ||
      this.#pulls.isDue(boot) ||
      this.#resumption.isBusy ||
      this.#runnerRuns.isBusy ||
      this.#heldAttempts.isBusy ||
      this.#jobs.isBusy ||
      this.#schedules.isBusy
      ? boot
      : this.#deadlines.next;
  }

  // --- Commits and documents ---------------------------------------------------------------------------------------

  /** The commit under way is stored: show it, act on it, send the next. */
  acknowledged(sequence: Sequence): void {
    const draft = this.#open ? this.#cycle.acknowledged(sequence) : undefined;
    if (draft === undefined) return;
    for (const { run, id, from, to } of draft.runs.values()) {
      this.#backlog.add(run);
      this.#counts.committed(run, from);
      this.#ports.publishEvents({
        runId: id,
        epoch: this.settings.epoch,
        version: to,
        events: run.events.slice(from - 1, to),
        ...(run.isCommitted ? { run: standingOf(run) } : {}),
      });
    }
    this.#schedules.committed(draft.schedules.keys());
    this.#deletions.committed(draft.deleted.keys(), sequence);
    this.#ports.counted([...draft.runs.values()]);
    for (const act of draft.afterwards) act();
    this.#ports.projectSoon();
    this.#advance();
  }

  get dirtyRuns(): number {
    return this.#backlog.dirty;
  }

  /** Up to `count` runs with commits that no document stands for yet, longest waiting first. */
  takeDirty(count: number): readonly DirtyRun[] {
    return this.#backlog.take(count);
  }

  /** What keys have used, as of `sequence` now, where the store has it otherwise. */
  takeCounters(): readonly KeyCounter[] {
    return this.#counts.take();
  }

  /** Schedules with commits that no document stands for yet. */
  takeDirtySchedules(): readonly DirtySchedule[] {
    return this.#schedules.takeDirty();
  }

  /** Deletions with commits that no tombstone stands for yet. */
  takeDeleted(): readonly DirtyDeletion[] {
    return this.#deletions.takeDirty();
  }

  /** The store did not take them: they are to be written again. */
  stillDirty(
    runs: Iterable<LiveRun>,
    counters: Iterable<KeyCounter> = [],
    schedules: Iterable<DirtySchedule> = [],
    deleted: Iterable<DirtyDeletion> = [],
  ): void {
    this.#schedules.stillDirty(schedules);
    this.#deletions.stillDirty(deleted);
    for (const run of runs) if (this.#runs.get(run.id) === run) this.#backlog.add(run);
    this.#counts.stillDirty(counters);
  }

  /** These runs' documents are written, and the checkpoint stands at `sequence`: settled runs behind it leave memory (PARTITION-4, P6). */
  projected(sequence: Sequence, runs: Iterable<LiveRun>): void {
    const closed = this.#backlog.projected(sequence, runs).filter((run) => this.#runs.get(run.id) === run);
    for (const run of closed) {
      this.#runs.delete(run.id);
      this.#newest.delete(run.state.tenant, run.id);
      this.#load.liveRuns -= 1;
      this.#held.delete(run);
      this.#phases.delete(run);
      this.#awake.delete(run);
      this.#ids.remember(run.id, this.#ports.bootNow());
    }
    for (const { runner, runIds } of releasesOf(closed, (run) => this.#runnerRuns.runnersOf(run)))
      this.#ports.release(runner, runIds);
    for (const run of closed) {
      this.#slots.forget(run);
      this.#pulls.forget(run);
      this.#runnerRuns.forget(run);
    }
    this.#deletions.closed(closed);
    this.#deletions.projected(sequence);
    if (this.#parking.size === 0) return;
    this.#outside.projected(sequence, runs, closed);
    this.#advance();
  }

  // --- What follows ------------------------------------------------------------------------------------------------

  /** Gives free slots to waiting stages, then sends the next commit if none is under way. */
  #advance(): void {
    if (!this.#open) return;
    this.#advancing = true;
    try {
      this.#offers.goOn();
      const mayMatch = mayGrant(this.#load) && this.#ports.mayAct() && this.#released === undefined;
      this.#matchesMore = mayMatch && this.#dispatch.match(this.#ports.bootNow());
    } finally {
      this.#advancing = false;
      this.#send();
    }
  }

  #send(): void {
    if (!this.#cycle.send(this.#ports.now(), this.#ports.bootNow())) this.#released?.();
  }

  #remember(run: LiveRun): void {
    this.#runs.set(run.id, run);
    this.#newest.set(run.state.tenant, run);
    this.#load.liveRuns += 1;
    this.#held.add(run);
    this.#phases.set(run);
  }

  // --- Faults ------------------------------------------------------------------------------------------------------

  /** What was to be done about the run has thrown: it is FAILED with the cause, and the others go on. */
  quarantine(runId: RunId, error: unknown): void {
    const run = this.#open ? this.#runs.get(runId) : undefined;
    if (run === undefined) return;
    this.#border.failed(run, error);
    this.#advance();
  }

  #watchRunner(runner: string): void {
    if (!this.#dispatch.hasRunner(runner)) this.#absentRunners.add(runner, this.#ports.bootNow());
  }

  // --- Who may be answered -----------------------------------------------------------------------------------------

  #accepts(): boolean {
    return this.#open && this.#released === undefined;
  }

  #mayAnswer(): boolean {
    return this.#open && this.#ports.mayAct();
  }
}

function standingOf({ state }: LiveRun): NonNullable<CommittedEvents['run']> {
  const { tenant, pipelineName, status, origin } = state;
  const { provider, repository } = origin;
  return { tenant, pipelineName, status, ...(repository === undefined ? {} : { provider, repository }) };
}
