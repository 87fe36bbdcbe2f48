/** A scheduler's process: the production classes, from `SchedulerService` inwards, over the simulated broker, store and clock. */
import { Dispatch, SchedulerService, type Partition } from '@penstock/scheduler/testing';
import type { Bus } from '@penstock/bus';
import { SimLedger } from '../world/ledger.ts';
import { SimNode } from '../world/sim-node.ts';
import { simLog } from '../world/sim-log.ts';
import { HELD_MAX } from '../world/profile.ts';
import { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import { mutatedLedger, mutatedWaits } from './mutated.ts';
import { simSchedulerPorts } from './scheduler-ports.ts';
import { simTexts } from './texts.ts';

const RESTART_MS = 500;
/** After most turns a partition is as it was before: it is looked at after one in so many of them, for what is wrong stays wrong. */
const LOOKS_EVERY = 8;

export class SimScheduler {
  readonly node: SimNode;
  readonly #dependencies: NodeDependencies;
  readonly #world: World;
  readonly #time: SimTime;
  #service: SchedulerService | undefined;
  #turns = 0;
  #asked = 0;
  /** What partitions and dispatch showed of themselves when they were looked at last. */
  readonly #looks = new WeakMap<object, string>();
  /** It is leaving: `stop` was asked for. */
  #stopping = false;

  constructor(dependencies: NodeDependencies, name: string) {
    const { world } = dependencies;
    this.#dependencies = dependencies;
    this.#world = world;
    this.node = new SimNode(name, world.timeline);
    this.node.handled = () => this.#handled();
    this.#time = new SimTime(world, this.node);
  }

  /** A start that finds no broker fails, and is made again, as the service's does. */
  start(): void {
    this.#stopping = false;
    this.node.handle(this.node.life, () => this.#begin());
  }

  #begin(): void {
    const { network } = this.#dependencies;
    const { profile, mutation } = this.#world;
    const ports = simSchedulerPorts(this.#dependencies, this.node, this.#time);
    const service = new SchedulerService(
      {
        bus: ports.bus as Bus,
        ledger: mutatedLedger(mutation, new SimLedger(network, this.node)),
        log: simLog(this.#world, this.node, (error, message) => this.#isExcused(error, message)),
        partitions: profile.partitions,
        runnerLeaseMs: profile.leaseMs,
        queueTimeoutMs: profile.queueTimeoutMs,
        approvalMs: profile.approvalMs,
        heldMax: HELD_MAX,
        keySlots: mutation === 'no-fair-slots' ? Number.MAX_SAFE_INTEGER : profile.keySlots,
        fleet: profile.fleet > 0,
        liveBytesMax: profile.liveBytesMax === 0 ? undefined : profile.liveBytesMax,
      },
      ports,
      simTexts(this.#world, this.node),
    );
    this.#service = service;
    const starting = service.start().catch(() => {
      this.#world.mark('start without a broker');
      this.node.after(RESTART_MS, () => this.#begin());
    });
    void this.#world.settle(this.node, starting);
  }

  /** Whether anything is kept for runs in this process. */
  get liveRuns(): number {
    return this.#service?.liveRuns ?? 0;
  }

  get dispatch(): Dispatch {
    return this.#service?.dispatch ?? new Dispatch();
  }

  /** Graceful: hands over and leaves. */
  stop(then: () => void): void {
    const service = this.#service;
    if (this.#stopping || service === undefined || service.member === '') return;
    this.#stopping = true;
    void this.#world.settle(
      this.node,
      service.close().then(() => this.node.after(this.#world.latency() * 4 + 1, then)),
    );
  }

  crash(): void {
    this.#service = undefined;
    this.node.crash();
  }

  /** Somebody sets its wall clock. */
  setClock(byMs: number): void {
    this.#time.skewMs += byMs;
  }

  /** After each of its turns. Where a log has lost its end, two runs of a group may be found that both go on. */
  #handled(): void {
    const world = this.#world;
    world.moved();
    if (this.#service === undefined || world.failure !== undefined) return;
    this.#turns += 1;
    const { partitions, dispatch } = this.#service;
    try {
      for (const partition of partitions) {
        const { sequence, commitNumber, runsInMemory, parkedRuns } = partition;
        const shown = `${sequence} ${commitNumber} ${runsInMemory} ${parkedRuns} ${dispatch.waiting}`;
        if (world.witness.isPartitionDisturbed(partition.settings.partition)) continue;
        if (!this.#isToBeLookedAt(partition, shown)) continue;
        partition.assertInvariants();
        this.#askWaits(partition);
      }
      if (this.#isToBeLookedAt(dispatch, `${dispatch.waiting}`)) dispatch.assertInvariants();
    } catch (error) {
      world.failWith(error);
    }
  }

  #isToBeLookedAt(part: object, shown: string): boolean {
    const isChanged = this.#looks.get(part) !== shown;
    if (isChanged) this.#looks.set(part, shown);
    return isChanged || this.#turns % LOOKS_EVERY === 0;
  }

  /** One run of the partition: it is asked between two turns, and so draws nothing of the world. */
  #askWaits(partition: Partition): void {
    if (!partition.open) return;
    const runs = [...partition.liveRuns];
    const run = runs[this.#asked % Math.max(1, runs.length)];
    this.#asked += 1;
    if (run?.isCommitted !== true) return;
    partition.waits({ runIds: [run.id], tenants: [run.state.tenant] }, (reply) => {
      for (const told of reply.ok ? reply.runs : [])
        this.#world.witness.waitsTold(run.state, mutatedWaits(this.#world.mutation, told));
    });
  }

  /** What a healthy process may tell of as an error. */
  #isExcused(error: unknown, message: string): boolean {
    const world = this.#world;
    if (message.startsWith('this run cannot be restored')) return true;
    // What a stop or the end of a membership has ended; a log that was cut, for which a checkpoint comes late.
    return (
      (error instanceof Error && error.name === 'AbortError') ||
      Array.from({ length: world.profile.partitions }, (_, partition) => partition).some((partition) =>
        world.witness.isPartitionDisturbed(partition),
      )
    );
  }
}
