/**
 * Who gets the next free slot. Owns the stages that wait for a runner and the order between them, and has the runner sessions with
 * their open credits (`sessions.ts`); shared by all partitions of a scheduler. Decides on memory alone: a pick becomes a grant
 * only by the run's machine.
 *
 *  DISPATCH-1 Order: higher priority first; then the key that has had the least, by weight (stride scheduling over keys); then
 *     first come, first served within a key, whatever its stages ask for; but what is bound to the session's runner before what is not, as its run
 *     has begun. So a key with 2,000 waiting stages delays another's by one slot at most.
 *  DISPATCH-2 A stage goes only to a session with all of its labels and as much as it asks for, and to the one runner that holds its workspace (P19).
 *  DISPATCH-3 A credit is spent once, only while its session's lease is known, and not after CREDIT_SPENT_WITHIN_MS (P11); nor after its
 *     runner has begun another session.
 *  DISPATCH-4 The demand that is announced is what the queues hold.
 *  DISPATCH-5 While another key waits for a slot, here or at another scheduler, a key that has all it may have of the slots that could
 *     serve it gets no further one (`key-slots.ts`). Nobody is stopped for it: who comes later waits for one stage to end at most.
 *  DISPATCH-6 Nothing is picked while it is not known what is paused, nothing that is paused, and for a drained runner, or one that
 *     leaves (P11), only what is bound to it (P35, `controls.ts`). What is paused is no demand, and nobody leaves a slot to it.
 *  DISPATCH-7 A session that has named a run gets stages of that run alone, whatever waits before them (`named-runs.ts`); DISPATCH-5 has
 *     no say there, as its slots are of no use to anybody else.
 *  DISPATCH-8 A session of a tenant's runner gets stages of that tenant alone (P37), and counts for nobody else: not for the slots that
 *     keys share (DISPATCH-5), which has no say there for the same reason, and not for what others are told of runners.
 */
import type { FleetEntry, LeaseEvent, PullRequest, RunnerLease } from '@penstock/bus';
import { NO_CONTROLS, type Controls } from '../controls/controls.ts';
import { demandOfTenants, DemandSets, type WaitingSets } from './demand-sets.ts';
import { DispatchInvariants } from './dispatch-invariants.ts';
import { EarlierResults } from './earlier-results.ts';
import { FleetEntries } from './fleet-entries.ts';
import { IdleWalk } from './idle-walk.ts';
import { KeySlots } from './key-slots.ts';
import { goesBefore, type Lane, type Rival } from './lane.ts';
import { NamedRuns } from './named-runs.ts';
import { OwnLanes } from './own-lanes.ts';
import { classId, type Queues } from './place.ts';
import { Pools, type Unserved } from './pools.ts';
import { type ClassLane, lanesOf, ReadyClass } from './ready-class.ts';
import { ReadyClasses } from './ready-classes.ts';
import type { ReadyGroup } from './ready-group.ts';
import { ReadyGroups } from './ready-groups.ts';
import type { ReadyStages } from './ready-stage.ts';
import { KeyTurns } from './key-turns.ts';
import {
  addCredits,
  canTake,
  forgetPast,
  isFor,
  isSameCapacity,
  nextCredit,
  Sessions,
  spend,
  type Session,
} from './sessions.ts';
import { WaitingElsewhere } from './waiting-elsewhere.ts';
import { type WaitingLane, waitingLanes, waitingSets, type WaitingSet } from './waiting-sets.ts';
import { invariant } from '../run/invariant.ts';
import { Lengths } from '../run/lengths.ts';

/** Groups looked at in one match: 10 ms at the most. */
const LOOKS_MAX = 50_000;
/** Of so many new groups each idle session is asked about each; of more, each session looks for itself. */
const OFFERED_LOOKS_MAX = 16;

type Picked = NonNullable<ReturnType<Lane['take']>>;

export interface DispatchOptions {
  readonly weightOf?: ((key: string) => number) | undefined;
  /** `SERVICE_KEY_SLOTS`. */
  readonly keySlots?: number | undefined;
  /** Default: nothing is ever paused. */
  readonly controls?: Pick<Controls, 'areKnown' | 'isAllPaused' | 'pauseOf' | 'isDrained' | 'drained'> | undefined;
}

export class Dispatch {
  readonly #sessions = new Sessions();
  readonly #fleet = new FleetEntries();
  readonly #earlierResults = new EarlierResults();
  readonly #namedRuns = new NamedRuns();
  readonly #own = new OwnLanes();
  readonly #pools: Pools;
  /** Tenants with runners of their own for which something was offered since. */
  readonly #offeredTo = new Set<string>();
  readonly #classes = new Map<string, ReadyClass>();
  readonly #idleWalk = new IdleWalk(this.#classes);
  readonly #near = new ReadyClasses<ReadyClass>();
  readonly #groups = new ReadyGroups();
  /** Sessions that may find something: they have new credits or labels, or the last match left them to the next. */
  readonly #wanting = new Set<Session>();
  /** Sessions that have found nothing for their credits: nothing is for them until more is offered. */
  readonly #idle = new Set<Session>();
  /** Groups in which something was offered since. */
  readonly #offered = new Set<ReadyGroup>();
  #looksLeft = 0;
  readonly #turns: KeyTurns;
  /** The slots of each key; whoever owns its runs counts them. */
  readonly keySlots: KeySlots;
  /** How long what is executed takes; whoever owns its runs tells. */
  readonly lengths = new Lengths();
  /** For who asks where a stage stands; nothing is changed through it. */
  readonly queues: Queues;
  /** Groups with turns of full keys. */
  readonly #withFull = new Set<ReadyGroup>();
  readonly #elsewhere = new WaitingElsewhere();
  readonly #demand: DemandSets;
  readonly #invariants: DispatchInvariants;
  /** What is paused and drained. */
  readonly controls: NonNullable<DispatchOptions['controls']>;
  /** Runners that were drained when the controls were last looked at. */
  #drained: ReadonlySet<string> = new Set();
  #waiting = 0;

  constructor({ weightOf = () => 1, keySlots, controls = NO_CONTROLS }: DispatchOptions = {}) {
    this.controls = controls;
    this.#turns = new KeyTurns(weightOf);
    const isDrained = (runner: string): boolean => this.controls.isDrained(runner);
    this.#pools = new Pools({ sessions: this.#sessions, own: this.#own, isDrained });
    this.keySlots = new KeySlots(keySlots, (key) => this.#back(key));
    this.#demand = new DemandSets({
      classes: this.#classes,
      near: this.#near,
      sessions: this.#sessions,
      pools: this.#pools,
      isPaused: this.#isPaused,
      isFull: this.#isFull,
    });
    this.#invariants = new DispatchInvariants({
      classes: this.#classes,
      sessions: this.#sessions,
      groups: this.#groups,
      turns: this.#turns,
      waiting: () => this.#waiting,
    });
    this.queues = {
      classes: this.#classes,
      sessions: this.#sessions,
      passOf: this.#turns.passOf,
      virtualTime: () => this.#turns.virtualTime,
      weightOf,
      isFull: this.#isFull,
      isPaused: this.#isPaused,
      poolOf: (ready, tenant) => this.#pools.of(ready, tenant),
      hasOwnRunners: (tenant) => this.#own.has(tenant),
    };
  }

  /** Stages in the queues; those that wait no more are counted until they are met. */
  get waiting(): number {
    return this.#waiting;
  }

  offer(stages: ReadyStages): void {
    const runner = stages.boundTo();
    const id = classId(stages, runner);
    let ready = this.#classes.get(id);
    if (ready === undefined) {
      ready = new ReadyClass(id, stages, runner);
      this.#classes.set(id, ready);
      this.#near.add(ready);
      this.#demand.added(ready);
    }
    const group = this.#groups.of(ready);
    this.#offered.add(group);
    let lane = ready.laneOf(stages);
    const isNew = lane === undefined;
    lane ??= ready.newLane(stages, this.#turns.joins(stages.key));
    this.#waiting += stages.count - lane.push(stages);
    if (isNew) {
      group.add(ready, lane);
      this.#own.added(ready, lane);
    }
    if (stages.tenant !== undefined && this.#own.has(stages.tenant)) this.#offeredTo.add(stages.tenant);
    this.#namedRuns.offered(stages);
  }

  /** Adds credits of a session; numbers beyond the bound are dropped, their slots will be offered again. False: it is granted nothing. */
  addCredits(
    now: number,
    offer: Omit<PullRequest, 'labels' | 'withdraw'> & { readonly labels?: readonly string[] | undefined },
  ): boolean {
    if (this.#fleet.allowed(offer.runner, []) === null) return false;
    if (!this.#sessions.hasRoomFor(offer.runner, offer.session)) return false;
    const session = this.#sessionOf(offer.runner, offer.session);
    if (session.runner !== offer.runner) return false;
    // A tenant's runner could change them with each offer, and have all that waits for it looked at anew: its leases say them.
    if (offer.labels !== undefined && session.tenant === undefined) this.#setLabels(session, offer.labels);
    const { only, leaving } = offer;
    if (leaving === true && !session.isLeaving) {
      session.isLeaving = true;
      if (session.leased) this.#poolsChanged(session);
      this.#queueBound(
        offer.runner,
        session.tenant === undefined ? lanesOf(this.#classes) : this.#own.of(session.tenant),
      );
    }
    if (only !== undefined) this.#namedRuns.name(session, only.runId, () => this.#waitingOf(only.key));
    // A tenant's that has found nothing finds no more for more credits, however often it offers some.
    if (session.tenant === undefined || !this.#idle.has(session)) this.#mayFind(session);
    addCredits(session, offer.credits, now);
    return true;
  }

  /** Takes credits back; those still open are answered. */
  withdraw(sessionId: string, credits: readonly number[]): number[] {
    const session = this.#sessions.find(sessionId);
    return session === undefined ? [] : credits.filter((credit) => spend(session, credit));
  }

  /** What the runner had offered is granted no more where it has no entry now; of its labels its next lease says. */
  fleetChanged(event: LeaseEvent<FleetEntry>): void {
    if (!this.#fleet.follow(event)) this.#sessions.closeCredits(event.key);
    for (const session of this.#sessions.ofRunner(event.key)) this.#setTenant(session);
  }

  /** Whose stages alone the runner may be granted; undefined: everybody's. */
  tenantOf(runner: string): string | undefined {
    return this.#fleet.tenantOf(runner);
  }

  /** Made where there is none. */
  #sessionOf(runner: string, id: string): Session {
    const known = this.#sessions.find(id);
    if (known !== undefined) return known;
    const session = this.#sessions.get(runner, id);
    this.#setTenant(session);
    return session;
  }

  #setTenant(session: Session): void {
    const tenant = this.#fleet.tenantOf(session.runner);
    if (session.tenant === tenant) return;
    this.#own.leave(session);
    session.tenant = tenant;
    this.#own.join(session, () => lanesOf(this.#classes));
    if (tenant === undefined) this.#groups.seen(session);
    if (session.leased) this.#changeAllPools();
    this.#mayFind(session);
  }

  sessionSeen(lease: RunnerLease): void {
    const session = this.#sessionOf(lease.runner, lease.session);
    if (!session.leased) {
      this.#sessions.closeEarlier(session);
      session.leased = true;
      this.#poolsChanged(session);
      this.#mayFind(session);
    }
    if (session.slots !== lease.slots || !isSameCapacity(session.capacity, lease.capacity)) {
      session.slots = lease.slots;
      session.capacity = lease.capacity;
      if (session.tenant === undefined) this.#groups.seen(session);
      this.#poolsChanged(session);
      this.#mayFind(session);
    }
    this.#setLabels(session, lease.labels);
    this.#earlierResults.seen(lease);
  }

  sessionGone(sessionId: string): void {
    const session = this.#sessions.find(sessionId);
    if (session !== undefined) this.#deleteSession(session);
    this.#earlierResults.gone(sessionId);
  }

  hasSession(sessionId: string): boolean {
    return this.#sessions.find(sessionId)?.leased === true;
  }

  /** Whether a living lease stands for the attempt: that of its own session, or one that lists its result (P13). */
  holds(attempt: { readonly runner: string; readonly session: string; readonly credit: number }): boolean {
    return this.hasSession(attempt.session) || this.#earlierResults.has(attempt);
  }

  hasRunner(runner: string): boolean {
    return this.#sessions.hasRunner(runner);
  }

  /** Whether the runner is here, and none of its sessions has all of these labels any more (P19). */
  lacks(runner: string, labels: readonly string[]): boolean {
    return this.#sessions.lacks(runner, labels);
  }

  /**
   * Spends credits on stages until one of the two is used up. True: there is more to do, which is left to the next call, so
   * that none takes long whatever waits for whom.
   */
  match(now: number): boolean {
    // Who wants something goes on wanting it.
    if (!this.controls.areKnown || this.controls.isAllPaused) return false;
    this.#looksLeft = LOOKS_MAX;
    if (this.#groups.renew(this.#sessions.values())) this.#lookAnew();
    do {
      this.#wakeIdle();
      for (const session of this.#wanting) {
        if (!this.#serve(session, now)) return true;
        this.#wanting.delete(session);
      }
    } while (this.#offered.size > 0 && this.#idle.size > 0);
    this.#offered.clear();
    this.#offeredTo.clear();
    return false;
  }

  /** Groups are others: what is remembered of them stands for nothing any more. */
  #lookAnew(): void {
    this.#back();
    this.#offered.clear();
    this.#withFull.clear();
    this.#allMayFind();
  }

  /** What is paused or drained has changed: everybody looks anew. */
  controlsChanged(): void {
    const drained = new Set(this.controls.drained);
    for (const runner of drained) if (!this.#drained.has(runner)) this.#queueBound(runner, lanesOf(this.#classes));
    this.#drained = drained;
    this.#changeAllPools();
    this.#allMayFind();
  }

  /**
   * What was queued before its run had a runner stands where anybody may take it, and is found there to be bound when it is picked.
   * A drained runner, or one that leaves, picks nothing there any more: all that is bound to it is put where it looks. Once for each that
   * does: with 10,000 stages that wait 2 ms of a processor, 4 where each has a key of its own.
   */
  #queueBound(runner: string, lanes: Iterable<ClassLane>): void {
    const bound: ReadyStages[] = [];
    for (const { ready, lane } of lanes) {
      if (ready.runner !== undefined) continue;
      const before = lane.count;
      for (const stages of lane.takeOut((each) => each.boundTo() === runner)) bound.push(stages);
      this.#waiting -= before - lane.count;
    }
    for (const stages of bound) this.offer(stages);
  }

  /** False: it is to be served on at the next match. */
  #serve(session: Session, now: number): boolean {
    for (;;) {
      const credit = nextCredit(session, now);
      if (credit === undefined) return true;
      if (this.#looksLeft <= 0) return false;
      const picked = this.#waiting === 0 ? undefined : this.#pick(session);
      if (picked === undefined) {
        this.#idle.add(session);
        return true;
      }
      const { stages, index } = picked;
      const { tenant } = session;
      invariant('DISPATCH-8', isFor(session, stages), "a stage was picked for another tenant's runner", () => ({
        tenant,
      }));
      if (stages.grant(index, { runner: session.runner, session: session.session, credit })) spend(session, credit);
    }
  }

  /** Those for whom something may have been offered. */
  #wakeIdle(): void {
    if (this.#offered.size === 0) return;
    const offered = [...this.#offered];
    this.#offered.clear();
    const mayTake = (session: Session): boolean =>
      session.tenant === undefined
        ? offered.length > OFFERED_LOOKS_MAX || offered.some((ready) => canTake(session, ready))
        : this.#offeredTo.has(session.tenant);
    for (const session of this.#idle) if (mayTake(session)) this.#mayFind(session);
    this.#offeredTo.clear();
  }

  #allMayFind(): void {
    for (const session of this.#idle) this.#mayFind(session);
  }

  #mayFind(session: Session): void {
    if (!session.leased) return;
    this.#idle.delete(session);
    this.#wanting.add(session);
  }

  #setLabels(session: Session, offered: readonly string[]): void {
    const labels = this.#fleet.allowed(session.runner, offered) ?? [];
    if (!this.#sessions.setLabels(session, labels)) return;
    if (session.leased) this.#poolsChanged(session);
    this.#mayFind(session);
  }

  #deleteSession(session: Session): void {
    this.#sessions.delete(session);
    this.#own.leave(session);
    this.#namedRuns.gone(session);
    if (session.leased) this.#poolsChanged(session);
    this.#wanting.delete(session);
    this.#idle.delete(session);
  }

  #deleteClass(ready: ReadyClass): void {
    this.#classes.delete(ready.id);
    this.#near.delete(ready);
    this.#demand.deleted(ready);
    const group = this.#groups.delete(ready);
    if (group === undefined) return;
    this.#offered.delete(group);
    this.#withFull.delete(group);
  }

  /**
   * Lets go of what is of no use any more: stages that wait no longer in queues that nobody looks at, sessions that were
   * never leased or are over, credits of the past. Called about every second.
   */
  forgetIdle(now: number): void {
    this.keySlots.forgetGone();
    const lookAt = (lane: Lane, ready: ReadyClass, toClear: boolean): void => {
      if (toClear) this.#waiting -= lane.clearUp();
      this.#dropIdle(lane);
      if (lane.count > 0) return;
      this.#groups.of(ready).delete(lane);
      ready.deleteLane(lane);
    };
    this.#idleWalk.take(lookAt, (ready) => {
      if (ready.lanes.size === 0) this.#deleteClass(ready);
    });
    if (this.#elsewhere.forgetOld(now)) this.#allMayFind();
    for (const session of this.#sessions.values()) {
      forgetPast(session, now);
      if (!session.leased && session.credits.size === 0 && session.spent.size === 0) this.#deleteSession(session);
    }
  }

  /** What waits, per set of labels: the demand to announce. See `demand-sets.ts`. */
  demand(): WaitingSets {
    return this.#demand.take();
  }

  /** Tenants with runners of their own, and what of theirs waits, per set of labels. */
  demandOfTenants(): ReturnType<typeof demandOfTenants> {
    return demandOfTenants(this.#own, this.#isPaused);
  }

  waitingSets(): Iterable<WaitingSet> {
    return waitingSets(this.#classes.values(), this.#sessions, this.#pools.version, this.#isPaused);
  }

  /** What waits of each key, what is paused among it. */
  waitingLanes(): Iterable<WaitingLane> {
    return waitingLanes(this.#classes, this.#isPaused);
  }

  /** What another scheduler says of its stages. True: slots that were left to it may find something here now. */
  waitsElsewhere(scheduler: string, labelSets: readonly (readonly string[])[], now: number): boolean {
    // Slots are left to others only where all that waits is of keys that are full.
    if (!this.#elsewhere.announced(scheduler, labelSets, now) || this.#withFull.size === 0) return false;
    this.#allMayFind();
    return true;
  }

  /** What waits and no runner here could ever take, as its labels are now: somebody has to be told. */
  unserved(): Generator<Unserved> {
    return this.#pools.unserved(this.#classes.values());
  }

  /** Between two steps. Throws InvariantBroken. */
  assertInvariants(): void {
    this.#invariants.assertAll();
  }

  /** The same of some of the queues, where all of them are more than one turn is for. */
  sampleInvariants(): void {
    this.#invariants.assertSample();
  }

  /** The first stage in order that this session can take, removed from its queue. */
  #pick(session: Session): Picked | undefined {
    if (this.#namedRuns.has(session)) return this.#pickNamed(session);
    for (;;) {
      const lane =
        session.tenant === undefined
          ? (this.#bestLane(session, (group) => this.#firstLane(group)) ?? this.#bestFull(session))
          : this.#bestOwn(session);
      const picked = lane?.take();
      if (lane === undefined || picked === undefined) return undefined;
      this.#waiting -= 1;
      const { stages, index } = picked;
      if (!stages.waits(index)) continue;
      const runner = stages.boundTo();
      if (runner === undefined || runner === session.runner) {
        this.#turns.charge(stages.key);
        return picked;
      }
      // Bound to another runner since they were queued: they wait for that one.
      this.#waiting -= lane.takeRest(stages);
      this.offer(index === 0 ? stages : stages.rest(index));
    }
  }

  /** DISPATCH-7. */
  #pickNamed(session: Session): Picked | undefined {
    this.#looksLeft -= 1;
    const isDrained = this.#isDrained(session);
    const picked = this.#namedRuns.pick(session, (stages) => {
      const { key, labels } = stages;
      const isOut = this.controls.pauseOf({ key, labels }) !== undefined || !isFor(session, stages);
      return isOut || (isDrained && stages.boundTo() === undefined);
    });
    if (picked !== undefined) {
      this.#turns.charge(picked.stages.key);
      this.#idleWalk.leftBehind(picked.stages.key);
    }
    return picked;
  }

  /** DISPATCH-6. */
  #isDrained({ isLeaving, runner }: Session): boolean {
    return isLeaving || this.controls.isDrained(runner);
  }

  *#waitingOf(key: string): Generator<ReadyStages> {
    for (const { lane } of lanesOf(this.#classes)) if (lane.key === key) yield* lane.left();
  }

  /** DISPATCH-8. Where these lanes stand among others does not matter, and is not changed. */
  #bestOwn(session: Session): Lane | undefined {
    let best: Rival | undefined;
    const isDrained = this.#isDrained(session);
    this.#looksLeft -= 1;
    for (const { ready, lane } of this.#own.of(session.tenant)) {
      this.#looksLeft -= 1;
      if (!canTake(session, ready) || (isDrained && ready.runner === undefined)) continue;
      this.#dropIdle(lane);
      if (lane.count === 0 || this.#isPaused(ready, lane)) continue;
      const { key, priority } = lane;
      const pass = Math.max(lane.pass, this.#turns.passOf(key));
      const rival = { lane, priority, pass, isBound: ready.runner !== undefined };
      if (best === undefined || goesBefore(rival, best)) best = rival;
    }
    return best?.lane;
  }

  /** DISPATCH-5: only while nobody else waits for such a slot. */
  #bestFull(session: Session): Lane | undefined {
    if (this.#withFull.size === 0 || this.#elsewhere.wants(session)) return undefined;
    return this.#bestLane(session, (group) => this.#firstFull(group));
  }

  #bestLane(session: Session, laneIn: (group: ReadyGroup) => Lane | undefined): Lane | undefined {
    let best: Rival | undefined;
    this.#looksLeft -= 1;
    const isDrained = this.#isDrained(session);
    for (const group of this.#groups.near(session)) {
      this.#looksLeft -= 1;
      if (!canTake(session, group) || (isDrained && group.runner === undefined)) continue;
      const lane = laneIn(group);
      if (lane === undefined) continue;
      const { priority, pass } = lane;
      const rival = { lane, priority, pass, isBound: group.runner !== undefined };
      if (best === undefined || goesBefore(rival, best)) best = rival;
    }
    return best?.lane;
  }

  /** The lane of this group whose turn it is, of keys that may have another slot. Those that are paused stand with the full ones. */
  #firstLane(group: ReadyGroup): Lane | undefined {
    const isOut = (ready: ReadyClass, lane: Lane): boolean => this.#isPaused(ready, lane) || this.#isFull(ready, lane);
    const lane = group.first(this.#turns.passOf, (each) => this.#dropIdle(each), isOut);
    if (group.fullTurns > 0) this.#withFull.add(group);
    return lane;
  }

  #firstFull(group: ReadyGroup): Lane | undefined {
    this.#looksLeft -= group.fullTurns;
    return group.firstFull(this.#turns.passOf, (lane) => this.#dropIdle(lane), this.#isPaused);
  }

  readonly #isPaused = ({ labels }: ReadyClass, { key }: Lane): boolean =>
    this.controls.pauseOf({ key, labels }) !== undefined;

  /** Who could serve it need not be known of a key that has nothing. */
  readonly #isFull = (ready: ReadyClass, { key, keySlots }: Lane): boolean =>
    this.keySlots.has(key) && this.keySlots.isFull(key, keySlots, this.#pools.of(ready));

  /** Of the session something that counts for what it can take; a tenant's own is in no pool that is kept. */
  #poolsChanged({ tenant }: Session): void {
    if (tenant === undefined) this.#changeAllPools();
  }

  #changeAllPools(): void {
    this.#pools.changed();
    this.#back();
  }

  /** Full turns take their places again: whether they are full is to be looked at anew. */
  #back(key?: string): void {
    for (const group of this.#withFull) {
      if (group.back(key)) this.#offered.add(group);
      if (group.fullTurns === 0) this.#withFull.delete(group);
    }
  }

  /** Lets go of the stages at the front that wait no more. */
  #dropIdle(lane: Lane): void {
    this.#waiting -= lane.dropIdle();
  }
}
