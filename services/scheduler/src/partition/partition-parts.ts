/**
 * What a partition is made of, and which of its parts know each other. Made once for one owner's time; decides nothing itself:
 * what concerns the partition as a whole (whether it is open, what comes next) they ask of their host.
 */
import type { CreateRequest } from '@penstock/bus';
import type { RunId } from '@penstock/run';
import { HeldAttempts } from './held-attempts.ts';
import { AbsentRunners } from './absent-runners.ts';
import { CommitCycle } from './commit-cycle.ts';
import { Deletions } from './deletions.ts';
import { Decisions } from './decisions.ts';
import { AwakeRuns } from '../run/awake-runs.ts';
import { Deadlines } from '../run/deadlines.ts';
import type { DefinitionSource } from '../run/definitions.ts';
import { JobDeliveries } from '../dispatch/job-deliveries.ts';
import type { Dispatch } from '../dispatch/dispatch.ts';
import { KeyCounts } from '../admission/key-counts.ts';
import { HeldBytes } from '../run/held-bytes.ts';
import { RunLengths } from '../run/lengths.ts';
import type { LiveRun } from '../run/live-run.ts';
import { NewestRuns } from '../run/newest-runs.ts';
import { RunPhases } from '../run/run-phases.ts';
import { WideMap } from '../run/wide-map.ts';
import type { PartitionSettings } from './partition-settings.ts';
import { Resumption } from './resumption.ts';
import { RunBorder } from './run-border.ts';
import { Adoptions } from './adoptions.ts';
import { Approvals } from './approvals.ts';
import { PullRequests } from '../admission/pull-requests.ts';
import { PartitionInvariants } from './partition-invariants.ts';
import { RunRequests } from './run-requests.ts';
import { RunCreation } from './run-creation.ts';
import { RunnerRuns } from './runner-runs.ts';
import { ConcurrencySlots, turnOf } from '../admission/concurrency-slots.ts';
import type { PartitionPorts } from '../run/ports.ts';
import { Offers } from '../dispatch/offers.ts';
import { OutsideRuns } from './outside-runs.ts';
import { Parents, type ReadParent } from './parents.ts';
import { Parking } from './parking.ts';
import type { PartitionOpeningHost } from './partition-opening.ts';
import { ProjectionBacklog } from './projection-backlog.ts';
import { Reads } from './reads.ts';
import { RememberedIds } from './remembered-ids.ts';
import { Schedules } from './schedules.ts';
import { SlotsInUse } from './slots-in-use.ts';
import { Waits } from './waits.ts';
import type { SchedulerLoad } from '../run/scheduler-load.ts';

/** What all partitions of a scheduler have in common, and who reads for this one. */
export interface PartitionShared {
  readonly dispatch: Dispatch;
  readonly definitions: DefinitionSource;
  readonly load: SchedulerLoad;
  /** Reads the text of a run to be made where that holds up nobody. Answers as the ports do, or at once. */
  readText(request: CreateRequest, then: (source: DefinitionSource) => void): void;
  /** Makes a run anew from its document; null: there is none. Answers as the ports do. */
  readRun(runId: RunId, then: (run: ReadParent | 'damaged') => void): void;
}

/** The partition, as its parts know it. */
export interface PartitionHost {
  isOpen(): boolean;
  isReleasing(): boolean;
  /** Whether anything new is decided. */
  accepts(): boolean;
  /** Whether what is known here may be said. */
  mayAnswer(): boolean;
  /** The run is in memory from now on. */
  remember(run: LiveRun): void;
  /** Where it is not here, and does not come back in time, the workspaces that it holds are lost (P19). */
  watchRunner(runner: string): void;
  /** Something was decided, or may be granted now. */
  advance(): void;
  /** Sends the next commit, if none is under way, and nobody is about to. */
  sendUnlessAdvancing(): void;
}

export class PartitionParts {
  readonly runs = new WideMap<RunId, LiveRun>((id) => id);
  readonly slots: ConcurrencySlots;
  readonly counts = new KeyCounts();
  readonly cycle: CommitCycle;
  readonly reads: Reads;
  readonly creation: RunCreation;
  readonly pulls: PullRequests;
  readonly approvals: Approvals;
  readonly decisions: Decisions;
  readonly requests: RunRequests;
  readonly invariants: PartitionInvariants;
  readonly border: RunBorder;
  readonly parking: Parking;
  readonly outside: OutsideRuns;
  readonly newest = new NewestRuns();
  readonly phases = new RunPhases();
  readonly held: HeldBytes;
  readonly jobs: JobDeliveries;
  readonly deadlines: Deadlines;
  readonly awake = new AwakeRuns();
  readonly backlog = new ProjectionBacklog();
  readonly ids = new RememberedIds();
  readonly absentRunners: AbsentRunners;
  readonly runnerRuns: RunnerRuns;
  readonly slotsInUse: SlotsInUse;
  readonly lengths: RunLengths;
  readonly waits: Waits;
  readonly heldAttempts: HeldAttempts;
  readonly offers: Offers;
  readonly resumption: Resumption;
  readonly schedules: Schedules;
  readonly parents: Parents;
  readonly adoptions: Adoptions;
  readonly deletions: Deletions;
  readonly openingHost: PartitionOpeningHost;

  constructor(settings: PartitionSettings, ports: PartitionPorts, shared: PartitionShared, host: PartitionHost) {
    this.held = new HeldBytes(shared.load);
    this.cycle = new CommitCycle(settings, ports);
    this.parking = new Parking({
      load: shared.load,
      bytesOfKey: (key) => this.held.ofKey(key),
      slotsOf: (key) => this.slots.use(key),
      read: (runId, then) =>
        shared.readRun(runId, (run) => {
          if (run === null) ports.warn({ runId }, 'the document of an open run is not in the store; asked for again');
          // Others of its key would wait behind it: who takes over leaves it out.
          if (run === 'damaged')
            ports.broken(new Error(`the document of run ${runId}, which waits outside, is damaged`));
          then(run === null || run === 'damaged' ? 'unavailable' : run);
        }),
      unparked: (runId) => this.outside.unparked(runId),
      enter: (run, parked) => this.outside.enter(run, parked),
      advance: () => host.advance(),
      broken: (error) => ports.broken(error),
    });
    this.reads = new Reads({
      epoch: settings.epoch,
      runs: this.runs,
      parking: this.parking,
      newest: this.newest,
      counts: this.counts,
      cycle: this.cycle,
      mayAnswer: () => host.mayAnswer(),
    });
    this.border = new RunBorder({
      ports,
      holdsAllOf: (run) => this.cycle.holdsAllOf(run),
      quarantine: (run, cause) => this.decisions.quarantine(run, cause),
    });
    this.deadlines = new Deadlines();
    this.absentRunners = new AbsentRunners(settings.workspaceGraceMs);
    this.runnerRuns = new RunnerRuns(shared.dispatch);
    this.slotsInUse = new SlotsInUse(shared.dispatch.keySlots);
    this.lengths = new RunLengths(shared.dispatch.lengths);
    this.heldAttempts = new HeldAttempts(
      shared.dispatch,
      () => ports.mayDeclareLoss(),
      (...lost) => this.decisions.loseAttempt(...lost),
    );
    this.pulls = new PullRequests(settings);
    this.slots = new ConcurrencySlots({
      turnOf: (runId) => {
        const state = this.runs.get(runId)?.state ?? this.parking.find(runId);
        return state && turnOf(state);
      },
      admit: (runId) => this.outside.admit(runId),
      recall: (runId) => this.parking.recalled(runId),
    });
    this.decisions = new Decisions({
      ports,
      runs: this.runs,
      cycle: this.cycle,
      border: this.border,
      parking: this.parking,
      held: this.held,
      phases: this.phases,
      awake: this.awake,
      deadlines: this.deadlines,
      slots: this.slots,
      slotsInUse: this.slotsInUse,
      lengths: this.lengths,
      pulls: this.pulls,
      runnerRuns: this.runnerRuns,
      parts: () => ({ jobs: this.jobs, offers: this.offers, resumption: this.resumption }),
      isOpen: () => host.isOpen(),
      isReleasing: () => host.isReleasing(),
      advance: () => host.advance(),
      sendUnlessAdvancing: () => host.sendUnlessAdvancing(),
    });
    this.outside = new OutsideRuns({
      parking: this.parking,
      runs: this.runs,
      newest: this.newest,
      held: this.held,
      phases: this.phases,
      awake: this.awake,
      slots: this.slots,
      counts: this.counts,
      deadlines: this.deadlines,
      backlog: this.backlog,
      border: this.border,
      bootNow: () => ports.bootNow(),
      forgetAdoption: (run) => this.adoptions.forget(run),
      offerWaiting: (run) => this.decisions.offerWaiting(run),
      decide: (run, type) => void this.decisions.decide(run, { type, at: this.decisions.at(run) }),
      quarantine: (run, cause) => this.decisions.quarantine(run, cause),
    });
    this.parents = new Parents({
      runs: this.runs,
      parking: this.parking,
      cycle: this.cycle,
      readStored: (runId, then) => shared.readRun(runId, (run) => then(run === 'damaged' ? 'unavailable' : run)),
      isDeleted: (runId) => this.deletions.has(runId),
    });
    this.adoptions = new Adoptions({
      parents: this.parents,
      cycle: this.cycle,
      has: (run) => this.runs.get(run.id) === run,
      decide: (run, command) => void this.decisions.decide(run, command),
      at: (run) => this.decisions.at(run),
      advance: () => host.advance(),
    });
    this.deletions = new Deletions({
      epoch: settings.epoch,
      ports,
      runs: this.runs,
      cycle: this.cycle,
      parkedTenant: (runId) => this.parking.find(runId)?.tenant,
      removed: (tenant, sequence) => this.cycle.changes.removed(tenant, sequence),
      isTakenFrom: (runId) => this.parents.isReading(runId) || this.adoptions.isTakenFrom(runId),
      accepts: () => host.accepts(),
      mayAnswer: () => host.mayAnswer(),
      advance: () => host.advance(),
    });
    this.creation = new RunCreation({
      settings,
      ports,
      load: shared.load,
      held: this.held,
      runs: this.runs,
      parking: this.parking,
      ids: this.ids,
      slots: this.slots,
      counts: this.counts,
      pulls: this.pulls,
      cycle: this.cycle,
      reads: this.reads,
      bootNow: () => ports.bootNow(),
      now: () => ports.now(),
      accepts: () => host.accepts(),
      mayAnswer: () => host.mayAnswer(),
      remember: (run) => host.remember(run),
      begin: (run, start) => this.decisions.begin(run, start),
      parents: this.parents,
      adopt: (run, lists) => this.adoptions.begin(run, lists),
      supersede: (runIds) => this.outside.supersede(runIds),
      cancel: (run) => void this.decisions.decide(run, { type: 'cancel', at: this.decisions.at(run) }),
      giveUp: (run) => void this.decisions.decide(run, { type: 'give-up', at: this.decisions.at(run) }),
      advance: () => host.advance(),
    });
    this.approvals = new Approvals({
      epoch: settings.epoch,
      runs: this.runs,
      slots: this.slots,
      counts: this.counts,
      cycle: this.cycle,
      reads: this.reads,
      at: (run) => this.decisions.at(run),
      accepts: () => host.accepts(),
      mayAnswer: () => host.mayAnswer(),
      decide: (run, command) => this.decisions.decide(run, command),
      supersede: (runIds) => this.outside.supersede(runIds),
      advance: () => host.advance(),
    });
    this.requests = new RunRequests({
      settings,
      runs: this.runs,
      parking: this.parking,
      dispatch: shared.dispatch,
      cycle: this.cycle,
      reads: this.reads,
      decisions: this.decisions,
      isLeftOut: (runId) => this.deletions.isLeftOut(runId),
      bootNow: () => ports.bootNow(),
      accepts: () => host.accepts(),
      mayAnswer: () => host.mayAnswer(),
      advance: () => host.advance(),
    });
    this.waits = new Waits({
      epoch: settings.epoch,
      ports,
      runs: this.runs,
      parking: this.parking,
      slots: this.slots,
      dispatch: shared.dispatch,
      cycle: this.cycle,
      load: shared.load,
      controls: shared.dispatch.controls,
      mayAnswer: () => host.mayAnswer(),
      isReleasing: () => host.isReleasing(),
    });
    this.invariants = new PartitionInvariants({
      runs: this.runs,
      slots: this.slots,
      counts: this.counts,
      slotsInUse: this.slotsInUse,
      pulls: this.pulls,
      phases: this.phases,
      cycle: this.cycle,
      parking: this.parking,
      adoptions: this.adoptions,
    });
    this.jobs = new JobDeliveries(settings, ports, {
      inFlight: (run) => this.cycle.isUnderWay(run),
      returned: (run, stage, attempt) =>
        this.decisions.decideLater(run, { type: 'return-grant', at: this.decisions.at(run), stage, attempt }),
      gone: (run, stage, attempt, runner) => this.decisions.loseAttempt(run, stage, attempt, runner, () => true),
      undeliverable: (run, stage, attempt) =>
        this.decisions.decideLater(run, {
          type: 'result',
          at: this.decisions.at(run),
          stage,
          attempt,
          status: 'failed',
          reason: 'quota',
          logBytes: 0,
        }),
    });
    this.offers = new Offers(shared.dispatch);
    this.resumption = new Resumption({
      dispatch: shared.dispatch,
      heldAttempts: this.heldAttempts,
      jobs: this.jobs,
      border: this.border,
      bootNow: () => ports.bootNow(),
      has: (run) => this.runs.get(run.id) === run,
      watchRunner: (runner) => host.watchRunner(runner),
    });
    this.schedules = new Schedules({
      epoch: settings.epoch,
      ports,
      cycle: this.cycle,
      creation: this.creation,
      isKnown: (runId) => this.runs.has(runId) || this.parking.find(runId) !== undefined || this.ids.has(runId),
      readText: (request, then) => shared.readText(request, then),
      accepts: () => host.accepts(),
      mayAnswer: () => host.mayAnswer(),
      mayFire: () => host.accepts() && host.mayAnswer(),
      advance: () => host.advance(),
    });
    this.openingHost = {
      settings,
      ports,
      load: shared.load,
      cycle: this.cycle,
      ids: this.ids,
      held: this.held,
      backlog: this.backlog,
      runnerRuns: this.runnerRuns,
      slotsInUse: this.slotsInUse,
      lengths: this.lengths,
      counts: this.counts,
      pulls: this.pulls,
      slots: this.slots,
      parking: this.parking,
      newest: this.newest,
      deadlines: this.deadlines,
      resumption: this.resumption,
      adoptions: this.adoptions,
      deletions: this.deletions,
      border: this.border,
      schedules: this.schedules,
      remember: (run) => host.remember(run),
      offerWaiting: (run) => this.decisions.offerWaiting(run),
      supersede: (runIds) => this.outside.supersede(runIds),
      quarantine: (run, cause) => this.decisions.quarantine(run, cause),
    };
  }

  /** Forgets all that is kept of the runs, here and in what the partitions of the scheduler share. */
  clear(): void {
    this.parking.clear();
    this.outside.clear();
    this.newest.clear();
    this.held.clear();
    this.phases.clear();
    this.awake.clear();
    this.offers.clear();
    this.resumption.clear();
    this.parents.clear();
    this.adoptions.clear();
    this.deletions.clear();
    this.slotsInUse.clear();
    this.lengths.clear();
    this.pulls.clear();
    this.schedules.clear();
    this.runs.clear();
  }
}
