/**
 * The owner's side of one partition: decide, commit, act. Owns the live runs of the partition and what is decided about
 * them; what its keys may do is kept by `ConcurrencySlots` and `KeyCounts`, its commits by `CommitCycle`; how these and all others are put
 * together stands in `PartitionParts`. Free of I/O and deterministic: the world is its ports, and the simulation drives this very class.
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
import type { DirtyDeletion } from './deletions.ts';
import type { DefinitionSource } from '../run/definitions.ts';
import type { Dispatch } from '../dispatch/dispatch.ts';
import type { KeyCounter } from '../admission/key-counts.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { RunPhase } from '../run/run-phases.ts';
import { PartitionParts, type PartitionShared } from './partition-parts.ts';
import type { PartitionSettings } from './partition-settings.ts';
import type { RestoredPartition } from './restored-partition.ts';
import type { RunRequests } from './run-requests.ts';
import type { ReadAdded } from './results.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { openPartition } from './partition-opening.ts';
import type { DirtyRun } from './projection-backlog.ts';
import { releasesOf } from './releases.ts';
import type { DirtySchedule } from './schedules.ts';
import { mayGrant, type SchedulerLoad } from '../run/scheduler-load.ts';

/** Runs about which something is decided, or looked at, in one turn for all of what is due: 0.2 ms each. */
const DECISIONS_AT_ONCE = 40;

export class Partition {
  readonly settings: PartitionSettings;
  readonly #ports: PartitionPorts;
  readonly #dispatch: Dispatch;
  readonly #definitions: DefinitionSource;
  readonly #load: SchedulerLoad;
  readonly #parts: PartitionParts;
  /** The last match has left something to the next. */
  #matchesMore = false;
  #open = false;
  #advancing = false;
  #released: (() => void) | undefined;

  constructor(settings: PartitionSettings, ports: PartitionPorts, shared: PartitionShared) {
    this.settings = settings;
    this.#ports = ports;
    this.#dispatch = shared.dispatch;
    this.#definitions = shared.definitions;
    this.#load = shared.load;
    this.#parts = new PartitionParts(settings, ports, shared, {
      isOpen: () => this.#open,
      isReleasing: () => this.#released !== undefined,
      accepts: () => this.#accepts(),
      mayAnswer: () => this.#mayAnswer(),
      remember: (run) => this.#remember(run),
      watchRunner: (runner) => this.#watchRunner(runner),
      advance: () => this.#advance(),
      sendUnlessAdvancing: () => {
        if (!this.#advancing) this.#send();
      },
    });
  }

  get open(): boolean {
    return this.#open;
  }

  /** The sequence of the last acknowledged commit. */
  get sequence(): number {
    return this.#parts.cycle.sequence;
  }

  get commitNumber(): number {
    return this.#parts.cycle.number;
  }

  /** The latest time in an id of a run of the partition (P7). */
  get idsTo(): number {
    return this.#parts.cycle.idsTo;
  }

  /** How many of its open runs wait outside of memory. */
  get parkedRuns(): number {
    return this.#parts.parking.out;
  }

  get runsInMemory(): number {
    return this.#parts.runs.size;
  }

  /** How many runs in memory are in which phase. */
  get phases(): ReadonlyMap<RunPhase, number> {
    return this.#parts.phases.counts;
  }

  get liveRuns(): Iterable<LiveRun> {
    return this.#parts.runs.values();
  }

  // --- Opening and closing -----------------------------------------------------------------------------------------

  /** The log is ours from `restored.sequence` on: takes the runs over slice by slice, and answers from the end of the last one on. */
  *opening(restored: RestoredPartition): Generator<void, void> {
    yield* openPartition(this.#parts.openingHost, restored);
    this.#open = true;
    this.#parts.offers.open();
    this.#parts.parking.fill();
    this.#ports.projectSoon();
    this.#advance();
    this.#parts.resumption.goOn();
    this.#parts.adoptions.goOn();
  }

  /** Decides nothing new; calls back when all that was decided is acknowledged, so that `released` can be appended. */
  release(then: () => void): void {
    this.#released = then;
    this.#advance();
  }

  /** Forgets everything, unanswered requests included; nothing is sent any more. */
  close(): void {
    this.#open = false;
    this.#load.liveRuns -= this.#parts.runs.size + this.#parts.parking.out;
    this.#parts.clear();
  }

  /** Between two steps. Throws InvariantBroken. */
  assertInvariants(): void {
    if (this.#open) this.#parts.invariants.assertAll();
  }

  /** The same of some of the runs, where all of them are more than one turn is for. */
  sampleInvariants(): void {
    if (this.#open) this.#parts.invariants.assertSample();
  }

  // --- Requests ----------------------------------------------------------------------------------------------------

  /** `definitions` has what the request's text means where it was read before; else it is read here. */
  create(request: CreateRequest, reply: (reply: CreateReply) => void, definitions = this.#definitions): void {
    this.#parts.creation.create(request, reply, definitions);
  }

  cancel(request: CancelRequest, reply: (reply: CancelReply) => void): void {
    this.#parts.requests.cancel(request, reply);
  }

  /** A closed run is deleted (P34). */
  delete(request: DeleteRequest, reply: (reply: DeleteReply) => void): void {
    this.#parts.deletions.delete(request, reply);
  }

  /** Of closed runs that are too old as many are deleted as can be; how many. */
  expire(runs: readonly (StoredStanding & { readonly id: RunId })[]): number {
    return this.#open ? this.#parts.deletions.expire(runs) : 0;
  }

  /** How many closed runs that are too old can be deleted now. */
  get roomToExpire(): number {
    return this.#open ? this.#parts.deletions.roomToExpire : 0;
  }

  approve(request: ApproveRequest, reply: (reply: ApproveReply) => void): void {
    this.#parts.approvals.approve(request, reply);
  }

  /** Somebody approves or rejects a stage (P26). */
  decide(request: DecideRequest, reply: (reply: DecideReply) => void): void {
    this.#parts.requests.decideGate(request, reply);
  }

  get(request: GetRequest, reply: (reply: GetReply) => void): void {
    this.#parts.reads.get(request, reply);
  }

  watch(request: WatchRequest, reply: (reply: WatchReply) => void): void {
    this.#parts.reads.watch(request, reply);
  }

  waits(request: WaitsRequest, reply: (reply: WaitsReply) => void): void {
    this.#parts.waits.ask(request, reply);
  }

  openRuns(request: OpenRequest, reply: (reply: OpenReply) => void): void {
    this.#parts.reads.open(request, reply);
  }

  attempt(request: AttemptRequest, reply: (reply: AttemptReply) => void): void {
    this.#parts.reads.attempt(request, this.settings.artifactExpireMs, reply);
  }

  setSchedule(request: SetScheduleRequest, reply: (reply: SetScheduleReply) => void): void {
    this.#parts.schedules.set(request, reply);
  }

  schedules(request: SchedulesRequest, reply: (reply: SchedulesReply) => void): void {
    this.#parts.schedules.list(request, reply);
  }

  pauseSchedule(request: PauseRequest, reply: (reply: PauseReply) => void): void {
    this.#parts.schedules.pause(request, reply);
  }

  /** How what the result adds to its run is to be read before `result`; undefined: it adds nothing. */
  addedOptions(request: ResultRequest, runner: string): ReturnType<RunRequests['addedOptions']> {
    return this.#parts.requests.addedOptions(request, runner);
  }

  result(request: ResultRequest, runner: string, reply: (reply: ResultReply) => void, added?: ReadAdded): void {
    this.#parts.requests.result(request, runner, reply, added);
  }

  // --- What happens to runners -------------------------------------------------------------------------------------

  /** Credits or sessions have changed: see who can have them. */
  creditsChanged(): void {
    this.#advance();
  }

  leaseSeen(lease: RunnerLease): void {
    if (!this.#open) return;
    this.#parts.absentRunners.delete(lease.runner);
    this.#parts.runnerRuns.seen(lease.runner, lease.session, lease.labels);
    // No run that waits outside has an attempt. It is not brought back: a tenant's runner may list any number of that tenant's.
    for (const attempt of lease.attempts)
      if (this.#parts.parking.find(attempt.runId) !== undefined) this.#parts.jobs.stopUnknown(lease.runner, attempt);
    this.#parts.jobs.leaseLists(lease, (runId) => {
      const run = this.#parts.runs.get(runId);
      if (run !== undefined) this.#parts.resumption.resume(run);
      return run;
    });
  }

  /** The broker says that the session's lease has run out, or that it was given up (P5). */
  sessionLost(session: string, runner: string): void {
    if (!this.#open) return;
    this.#parts.runnerRuns.sessionLost(session, runner);
    this.#watchRunner(runner);
    this.#loseSessions(DECISIONS_AT_ONCE);
  }

  /** Those of a session with very many attempts are lost turn after turn. */
  #loseSessions(max: number): number {
    return this.#parts.runnerRuns.lookOnAtSessions(max, (run, session) => {
      if (this.#parts.runs.get(run.id) !== run || run.state.liveAttempts === 0) return false;
      if (this.#parts.resumption.resume(run)) return true;
      let some = false;
      for (const { name, live } of run.state.stages.touched()) {
        if (live?.session !== session) continue;
        some = true;
        this.#parts.border.run(run, () => this.#parts.heldAttempts.loseUnlessHeld(run, name, live));
      }
      return some;
    });
  }

  /** Timers, repeats and clean-up; about every second, and when `nextWake` comes. */
  tick(): void {
    if (!this.#open) return;
    const boot = this.#ports.bootNow();
    let left = DECISIONS_AT_ONCE;
    left -= this.#parts.deadlines.wakeDue(this.#parts.runs, { boot, max: left / 2 }, (run, due) => {
      this.#parts.decisions.decide(run, { type: 'wake', at: this.#parts.decisions.at(run), due });
    });
    this.#parts.deadlines.look(this.#parts.runs, boot);
    const givenUp = this.#parts.pulls.takeDue(boot, left);
    left -= givenUp.length;
    for (const run of givenUp)
      this.#parts.decisions.decide(run, { type: 'give-up', at: this.#parts.decisions.at(run) });
    this.#parts.awake.tick();
    this.#parts.jobs.repeat();
    left -= this.#loseSessions(left);
    left -= this.#parts.heldAttempts.loseReleased(left);
    left -= this.#parts.resumption.goOn(left);
    left -= this.#parts.outside.goOn(left);
    left -= this.#parts.slots.goOn(left);
    this.#parts.adoptions.goOn();
    for (const runner of this.#parts.absentRunners.takeLost(boot)) this.#parts.runnerRuns.away(runner);
    this.#parts.runnerRuns.lookOn(left, (run, runner, labelSets) => {
      this.#parts.decisions.decide(run, {
        type: 'lose-workspace',
        at: this.#parts.decisions.at(run),
        runner,
        labelSets,
      });
    });
    this.#parts.ids.forgetOld(boot);
    this.#parts.counts.forgetOld(this.#ports.now());
    this.#parts.parking.tick(boot);
    this.#parts.outside.tick();
    this.#parts.schedules.tick();
    this.#advance();
  }

  /** When `tick` has a timer to handle, by the boot clock; undefined: none. */
  nextWake(): number | undefined {
    const boot = this.#ports.bootNow();
    return this.#matchesMore ||
      this.#parts.offers.isBusy ||
      this.#parts.deadlines.isBusy ||
      this.#parts.pulls.isDue(boot) ||
      this.#parts.resumption.isBusy ||
      this.#parts.outside.isBusy ||
      this.#parts.slots.isBusy ||
      this.#parts.runnerRuns.isBusy ||
      this.#parts.heldAttempts.isBusy ||
      this.#parts.jobs.isBusy ||
      this.#parts.schedules.isBusy
      ? boot
      : this.#parts.deadlines.next;
  }

  // --- Commits and documents ---------------------------------------------------------------------------------------

  /** The commit under way is stored: show it, act on it, send the next. */
  acknowledged(sequence: Sequence): void {
    const draft = this.#open ? this.#parts.cycle.acknowledged(sequence) : undefined;
    if (draft === undefined) return;
    for (const { run, id, from, to } of draft.runs.values()) {
      this.#parts.backlog.add(run);
      this.#parts.counts.committed(run, from);
      this.#ports.publishEvents({
        runId: id,
        epoch: this.settings.epoch,
        version: to,
        events: run.events.slice(from - 1, to),
        ...(run.isCommitted ? { run: standingOf(run) } : {}),
      });
    }
    this.#parts.schedules.committed(draft.schedules.keys());
    this.#parts.deletions.committed(draft.deleted.keys(), sequence);
    this.#ports.counted([...draft.runs.values()]);
    for (const act of draft.afterwards) act();
    this.#ports.projectSoon();
    this.#advance();
  }

  get dirtyRuns(): number {
    return this.#parts.backlog.dirty;
  }

  /** Up to `count` runs with commits that no document stands for yet, longest waiting first. */
  takeDirty(count: number): readonly DirtyRun[] {
    return this.#parts.backlog.take(count);
  }

  /** What keys have used, as of `sequence` now, where the store has it otherwise. */
  takeCounters(): readonly KeyCounter[] {
    return this.#parts.counts.take();
  }

  /** Schedules with commits that no document stands for yet. */
  takeDirtySchedules(): readonly DirtySchedule[] {
    return this.#parts.schedules.takeDirty();
  }

  /** Deletions with commits that no tombstone stands for yet. */
  takeDeleted(): readonly DirtyDeletion[] {
    return this.#parts.deletions.takeDirty();
  }

  /** The store did not take them: they are to be written again. */
  stillDirty(
    runs: Iterable<LiveRun>,
    counters: Iterable<KeyCounter> = [],
    schedules: Iterable<DirtySchedule> = [],
    deleted: Iterable<DirtyDeletion> = [],
  ): void {
    this.#parts.schedules.stillDirty(schedules);
    this.#parts.deletions.stillDirty(deleted);
    for (const run of runs) if (this.#parts.runs.get(run.id) === run) this.#parts.backlog.add(run);
    this.#parts.counts.stillDirty(counters);
  }

  /** These runs' documents are written, and the checkpoint stands at `sequence`: settled runs behind it leave memory (PARTITION-4, P6). */
  projected(sequence: Sequence, runs: Iterable<LiveRun>): void {
    const closed = this.#parts.backlog.projected(sequence, runs).filter((run) => this.#parts.runs.get(run.id) === run);
    for (const run of closed) {
      this.#parts.runs.delete(run.id);
      this.#parts.newest.delete(run.state.tenant, run.id);
      this.#load.liveRuns -= 1;
      this.#parts.held.delete(run);
      this.#parts.phases.delete(run);
      this.#parts.awake.delete(run);
      this.#parts.ids.remember(run.id, this.#ports.bootNow());
    }
    for (const { runner, runIds } of releasesOf(closed, (run) => this.#parts.runnerRuns.runnersOf(run)))
      this.#ports.release(runner, runIds);
    for (const run of closed) {
      this.#parts.slots.forget(run);
      this.#parts.pulls.forget(run);
      this.#parts.adoptions.forget(run);
      this.#parts.runnerRuns.forget(run);
    }
    this.#parts.deletions.closed(closed);
    this.#parts.deletions.projected(sequence);
    if (this.#parts.parking.size === 0) return;
    this.#parts.outside.projected(sequence, runs, closed);
    this.#advance();
  }

  // --- What follows ------------------------------------------------------------------------------------------------

  /** Gives free slots to waiting stages, then sends the next commit if none is under way. */
  #advance(): void {
    if (!this.#open) return;
    this.#advancing = true;
    try {
      this.#parts.offers.goOn();
      const mayMatch = mayGrant(this.#load) && this.#ports.mayAct() && this.#released === undefined;
      this.#matchesMore = mayMatch && this.#dispatch.match(this.#ports.bootNow());
    } finally {
      this.#advancing = false;
      this.#send();
    }
  }

  #send(): void {
    if (!this.#parts.cycle.send(this.#ports.now(), this.#ports.bootNow())) this.#released?.();
  }

  #remember(run: LiveRun): void {
    this.#parts.runs.set(run.id, run);
    this.#parts.newest.set(run.state.tenant, run);
    this.#load.liveRuns += 1;
    this.#parts.held.add(run);
    this.#parts.phases.set(run);
  }

  // --- Faults ------------------------------------------------------------------------------------------------------

  /** What was to be done about the run has thrown: it is FAILED with the cause, and the others go on. */
  quarantine(runId: RunId, error: unknown): void {
    const run = this.#open ? this.#parts.runs.get(runId) : undefined;
    if (run === undefined) return;
    this.#parts.border.failed(run, error);
    this.#advance();
  }

  #watchRunner(runner: string): void {
    if (!this.#dispatch.hasRunner(runner)) this.#parts.absentRunners.add(runner, this.#ports.bootNow());
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
