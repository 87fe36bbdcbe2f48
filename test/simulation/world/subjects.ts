/** The subjects of the bus: who listens on which, and what is sent there. Nodes know each other through nothing else. */
import type {
  CommittedEvents,
  Job,
  JobReply,
  PullReply,
  PullRequest,
  Release,
  StopReply,
  StopRequest,
} from '@penstock/bus';
import type { Partition } from '@penstock/scheduler/testing';
import type { Network } from './network.ts';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

interface OwnerPort {
  /** Whether it answers requests. */
  readonly listens: boolean;
  readonly partition: Partition | undefined;
  /** A request has been handled: it may have set a timer. */
  tickSoon(): void;
}

export interface SchedulerPort {
  readonly node: SimNode;
  readonly member: string;
  readonly owners: ReadonlyMap<number, OwnerPort>;
  pull(request: PullRequest, reply: (reply: PullReply) => void): void;
  /** Another has handed the partition over. */
  released(partition: number): void;
}

export interface RunnerPort {
  readonly node: SimNode;
  readonly name: string;
  /** Whether it can be reached under its subjects. */
  readonly listens: boolean;
  job(job: Job, reply: (reply: JobReply) => void): void;
  stop(request: StopRequest, reply: (reply: StopReply) => void): void;
  release(release: Release): void;
  /** Demand of a scheduler, announced every second. */
  demandHeard(member: string): void;
}

export interface GatewayPort {
  readonly node: SimNode;
  eventsArrived(partition: number, message: CommittedEvents): void;
  ownerOpened(partition: number): void;
}

export class Subjects {
  readonly schedulers: SchedulerPort[] = [];
  readonly runners: RunnerPort[] = [];
  readonly gateways: GatewayPort[] = [];
  readonly #network: Network;
  readonly #world: World;

  constructor(network: Network) {
    this.#network = network;
    this.#world = network.world;
  }

  /** A request to whoever owns the partition, or thinks so: the first answer counts. */
  askOwner<R>(
    from: SimNode,
    partition: number,
    ask: (owner: Partition, reply: (reply: R) => void) => void,
    answered: (reply: R) => void,
    noResponders?: () => void,
  ): void {
    if (!this.#network.isOpen(from) || this.#world.drops(this.#world.profile.lost)) return;
    const { life } = from;
    let done = false;
    this.#world.after(this.#world.latency(), () => {
      if (!this.#network.broker.up) return;
      const owners = this.schedulers.flatMap((scheduler) => {
        const owner = scheduler.owners.get(partition);
        return scheduler.node.alive && owner?.listens === true ? [{ scheduler, owner }] : [];
      });
      if (owners.length === 0) {
        this.#world.mark('no owner responds');
        this.#world.after(this.#world.latency(), () => from.handle(life, () => noResponders?.()));
      }
      if (owners.length > 1) this.#world.mark('two owners listen');
      for (const { scheduler, owner } of owners) {
        this.#network.send(scheduler.node, scheduler.node, () => {
          if (!owner.listens || owner.partition === undefined) return;
          ask(owner.partition, (reply) =>
            this.#network.send(scheduler.node, from, () => {
              if (done || from.life !== life) return;
              done = true;
              answered(reply);
            }),
          );
          owner.tickSoon();
        });
      }
    });
  }

  ownerMember(partition: number): string | undefined {
    return this.schedulers.find((scheduler) => scheduler.owners.get(partition)?.listens)?.member;
  }

  requestRunner<R>(
    from: SimNode,
    name: string,
    timeoutMs: number,
    ask: (runner: RunnerPort, reply: (reply: R) => void) => void,
    answered: (reply: R | 'no-responders' | 'no-answer') => void,
  ): void {
    let done = false;
    const answer = (reply: R | 'no-responders' | 'no-answer'): void => {
      if (done) return;
      done = true;
      answered(reply);
    };
    from.after(timeoutMs, () => answer('no-answer'));
    if (!this.#network.isOpen(from) || this.#world.drops(this.#world.profile.lost)) return;
    const { life } = from;
    this.#world.after(this.#world.latency(), () => {
      if (!this.#network.broker.up) return;
      const runner = this.runners.find((candidate) => candidate.name === name);
      // A connection that is cut is noticed by the broker after a while; until then what is sent there is lost.
      const noticed = runner?.node.linked === false && this.#world.now - runner.node.cutAt > 3_000;
      if (runner === undefined || !runner.listens || noticed) {
        this.#world.after(this.#world.latency(), () => {
          if (this.#network.isOpen(from)) from.handle(life, () => answer('no-responders'));
        });
        return;
      }
      this.#network.send(runner.node, runner.node, () =>
        ask(runner, (reply) =>
          this.#network.send(runner.node, from, () => {
            if (from.life === life) answer(reply);
          }),
        ),
      );
    });
  }

  toRunner(from: SimNode, name: string, deliver: (runner: RunnerPort) => void): void {
    const runner = this.runners.find((candidate) => candidate.name === name);
    if (runner !== undefined)
      this.#network.send(from, runner.node, () => {
        if (runner.listens) deliver(runner);
      });
  }

  pull(from: SimNode, member: string, request: PullRequest, answered: (reply: PullReply) => void): void {
    const { life } = from;
    for (const scheduler of this.schedulers) {
      if (scheduler.member !== member) continue;
      this.#network.send(from, scheduler.node, () => {
        if (scheduler.member === member)
          scheduler.pull(request, (reply) =>
            this.#network.send(scheduler.node, from, () => {
              if (from.life === life) answered(reply);
            }),
          );
      });
    }
  }

  announceDemand(scheduler: SchedulerPort): void {
    const { member } = scheduler;
    for (const runner of this.runners)
      this.#network.send(scheduler.node, runner.node, () => runner.demandHeard(member));
  }

  publishEvents(from: SimNode, partition: number, message: CommittedEvents): void {
    this.#world.witness.shown(message);
    for (const gateway of this.gateways)
      this.#network.send(from, gateway.node, () => gateway.eventsArrived(partition, message));
  }

  publishReleased(from: SimNode, partition: number): void {
    for (const scheduler of this.schedulers)
      this.#network.send(from, scheduler.node, () => scheduler.released(partition));
  }

  publishOpened(from: SimNode, partition: number): void {
    for (const gateway of this.gateways) this.#network.send(from, gateway.node, () => gateway.ownerOpened(partition));
  }
}
