/**
 * A scheduler's process: the real Partition, Dispatch, Projector, membership and take-over behind a shell that mirrors scheduler.ts
 * and partition-owner.ts over the simulated broker, store and clock.
 */
import type { PullReply, PullRequest, RunnerLease } from '@penstock/bus';
import { Dispatch, ownerOf, SchedulerMembership, type SchedulerLoad } from '@penstock/scheduler/testing';
import { SimLedger } from '../world/ledger.ts';
import { SimOutage } from '../world/errors.ts';
import { leased } from '../world/leases.ts';
import { SimNode } from '../world/sim-node.ts';
import type { SchedulerPort } from '../world/subjects.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import { simMembershipPorts } from './membership-ports.ts';
import { SimOwner, type OwningScheduler } from './owner.ts';
import { MEMBERSHIP_MS } from '@penstock/bus';

const TICK_MS = 1_000;
const REJOIN_MS = 500;
const CLOSE_MS = 5_000;
const LOOK_MS = 30_000;

export class SimScheduler implements SchedulerPort, OwningScheduler {
  readonly node: SimNode;
  /** How far its wall clock is from the true time. */
  skewMs: number;
  /** Of its machine, which was started at another time than the world. */
  readonly #upSinceMs: number;
  readonly ledger: SimLedger;
  member = '';
  dispatch = new Dispatch();
  load: SchedulerLoad = {
    liveRuns: 0,
    liveRunsMax: 100_000,
    liveBytes: 0,
    liveBytesMax: 1024 ** 3,
    journalUsed: 0,
    unprojectedBytes: 0,
  };
  owners = new Map<number, SimOwner>();
  /** It is leaving: `stop` was asked for. */
  stopping = false;
  readonly #dependencies: NodeDependencies;
  readonly #world: World;
  #membership: SchedulerMembership;
  #members = new Set<string>();
  #sessions = new Map<string, { readonly lease: RunnerLease; seenAt: number }>();
  #expired = new Set<string>();
  #rebalancing: Promise<void> | undefined;
  #membershipOver = new AbortController();
  #again = false;
  #looking = false;
  #lookedAt = 0;
  /** May still be named by their logs although they are nobody's here. */
  #halfOpen = new Map<number, SimOwner>();

  constructor(dependencies: NodeDependencies, name: string) {
    const { world, network } = dependencies;
    this.#dependencies = dependencies;
    this.#world = world;
    this.node = new SimNode(name, world.timeline);
    this.ledger = new SimLedger(network, this.node);
    this.skewMs = Math.floor(world.random.between(-1, 1) * world.profile.clockSkewMs);
    this.#upSinceMs = world.random.between(0, 10_000_000);
    this.#membership = this.#newMembership();
  }

  start(): void {
    const { broker } = this.#dependencies.network;
    this.member = '';
    this.stopping = false;
    this.dispatch = new Dispatch();
    this.load = {
      liveRuns: 0,
      liveRunsMax: 100_000,
      liveBytes: 0,
      liveBytesMax: 1024 ** 3,
      journalUsed: 0,
      unprojectedBytes: 0,
    };
    this.owners = new Map();
    this.#membership = this.#newMembership();
    this.#members = new Set();
    this.#sessions = new Map();
    this.#expired = new Set();
    this.#halfOpen = new Map();
    this.#rebalancing = undefined;
    this.#looking = false;
    broker.watch(this.node, 'members', (event) => {
      if (event.kind === 'put') this.#members.add(event.key);
      else this.#members.delete(event.key);
      this.#rebalance();
    });
    broker.watch(this.node, 'runners', (event) => {
      if (event.kind === 'put') this.#leaseSeen(leased<RunnerLease>(event.value));
      else this.#leaseExpired(event.key);
    });
    let ready = 0;
    const start = (): void => {
      if (++ready < 2) return;
      this.#join();
      this.#tickLater();
    };
    broker.whenCurrent(this.node, 'members', start);
    broker.whenCurrent(this.node, 'runners', start);
  }

  mayAct(): boolean {
    if (this.#world.mutation === 'acts-for-ever') return true;
    return this.#membership.mayAct();
  }

  /** Whether anything is kept for runs in this process. */
  get liveRuns(): number {
    return this.load.liveRuns;
  }

  /** Graceful: hands over and leaves. */
  stop(then: () => void): void {
    if (this.stopping || this.member === '') return;
    this.stopping = true;
    void this.#world.settle(
      this.node,
      this.#close().then(() => this.node.after(this.#world.latency() * 4 + 1, then)),
    );
  }

  async #close(): Promise<void> {
    const world = this.#world;
    const deadline = new AbortController();
    this.node.after(CLOSE_MS, () => deadline.abort());
    await Promise.race([
      this.#rebalancing,
      world.promise<void>((resolve) => deadline.signal.addEventListener('abort', () => resolve(), { once: true })),
    ]);
    await Promise.all(
      [...this.owners.values(), ...this.#halfOpen.values()].map((owner) => owner.release(deadline.signal)),
    );
    await this.#membership.leave();
  }

  crash(): void {
    for (const owner of this.owners.values()) owner.crash();
    this.node.crash();
  }

  // --- Membership ----------------------------------------------------------------------------------------------------

  /** A start that finds no broker fails, and is made again. */
  #join(): void {
    const joining = this.#membership.join().catch((error: unknown) => {
      if (!(error instanceof SimOutage)) throw error;
      this.node.after(REJOIN_MS, () => this.#join());
    });
    void this.#world.settle(this.node, joining);
  }

  #newMembership(): SchedulerMembership {
    return new SchedulerMembership({
      ports: simMembershipPorts(this.#dependencies.network, this.node, () => this.bootNow()),
      ttlMs: MEMBERSHIP_MS,
      log: { warn: () => {} },
      joined: (member) => this.#joined(member),
      lost: () => this.#forgetAll(),
    });
  }

  #joined(member: string): void {
    this.#membershipOver = new AbortController();
    this.member = member;
    this.#members.add(member);
    this.#world.trace(() => `${this.node.name} joins as ${member}`);
    this.#rebalance();
  }

  #forgetAll(): void {
    this.#world.mark('membership lost');
    this.#members.delete(this.member);
    this.member = '';
    this.#membershipOver.abort();
    for (const owner of [...this.owners.values(), ...this.#halfOpen.values()]) owner.forget();
    this.owners.clear();
    this.#halfOpen.clear();
  }

  // --- Partitions ----------------------------------------------------------------------------------------------------

  #rebalance(): void {
    if (this.stopping || this.member === '') return;
    if (this.#rebalancing !== undefined) {
      this.#again = true;
      return;
    }
    this.#rebalancing = this.#world.settle(
      this.node,
      this.#rebalanceOnce().finally(() => {
        this.#rebalancing = undefined;
        if (!this.#again) return;
        this.#again = false;
        this.#rebalance();
      }),
    );
  }

  /** Another has handed a partition over: if it is ours now, it is opened at once. */
  released(partition: number): void {
    if (this.member === '' || ownerOf(partition, this.#members) !== this.member) return;
    this.#world.mark('opened at the message of its release');
    this.#rebalance();
  }

  async #rebalanceOnce(): Promise<void> {
    const { member } = this;
    const mine = new Set<number>();
    for (let partition = 0; partition < this.#world.profile.partitions; partition++)
      if (ownerOf(partition, this.#members) === member) mine.add(partition);
    this.#lookAtOthers(mine);
    await Promise.all(
      [...this.owners].map(async ([partition, owner]) => {
        if (mine.has(partition)) return;
        this.owners.delete(partition);
        this.#world.mark('hand-over');
        this.#halfOpen.set(partition, owner);
      }),
    );
    await Promise.all(
      [...this.#halfOpen].map(async ([partition, owner]) => {
        if (mine.has(partition)) this.#halfOpen.delete(partition);
        else if (await owner.release(this.#membershipOver.signal)) {
          if (this.#halfOpen.get(partition) === owner) this.#halfOpen.delete(partition);
        }
      }),
    );
    await Promise.all([...mine].map((partition) => this.#take(partition)));
  }

  #lookAtOthers(mine: ReadonlySet<number>): void {
    if (this.#world.now - this.#lookedAt < LOOK_MS) return;
    this.#lookedAt = this.#world.now;
    for (let partition = 0; partition < this.#world.profile.partitions; partition++) {
      if (!mine.has(partition) && !this.owners.has(partition) && !this.#halfOpen.has(partition))
        this.#halfOpen.set(partition, new SimOwner(this.#dependencies, this, this.member, partition, () => {}));
    }
  }

  async #take(partition: number): Promise<void> {
    if (this.owners.has(partition) || this.stopping || this.member === '') return;
    const owner: SimOwner = new SimOwner(this.#dependencies, this, this.member, partition, () => {
      if (this.owners.get(partition) === owner) this.owners.delete(partition);
      this.#rebalance();
    });
    this.owners.set(partition, owner);
    try {
      if (await owner.open()) return;
    } catch (error) {
      this.#world.trace(() => `${this.node.name} could not open partition ${partition}: ${String(error)}`);
      this.#world.mark('opening failed');
      // Broker and store fail, a checkpoint comes late for a log that was cut, and a stop ends an opening: tried again, here or
      // elsewhere. All else is a fault of the code.
      const isEnded = this.stopping && error instanceof Error && error.name === 'AbortError';
      const isOutage = isEnded || error instanceof SimOutage || this.#world.witness.isPartitionDisturbed(partition);
      if (!isOutage && this.member === owner.member)
        this.#world.fail(error instanceof Error ? error : new Error(String(error)));
      if (this.member === owner.member) this.#halfOpen.set(partition, owner);
    }
    owner.forget();
    if (this.owners.get(partition) === owner) this.owners.delete(partition);
  }

  // --- Runners -------------------------------------------------------------------------------------------------------

  pull(request: PullRequest, reply: (reply: PullReply) => void): void {
    const withdrawn = this.dispatch.withdraw(request.session, request.withdraw);
    this.dispatch.addCredits(this.bootNow(), request);
    this.#match();
    reply({ ok: true, withdrawn });
  }

  /** Takes the picture of the leases as the broker has it, read fresh. */
  refreshSessions(leases: Iterable<RunnerLease>): void {
    for (const lease of leases) this.#leaseSeen(lease);
  }

  now(): number {
    return this.#world.wallClock() + this.skewMs;
  }

  bootNow(): number {
    return this.#world.now + this.#upSinceMs;
  }

  /** Somebody sets its wall clock. */
  setClock(byMs: number): void {
    this.skewMs += byMs;
  }

  #leaseSeen(lease: RunnerLease): void {
    if (this.#expired.has(lease.session)) return;
    const isNew = !this.#sessions.has(lease.session);
    this.#sessions.set(lease.session, { lease, seenAt: this.#world.now });
    this.dispatch.sessionSeen(lease);
    for (const owner of this.owners.values()) owner.partition?.leaseSeen(lease);
    if (isNew) this.#match();
  }

  #leaseExpired(key: string): void {
    const [runner = '', session = ''] = key.split('.');
    this.#expired.add(session);
    this.#sessions.delete(session);
    this.dispatch.sessionGone(session);
    for (const owner of this.owners.values()) owner.partition?.sessionLost(session, runner);
  }

  /** A session that was learned of aside from the watch may end without any message of it: what is silent is looked at. */
  #lookAtSilent(): void {
    const { leaseMs } = this.#world.profile;
    if (this.#looking || ![...this.#sessions.values()].some(({ seenAt }) => this.#world.now - seenAt > 1.5 * leaseMs))
      return;
    this.#looking = true;
    void this.#world.settle(
      this.node,
      this.#dependencies.network.keysNow(this.node, 'runners').then((keys) => {
        this.#looking = false;
        for (const [session, { lease, seenAt }] of this.#sessions) {
          const key = `${lease.runner}.${session}`;
          if (keys.has(key) || this.#world.now - seenAt <= 1.5 * leaseMs) continue;
          this.#world.mark('silent session found gone');
          this.#leaseExpired(key);
        }
      }),
    );
  }

  #match(): void {
    for (const owner of this.owners.values()) {
      if (owner.partition?.open !== true) continue;
      owner.partition.creditsChanged();
      return;
    }
  }

  #tickLater(): void {
    this.node.after(TICK_MS, () => {
      this.load.journalUsed = this.#world.journalUsed;
      for (const owner of this.owners.values()) owner.tick();
      this.dispatch.forgetIdle(this.bootNow());
      this.#lookAtSilent();
      if (this.dispatch.demand().length > 0) this.#dependencies.subjects.announceDemand(this);
      if (this.#world.mutation === 'own-timer-declares-loss') this.#declareLossByTimer();
      this.#rebalance();
      this.#tickLater();
    });
  }

  #declareLossByTimer(): void {
    for (const { lease, seenAt } of this.#sessions.values()) {
      if (this.#world.now - seenAt > this.#world.profile.leaseMs / 2)
        this.#leaseExpired(`${lease.runner}.${lease.session}`);
    }
  }
}
