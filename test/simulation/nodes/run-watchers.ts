/**
 * Who watches runs through gateways: each hears of committed events, asks where some are missing (P20), and is told what a client of the
 * event stream is told. It owns the watchers and how far each has come.
 */
import { subjects, type CommittedEvents, type PartitionOpened, type WatchReply } from '@penstock/bus';
import {
  closesRun,
  endsEventStream,
  partitionOf,
  publicEventsOf,
  type PublicRunEvent,
  type RunEvent,
} from '@penstock/run';
import type { Exchange } from '../world/exchange.ts';
import type { Network } from '../world/network.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import type { OwnerRequests } from './owner-requests.ts';

const PING_MS = 15_000;

interface Watcher {
  readonly runId: string;
  readonly partition: number;
  readonly gateway: SimNode;
  have: number;
  asking: boolean;
  ended: boolean;
  /** It was told `pipeline_cancelling`. */
  isCancelling: boolean;
}

export class RunWatchers {
  readonly #world: World;
  readonly #network: Network;
  readonly #exchange: Exchange;
  readonly #owners: OwnerRequests;
  readonly #gateways: readonly SimNode[];
  readonly #watchers: Watcher[] = [];

  constructor(
    { world, network, exchange }: Pick<NodeDependencies, 'world' | 'network' | 'exchange'>,
    owners: OwnerRequests,
    gateways: readonly SimNode[],
  ) {
    this.#world = world;
    this.#network = network;
    this.#exchange = exchange;
    this.#owners = owners;
    this.#gateways = gateways;
  }

  start(): void {
    for (const gateway of this.#gateways) {
      this.#exchange.listen(gateway, subjects.events('*'), (text) =>
        this.#eventsArrived(gateway, JSON.parse(text) as CommittedEvents),
      );
      this.#exchange.listen(gateway, subjects.opened('*'), (text) =>
        this.#ownerOpened(gateway, (JSON.parse(text) as PartitionOpened).partition),
      );
    }
  }

  watchLater(runId: string, partition: number): void {
    const { random } = this.#world;
    const watcher: Watcher = {
      runId,
      partition,
      gateway: random.pick(this.#gateways),
      have: 0,
      asking: false,
      ended: false,
      isCancelling: false,
    };
    this.#world.after(random.exponential(3_000), () => {
      this.#watchers.push(watcher);
      this.#askMore(watcher);
      this.#ping(watcher);
    });
  }

  /** Who has not been told the end. */
  missing(): string | undefined {
    const waiting = this.#watchers.find(({ ended, runId }) => !ended && !this.#world.witness.isDisturbed(runId));
    return waiting && `${waiting.gateway.name} still watches run ${waiting.runId} at version ${waiting.have}`;
  }

  #eventsArrived(gateway: SimNode, { runId, epoch, version, events }: CommittedEvents): void {
    if (!this.#owners.isCurrent(gateway, partitionOf(runId, this.#world.profile.partitions), epoch)) return;
    for (const watcher of this.#watchers) {
      if (watcher.gateway !== gateway || watcher.runId !== runId) continue;
      const from = version - events.length + 1;
      if (from > watcher.have + 1) {
        this.#world.mark('watcher found a gap');
        this.#askMore(watcher);
      } else this.#take(watcher, from, events);
    }
  }

  #ownerOpened(gateway: SimNode, partition: number): void {
    for (const watcher of this.#watchers)
      if (watcher.gateway === gateway && watcher.partition === partition) this.#askMore(watcher);
  }

  #ping(watcher: Watcher): void {
    this.#world.after(PING_MS, () => {
      if (watcher.ended) return;
      this.#askMore(watcher);
      this.#ping(watcher);
    });
  }

  #askMore(watcher: Watcher): void {
    if (watcher.asking || watcher.ended) return;
    const world = this.#world;
    const { gateway, runId, partition, have } = watcher;
    watcher.asking = true;
    this.#owners.ask<WatchReply>(gateway, partition, 'watch', { runId, after: have }, (answer) => {
      watcher.asking = false;
      if (answer?.ok !== true) return;
      if (answer.run !== null) {
        this.#take(watcher, have + 1, answer.run.events);
        return;
      }
      watcher.asking = true;
      this.#network.askStore(
        gateway,
        (store) => store.events(runId),
        (events) => {
          watcher.asking = false;
          world.mark('watched from the store');
          if (events !== undefined) this.#take(watcher, 1, events);
          else
            world.check(
              world.witness.isDisturbed(runId),
              'P6',
              `run ${runId} is watched, and neither its owner nor the store knows it`,
            );
        },
        () => {
          watcher.asking = false;
        },
      );
    });
  }

  #take(watcher: Watcher, from: number, events: readonly RunEvent[]): void {
    const { runId } = watcher;
    events.forEach((event, index) => {
      const version = from + index;
      if (version !== watcher.have + 1) return;
      watcher.have = version;
      this.#world.witness.eventSeen(runId, version, event);
      this.#checkShown(watcher, event);
    });
  }

  /** What its client is shown of the event: one stream, which ends once, and nothing after it (PUBLIC-2). */
  #checkShown(watcher: Watcher, event: RunEvent): void {
    const { runId } = watcher;
    const all = publicEventsOf(event, () => ({ text: '', truncated: false }));
    if (all.length === 0 || this.#world.witness.isDisturbed(runId)) {
      if (closesRun(event)) watcher.ended = true;
      return;
    }
    for (const shown of all) this.#checkOne(watcher, shown);
  }

  #checkOne(watcher: Watcher, shown: PublicRunEvent): void {
    const { runId } = watcher;
    const fail = (what: string): void =>
      this.#world.check(false, 'PUBLIC-2', `a watcher of run ${runId} is told ${what}`);
    if (watcher.ended) fail(`${shown.type} after the end`);
    if (watcher.isCancelling && shown.type !== 'pipeline_cancelled') fail(`${shown.type} after pipeline_cancelling`);
    if (shown.type === 'pipeline_cancelled' && !watcher.isCancelling) fail('pipeline_cancelled alone');
    watcher.isCancelling ||= shown.type === 'pipeline_cancelling';
    watcher.ended = endsEventStream(shown);
  }
}
