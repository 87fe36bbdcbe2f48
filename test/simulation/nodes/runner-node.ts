/**
 * A runner's machine: the production classes, from `RunnerService` inwards, over the simulated broker, clock, disk, guard and
 * processes. The disk survives the process, and the guard its owner's freezes.
 */
import { RunnerService } from '@penstock/runner/testing';
import { SimNode } from '../world/sim-node.ts';
import { simLog } from '../world/sim-log.ts';
import { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import { simRunnerPorts } from './runner-ports.ts';
import { SimDisk } from './sim-disk.ts';
import type { SimGuard } from './sim-guard.ts';
import type { SimStages } from './sim-stages.ts';

const RESTART_MS = 500;
const UNTRUSTED = 'takes=untrusted';
const DRAIN_MS_MAX = 4_000;

export class SimRunner {
  readonly node: SimNode;
  readonly labels: readonly string[];
  readonly slots: number;
  readonly disk = new SimDisk();
  readonly #dependencies: NodeDependencies;
  readonly #world: World;
  readonly #time: SimTime;
  #service: RunnerService<SimGuard, SimStages> | undefined;
  #guards: SimGuard[] = [];
  #stopping = false;

  constructor(dependencies: NodeDependencies, name: string, labels: readonly string[], slots: number) {
    const { world } = dependencies;
    this.#dependencies = dependencies;
    this.#world = world;
    this.node = new SimNode(name, world.timeline);
    this.node.handled = () => world.moved();
    this.#time = new SimTime(world, this.node);
    this.labels = labels;
    this.slots = slots;
  }

  get name(): string {
    return this.node.name;
  }

  /** Every process of an earlier life is ended first (P14). A start that finds no broker is made again. */
  start(): void {
    this.#stopping = false;
    this.#whenAlone(() => this.#begin());
  }

  #whenAlone(then: () => void): void {
    this.#guards = this.#guards.filter((guard) => !guard.hasFired);
    if (this.#guards.length === 0) then();
    else this.node.after(10, () => this.#whenAlone(then));
  }

  #begin(): void {
    const { leaseMs, keeps } = this.#world.profile;
    // Runs without trust are those of worlds in which they might reach others.
    const labels = keeps > 0 ? [...this.labels, UNTRUSTED] : this.labels;
    const log = simLog(this.#world, this.node, (error) => isDiskFull(error));
    const service = new RunnerService(
      { log, runnerId: this.name, slots: this.slots, labels, leaseMs },
      simRunnerPorts(this.#dependencies, {
        node: this.node,
        time: this.#time,
        disk: this.disk,
        log,
        guarded: (guard) => this.#guards.push(guard),
      }),
    );
    this.#service = service;
    const beginning = service.begin().catch(() => {
      this.#world.mark('start without a broker');
      this.#service = undefined;
      this.node.after(RESTART_MS, () => this.#begin());
    });
    void this.#world.settle(this.node, beginning);
  }

  /** Graceful: takes no further stage, and waits a while for those that run, or half of the time for runs that it has begun as well. */
  stop(then: () => void): void {
    const service = this.#service;
    if (this.#stopping || service === undefined || service.session === null) return;
    this.#stopping = true;
    const limitMs = this.#world.random.between(0, DRAIN_MS_MAX);
    const drained = service.drain(limitMs, { finishesRuns: limitMs % 2 === 0 });
    void this.#world.settle(
      this.node,
      drained.then(() => this.node.after(1, then)),
    );
  }

  crash(): void {
    this.#service = undefined;
    this.node.crash();
    for (const guard of this.#guards) guard.ownerDied();
  }
}

function isDiskFull(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'ENOSPC';
}
