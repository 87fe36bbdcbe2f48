/**
 * A scheduler: a member that owns some partitions and hosts the actors of their runs. It follows the memberships to know
 * which partitions should be its own, the runners' leases to know who can work, and takes their credit; which stage gets
 * a slot is decided by `Dispatch`, everything about a run by its `Partition`.
 */
import { getHeapStatistics } from 'node:v8';
import { deadlineIn } from '@penstock/async';
import {
  buckets,
  type BusSubscription,
  type Committing,
  type Control,
  type Demand,
  FLEET_BUCKET,
  type FleetEntry,
  LATER,
  type LeaseEvent,
  type LeaseWatch,
  type Membership,
  MEMBERSHIP_MS,
  type PartitionReleased,
  type PullReply,
  type PullRequest,
  RUNNER_LEASE_MS,
  type RunnerLease,
  subjects,
} from '@penstock/bus';
import type { RunsLedger } from '@penstock/store';
import { guarded, type BorderName } from '@penstock/telemetry/borders';
import { noMeter } from '@penstock/telemetry/metrics';
import { Controls } from '../controls/controls.ts';
import { withBoundedWrites } from './bounded-writes.ts';
import { Definitions, type DefinitionSource } from '../run/definitions.ts';
import { DemandAnnouncer, DemandParts } from '../dispatch/demand.ts';
import { Dispatch } from '../dispatch/dispatch.ts';
import { SchedulerMembership } from '../membership/membership.ts';
import { ownerOf } from '../membership/ownership.ts';
import { CreateIntake } from './create-intake.ts';
import { DefinitionReader } from './definition-reader.ts';
import { EncodedStories } from './encoded-stories.ts';
import { InvariantSamples } from './invariant-samples.ts';
import { LeaseLookups } from './lease-lookups.ts';
import { LossPause } from './loss-pause.ts';
import { PartitionMoves } from './partition-moves.ts';
import { PartitionOwner, type RunnerSession } from './partition-owner.ts';
import { StatusDesk } from './status-desk.ts';
import type { Scheduler, SchedulerOptions } from './scheduler-options.ts';
import { readScheduler } from './scheduler-meter.ts';
import { UnservedNotices } from './unserved-notices.ts';
import { schedulerPorts, type SchedulerPorts } from './scheduler-ports.ts';
import type { Partition } from '../partition/partition.ts';
import type { SchedulerLoad } from '../run/scheduler-load.ts';

const LIVE_RUNS_PER_KEY_MAX = 10_000;
/** Whoever has not looked at a pull request for so long will not. */
const APPROVAL_MS = 30 * 24 * 60 * 60 * 1000;
/** They are in memory until somebody has decided. */
const HELD_PER_REPOSITORY_MAX = 100;
const LIVE_RUNS_MAX = 100_000;
/** Of the heap that Node allows (`NODE_OPTIONS=--max-old-space-size`): the rest is for caches, commits, documents on their way. */
const LIVE_BYTES_SHARE = 0.4;
const TICK_MS = 1_000;
/** Handing everything over at the end takes no longer; the rest is taken over when the membership is given up. */
const CLOSE_MS = 5_000;
const EXPIRED_MAX = 10_000;
/** Of an attempt. */
export const LOG_BYTES_MAX = 16 * 1024 * 1024;
const ARTIFACT_EXPIRE_MS = 30 * 24 * 60 * 60_000;

/** Where the texts of runs are read; the simulation has its own. */
export interface Texts {
  readonly definitions: DefinitionSource;
  readonly reader: Pick<DefinitionReader, 'atOnce' | 'read' | 'readAgain' | 'readAdded'>;
}

function readTexts({ log }: Pick<SchedulerOptions, 'log'>): Texts {
  const definitions = new Definitions();
  return { definitions, reader: new DefinitionReader(definitions, log) };
}

export class SchedulerService implements Scheduler {
  member = '';
  readonly #options: SchedulerOptions;
  readonly #ledger: RunsLedger;
  readonly #ports: SchedulerPorts;
  readonly #controls: Controls;
  /** Whether it knew what is paused when it last looked. */
  #knewControls = true;
  readonly #statuses: StatusDesk;
  readonly #dispatch: Dispatch;
  readonly #texts: Texts;
  readonly #intake: CreateIntake;
  readonly #load: SchedulerLoad;
  readonly #stories = new EncodedStories();
  readonly #membership: SchedulerMembership;
  readonly #invariants: InvariantSamples;
  readonly #leases: LeaseLookups;
  readonly #lossPause: LossPause;
  readonly #members = new Set<string>();
  readonly #moves: PartitionMoves;
  /** Aborted when the membership is over, and with it everything that is done under its id. */
  #membershipOver = new AbortController();
  readonly #watches: Pick<LeaseWatch, 'stop'>[] = [];
  /** While it is set up anew the end of a session may be told before the lease that lists what goes on of it (P13, P36). */
  #runnerLeases: Pick<LeaseWatch, 'current'> | undefined;
  /** Session id to its runner, for every lease that is known. */
  readonly #sessions = new Map<string, { readonly lease: RunnerLease; readonly seenAtMs: number }>();
  #lookingAtSilent = false;
  #ticking = false;
  #isClosed = false;
  /** Sessions that are over, oldest first: a picture of the leases that was read a moment before says otherwise. */
  readonly #expired = new Set<string>();
  #pulls: BusSubscription | undefined;
  /** Answers who looks for a scheduler that can commit; listens only while this one can. */
  #committing: BusSubscription | undefined;
  /** Tells of partitions that others have handed over: one that is ours is opened at once. */
  #releases: BusSubscription | undefined;
  /** What waits at other schedulers: those are other keys (DISPATCH-5). */
  #demands: BusSubscription | undefined;
  #callOffTick: () => void = () => {};
  readonly #demand = new DemandAnnouncer();
  /** Of tenants with runners of their own. */
  #demandOfTenants = new Map<string, DemandAnnouncer>();
  readonly #demandParts = new DemandParts();
  readonly #unserved: UnservedNotices;

  constructor(
    options: SchedulerOptions,
    ports: SchedulerPorts = schedulerPorts(options.bus, options.membershipMs ?? MEMBERSHIP_MS),
    texts: Texts = readTexts(options),
  ) {
    this.#options = options;
    this.#unserved = new UnservedNotices(options.log);
    this.#load = {
      liveRuns: 0,
      liveRunsMax: LIVE_RUNS_MAX,
      liveBytes: 0,
      liveBytesMax: options.liveBytesMax ?? getHeapStatistics().heap_size_limit * LIVE_BYTES_SHARE,
      journalUsed: 0,
      unprojectedBytes: 0,
    };
    this.#controls = new Controls(ports.time);
    this.#dispatch = new Dispatch({ keySlots: options.keySlots, controls: this.#controls });
    this.#ports = ports;
    this.#texts = texts;
    this.#ledger = withBoundedWrites(options.ledger);
    this.#invariants = new InvariantSamples(options.log);
    this.#intake = new CreateIntake(texts.reader);
    this.#leases = new LeaseLookups(options, ports);
    this.#lossPause = new LossPause(options, ports.time);
    this.#moves = new PartitionMoves({
      partitions: options.partitions,
      log: options.log,
      time: ports.time,
      isMember: () => this.member !== '',
      isMine: (partition) => this.#isMine(partition),
      membershipOver: () => this.#membershipOver.signal,
      ownerFor: (partition, lost) => this.#ownerFor(partition, lost),
    });
    const told = {
      tenantOf: (runner: string) => this.#dispatch.tenantOf(runner),
      dispatch: this.#dispatch,
      owners: () => this.#moves.owners,
      leases: () => [...this.#sessions.values()].map(({ lease }) => lease),
    };
    readScheduler(options.meter ?? noMeter, { ...told, wallNow: () => ports.time.wallNow() });
    this.#statuses = new StatusDesk({
      ...told,
      bus: ports.bus,
      members: this.#members,
      controls: this.#controls,
      trouble: () => this.trouble,
      journalUsed: () => this.#load.journalUsed,
    });
    this.#membership = new SchedulerMembership({
      ports: ports.membership,
      ttlMs: options.membershipMs ?? MEMBERSHIP_MS,
      log: options.log,
      joined: (member) => this.#joined(member),
      lost: () =>
        void this.#forgetAll().catch((error: unknown) =>
          options.log.error({ err: error }, 'a partition could not be stopped'),
        ),
    });
  }

  get owned(): number {
    return this.partitions.filter(({ open }) => open).length;
  }

  /** Those that it answers for or did a moment ago, for who looks into them. */
  get partitions(): Partition[] {
    return [...this.#moves.owners].flatMap(({ partition }) => partition ?? []);
  }

  get dispatch(): Dispatch {
    return this.#dispatch;
  }

  get liveRuns(): number {
    return this.#load.liveRuns;
  }

  get brokenInvariants(): number {
    return this.#invariants.broken;
  }

  get trouble(): string | undefined {
    for (const { refusal } of this.#moves.owners) if (refusal !== undefined) return refusal;
    return this.#membership.trouble;
  }

  async start(): Promise<void> {
    const { bus } = this.#ports;
    const members = this.#ports.watchLeases<Membership>(
      buckets.members,
      (event) => {
        // Outside the border: what is not taken here is not told again, and nobody owns what a member is given that is gone.
        if (event.kind === 'put') this.#members.add(event.key);
        else this.#members.delete(event.key);
        this.#guarded('scheduler.membership', () => this.#moves.rebalance())();
      },
      this.#options.membershipMs ?? MEMBERSHIP_MS,
    );
    const runners = this.#ports.watchLeases<RunnerLease>(
      buckets.runners,
      this.#guarded('scheduler.runner-lease', (event) => {
        if (event.kind === 'expired') this.#leaseExpired(event.key);
        else this.#leaseSeen(event.key, event.value);
      }),
      this.#options.runnerLeaseMs ?? RUNNER_LEASE_MS,
    );
    this.#runnerLeases = runners;
    const controls = this.#ports.watchLeases<Control>(buckets.controls, (event) => {
      // Outside the border: what is not taken here is not told again, and would be granted.
      this.#controls.take(event);
      this.#guarded('scheduler.controls', () => {
        this.#dispatch.controlsChanged();
        this.#match();
      })();
    });
    this.#watches.push(members, runners, controls, { stop: this.#ports.onReconnected(() => this.#lossPause.begin()) });
    const fleet =
      this.#options.fleet === true
        ? this.#ports.watchLeases<FleetEntry>(
            FLEET_BUCKET,
            this.#guarded('scheduler.fleet', (event) => this.#fleetChanged(event)),
          )
        : undefined;
    if (fleet !== undefined) this.#watches.push(fleet);
    this.#releases = bus.subscribe<PartitionReleased>(
      subjects.released('*'),
      this.#guarded('scheduler.released', ({ partition }) => {
        if (this.#isMine(partition)) this.#moves.rebalance();
      }),
    );
    this.#demands = bus.subscribe<Demand>(
      subjects.demand('*'),
      this.#guarded('scheduler.demand', (demand) => {
        if (demand.scheduler !== this.member) this.#waitsElsewhere(demand);
      }),
    );
    await Promise.all([members.ready, runners.ready, this.#controls.follow(controls), fleet?.ready]);
    try {
      await this.#membership.join();
    } catch (error) {
      // Whoever starts it again makes another: nothing of this one may go on.
      this.#stopListening();
      throw error;
    }
    this.#sayWhetherCommitting();
    this.#tickLater();
    this.#moves.rebalance();
  }

  async settled(): Promise<void> {
    await this.#moves.settled();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#callOffTick();
    // What is being opened or handed back when the broker is away is not waited for.
    const { signal, end } = deadlineIn(this.#ports.time, CLOSE_MS);
    await this.#moves.close(signal);
    end();
    this.#stopListening();
    await this.#membership.leave();
  }

  #stopListening(): void {
    this.#pulls?.stop();
    this.#committing?.stop();
    this.#statuses.close();
    this.#releases?.stop();
    this.#demands?.stop();
    for (const watch of this.#watches) watch.stop();
  }

  // --- Partitions --------------------------------------------------------------------------------------------------

  #joined(member: string): void {
    this.member = member;
    this.#options.log.info({ member }, 'joined');
    this.#membershipOver = new AbortController();
    this.#members.add(member);
    this.#pulls?.stop();
    this.#pulls = this.#ports.bus.respond<PullRequest, PullReply>(subjects.pull(member, '*'), (request, call) => {
      const { log } = this.#options;
      const border = { log, about: { member }, failed: () => call.fail() };
      guarded('scheduler.pull', border, () => call.answer(this.#pull(request, call.subject.split('.')[2] ?? '')))();
      return LATER;
    });
    this.#statuses.open(member);
    this.#moves.rebalance();
  }

  #isMine(partition: number): boolean {
    return ownerOf(partition, this.#members) === this.member;
  }

  #ownerFor(partition: number, lost: (owner: PartitionOwner, reason: 'another' | 'failed') => void): PartitionOwner {
    const {
      log,
      queueTimeoutMs = 24 * 60 * 60 * 1000,
      logBytesMax = LOG_BYTES_MAX,
      artifactExpireMs = ARTIFACT_EXPIRE_MS,
      runnerLeaseMs = RUNNER_LEASE_MS,
    } = this.#options;
    const owner: PartitionOwner = new PartitionOwner(
      this.member,
      {
        ports: this.#ports,
        log,
        partition,
        ledger: this.#ledger,
        retention: this.#options.retention,
        settings: {
          queueTimeoutMs,
          logBytesMax,
          artifactExpireMs,
          slipKey: this.#options.slipKey,
          heldUntil: (stage) => this.#controls.heldUntil(stage),
          workspaceGraceMs: runnerLeaseMs,
          liveRunsPerKeyMax: LIVE_RUNS_PER_KEY_MAX,
          approvalMs: this.#options.approvalMs ?? APPROVAL_MS,
          heldMax: this.#options.heldMax ?? HELD_PER_REPOSITORY_MAX,
        },
        ...this.#texts,
        intake: this.#intake,
        dispatch: this.#dispatch,
        load: this.#load,
        stories: this.#stories,
        meter: this.#options.meter ?? noMeter,
        tracer: this.#options.tracer,
        mayAct: () => this.#membership.mayAct(),
        mayDeclareLoss: () => this.#lossPause.isOver && this.#runnerLeases?.current !== false,
        isGone: (member) => this.#leases.isGone(member),
        refreshSessions: (sessions, signal) => this.#refreshSessions(sessions, signal),
      },
      (reason) => lost(owner, reason),
    );
    return owner;
  }

  async #forgetAll(): Promise<void> {
    this.#membershipOver.abort();
    // The watch may never have seen this id: then it would never say that it is gone.
    this.#members.delete(this.member);
    this.member = '';
    await this.#moves.forgetAll();
  }

  /** While one of the sessions is missing, until the bucket is old enough to say so. */
  async #refreshSessions(sessions: readonly RunnerSession[], signal: AbortSignal): Promise<void> {
    for (;;) {
      for (const [key, lease] of await this.#leases.runnersNow(signal)) this.#leaseSeen(key, lease);
      const missing = await this.#missingSessions(sessions);
      if (missing === 0) return;
      const leftMs = await this.#leases.youngForMs(buckets.runners);
      if (leftMs <= 0) return;
      this.#options.log.warn(
        { leftMs },
        'the bucket of runners was made anew; their loss is not declared before one lease has passed',
      );
      await this.#ports.time.pause(leftMs, signal);
      signal.throwIfAborted();
    }
  }

  /** How many of them hold no lease, as the stream's leader says: a picture of all leases is a replica's, which may be behind. */
  async #missingSessions(sessions: readonly RunnerSession[]): Promise<number> {
    let missing = 0;
    for (const { runner, session } of sessions) {
      if (this.#dispatch.hasSession(session)) continue;
      const key = `${runner}.${session}`;
      const lease = await this.#leases.ofSession(key);
      if (lease === null) missing += 1;
      else this.#leaseSeen(key, lease);
    }
    return missing;
  }

  // --- Runners -----------------------------------------------------------------------------------------------------

  /** The broker binds the runner's name in the subject to its credentials; what the body says must be the same (P10). */
  #pull(request: PullRequest, runner: string): PullReply {
    if (request.runner !== runner) {
      this.#options.log.warn(
        { runner, claimed: request.runner },
        'a runner offered slots in the name of another; they are not taken',
      );
      return { ok: false, withdrawn: [] };
    }
    if (this.#isOfAnother(request.session, runner)) return { ok: false, withdrawn: [] };
    const withdrawn = this.#dispatch.withdraw(request.session, request.withdraw);
    const ok = this.#dispatch.addCredits(this.#ports.time.bootNow(), request);
    this.#match();
    return { ok, withdrawn };
  }

  #leaseSeen(key: string, lease: RunnerLease): void {
    if (key !== `${lease.runner}.${lease.session}`) {
      this.#options.log.warn({ key }, 'a lease names another runner or session than its key; it is ignored');
      return;
    }
    if (this.#expired.has(lease.session) || this.#isOfAnother(lease.session, lease.runner)) return;
    const isNew = !this.#sessions.has(lease.session);
    this.#sessions.set(lease.session, { lease, seenAtMs: this.#ports.time.bootNow() });
    this.#dispatch.sessionSeen(lease);
    for (const owner of this.#moves.owners) owner.leaseSeen(lease);
    if (isNew) this.#match();
  }

  /** A session is of the runner whose lease was the first to name it: no other offers, holds or ends anything in it. */
  #isOfAnother(session: string, runner: string): boolean {
    const known = this.#sessions.get(session);
    return known !== undefined && known.lease.runner !== runner;
  }

  /** What the runner has offered counts for as much as it may have now. */
  #fleetChanged(event: LeaseEvent<FleetEntry>): void {
    this.#dispatch.fleetChanged(event);
    for (const { lease } of this.#sessions.values()) if (lease.runner === event.key) this.#dispatch.sessionSeen(lease);
    this.#match();
  }

  #leaseExpired(key: string): void {
    const [runner = '', session = ''] = key.split('.');
    if (this.#isOfAnother(session, runner)) return;
    this.#expired.add(session);
    const [oldest] = this.#expired;
    if (this.#expired.size > EXPIRED_MAX && oldest !== undefined) this.#expired.delete(oldest);
    this.#sessions.delete(session);
    this.#dispatch.sessionGone(session);
    const owners = [...this.#moves.owners];
    void this.#inTurns(owners.map((owner) => () => owner.sessionLost(session, runner)));
  }

  /**
   * A session that was learned of at a take-over, while the watch was being set up anew, may end without a message of it. What
   * has been silent for longer than a lease lives is looked up: the stream's leader says whether it is gone, not this timer (P5).
   */
  async #lookAtSilent(): Promise<void> {
    const silentMs = 1.5 * (this.#options.runnerLeaseMs ?? RUNNER_LEASE_MS);
    const isSilent = ({ seenAtMs }: { readonly seenAtMs: number }): boolean =>
      this.#ports.time.bootNow() - seenAtMs > silentMs;
    if (this.#lookingAtSilent || ![...this.#sessions.values()].some(isSilent)) return;
    this.#lookingAtSilent = true;
    try {
      for (const [session, known] of this.#sessions) {
        if (!isSilent(known)) continue;
        const key = `${known.lease.runner}.${session}`;
        const held = await this.#leases.ofSession(key);
        if (held !== null) this.#leaseSeen(key, held);
        else if (isSilent(this.#sessions.get(session) ?? known)) this.#leaseExpired(key);
      }
    } catch (error) {
      this.#options.log.warn({ err: error }, 'silent runners could not be looked up; tried again in a second');
    } finally {
      this.#lookingAtSilent = false;
    }
  }

  /** One partition matches for all: the dispatch is shared, and each grant commits where its run is. */
  #match(): void {
    for (const owner of this.#moves.owners) {
      if (owner.partition?.open !== true) continue;
      owner.partition.creditsChanged();
      return;
    }
  }

  #tickLater(): void {
    this.#callOffTick = this.#ports.time.after(TICK_MS, () => {
      this.#tickLater();
      this.#guarded('scheduler.tick', () => this.#tick())();
    });
  }

  /**
   * Each partition has a turn of its own, and so has each other work of a second: what is short by itself adds up where there are
   * many partitions. What takes longer than a second is not begun again meanwhile.
   */
  #tick(): void {
    if (this.#ticking) return;
    this.#ticking = true;
    const works = [
      ...Array.from(this.#moves.owners, (owner) => () => owner.tick()),
      () => this.#dispatch.forgetIdle(this.#ports.time.bootNow()),
      () => this.#invariants.tick([this.#dispatch, ...this.partitions]),
      this.#guarded('scheduler.controls', () => this.#lookAtControls()),
      this.#guarded('scheduler.silent-sessions', () => this.#lookAtSilent()),
      this.#guarded('scheduler.committing', () => this.#sayWhetherCommitting()),
      this.#guarded('scheduler.demand', () => this.#announceDemand()),
      this.#guarded('scheduler.demand', () => this.#unserved.tell(this.#dispatch.unserved())),
      this.#guarded('scheduler.journal-level', () => this.#measureJournal()),
      // What could not be opened yet (its old owner's membership had not run out) is tried again.
      () => this.#moves.rebalance(),
    ];
    void this.#inTurns(works.map((work) => this.#guarded('scheduler.tick', work))).finally(
      () => (this.#ticking = false),
    );
  }

  /** The first of them now, and each of the others in a turn of its own; none once this scheduler is closed. */
  async #inTurns(works: readonly (() => void)[]): Promise<void> {
    for (const [index, work] of works.entries()) {
      if (index > 0) await this.#ports.time.turn();
      if (this.#isClosed) return;
      work();
    }
  }

  /** Their watch is heard again, or is not any more. */
  #lookAtControls(): void {
    const { areKnown } = this.#controls;
    if (areKnown === this.#knewControls) return;
    this.#knewControls = areKnown;
    const { log } = this.#options;
    if (areKnown) {
      log.info({}, 'it is known again what is paused');
      this.#match();
    } else log.warn({}, 'it is not known what is paused: nothing goes to runners until the broker has said so');
  }

  #sayWhetherCommitting(): void {
    const { bus } = this.#ports;
    if (this.trouble !== undefined) {
      this.#committing?.stop();
      this.#committing = undefined;
    } else this.#committing ??= bus.respond<null, Committing>(subjects.committing, () => ({ scheduler: this.member }));
  }

  #announceDemand(): void {
    // Nobody could offer it anything.
    if (this.member === '') return;
    this.#announce(subjects.demand(this.member), this.#demand.take(this.#dispatch.demand()));
    const before = this.#demandOfTenants;
    this.#demandOfTenants = new Map();
    for (const [tenant, all] of this.#dispatch.demandOfTenants()) {
      const announcer = before.get(tenant) ?? new DemandAnnouncer();
      this.#demandOfTenants.set(tenant, announcer);
      this.#announce(subjects.demandOfTenant(this.member, tenant), announcer.take([all, []]));
    }
  }

  #announce(subject: string, messages: ReturnType<DemandAnnouncer['take']>): void {
    for (const [index, waiting] of messages.entries()) {
      const more = index + 1 < messages.length ? { more: true as const } : {};
      this.#ports.bus.publish<Demand>(subject, { scheduler: this.member, waiting, ...more });
    }
  }

  #waitsElsewhere(demand: Demand): void {
    const labelSets = this.#demandParts.whole(demand);
    if (labelSets === undefined) return;
    if (this.#dispatch.waitsElsewhere(demand.scheduler, labelSets, this.#ports.time.bootNow())) this.#match();
  }

  #guarded<Args extends unknown[]>(name: BorderName, callback: (...args: Args) => unknown): (...args: Args) => void {
    return guarded(name, { log: this.#options.log, about: { member: this.member } }, callback);
  }

  async #measureJournal(): Promise<void> {
    const [owner] = this.#moves.owners;
    if (owner === undefined) return;
    try {
      this.#load.journalUsed = await this.#ports.openLog(owner.number).bytesUsedRatio();
    } catch {
      // The broker is away: commits say so themselves.
    }
  }
}
