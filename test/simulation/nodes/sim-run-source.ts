/** Where a gateway of a world reads a run: its owner, the store, and the stream `LOGS`, whose replicas may be behind. */
import {
  subjects,
  type CommittedEvents,
  type PartitionOpened,
  type StoredChunk,
  type WatchedRun,
  type WatchReply,
} from '@penstock/bus';
import type { RunSource } from '@penstock/gateway/testing';
import { partitionOf, type RunEvent } from '@penstock/run';
import type { SimBroker } from '../world/broker.ts';
import { SimOutage } from '../world/errors.ts';
import type { Exchange } from '../world/exchange.ts';
import type { Network } from '../world/network.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { OwnerRequests } from './owner-requests.ts';

const READ_MS = 5_000;
const TRIES_MAX = 8;
const BEHIND_MS = 100;

interface SimRunSourceParts {
  readonly network: Network;
  readonly exchange: Exchange;
  readonly owners: OwnerRequests;
  readonly gateway: SimNode;
}

export class SimRunSource implements RunSource {
  readonly runId: string;
  readonly #parts: SimRunSourceParts;
  readonly #partition: number;

  constructor(parts: SimRunSourceParts, runId: string) {
    this.#parts = parts;
    this.runId = runId;
    this.#partition = partitionOf(runId, parts.network.world.profile.partitions);
  }

  /** Page by page, as libs/run-client does. */
  async events(after: number): Promise<readonly RunEvent[]> {
    const events: RunEvent[] = [];
    for (;;) {
      const page = await this.#page(after + events.length);
      events.push(...page.events);
      if (!page.more) return events;
    }
  }

  #page(after: number): Promise<Pick<WatchedRun, 'events' | 'more'>> {
    const { network, owners, gateway } = this.#parts;
    const { runId } = this;
    return network.world.promise((resolve, reject) =>
      owners.ask<WatchReply>(gateway, this.#partition, 'watch', { runId, after }, (answer) => {
        if (answer?.ok !== true) reject(new SimOutage('the owner of the run does not answer'));
        else if (answer.run !== null) resolve(answer.run);
        else
          network.askStore(
            gateway,
            (store) => store.events(runId),
            (events) => {
              if (events === undefined) reject(new SimOutage('the store does not know the run'));
              else resolve({ events: events.slice(after), more: false });
            },
            reject,
          );
      }),
    );
  }

  async *chunks(fromSequence: number, signal: AbortSignal): AsyncIterable<StoredChunk> {
    const all = await this.#stored(signal);
    yield* all.filter(({ sequence }) => sequence >= fromSequence);
  }

  async lastSequences(signal: AbortSignal, _needsAll = false, after = 0): Promise<ReadonlyMap<string, number>> {
    const all = await this.#stored(signal);
    return new Map(all.filter(({ sequence }) => sequence > after).map(({ runner, sequence }) => [runner, sequence]));
  }

  listen(listeners: Parameters<RunSource['listen']>[0]): ReturnType<RunSource['listen']> {
    const { network, exchange, owners, gateway } = this.#parts;
    const events = exchange.listen(gateway, subjects.events(this.runId), (text) => {
      const committed = JSON.parse(text) as CommittedEvents;
      if (owners.isCurrent(gateway, this.#partition, committed.epoch))
        listeners.onEvents(committed.version - committed.events.length + 1, committed.events);
    });
    const opened = exchange.listen(gateway, subjects.opened('*'), (text) => {
      if ((JSON.parse(text) as PartitionOpened).partition === this.#partition) listeners.onAskAgain();
    });
    let stopChunks: (() => void) | undefined;
    const hearChunks = (areHeard: boolean): void => {
      if (areHeard) stopChunks ??= network.broker.logs.listen(gateway, this.runId, listeners.onChunk);
      else stopChunks?.();
      if (!areHeard) stopChunks = undefined;
    };
    hearChunks(true);
    const stopReconnects = network.broker.onReconnected(gateway, listeners.onAskAgain);
    return {
      hearChunks,
      stop: () => {
        events.stop();
        opened.stop();
        hearChunks(false);
        stopReconnects();
      },
    };
  }

  /** From some replica, as libs/bus reads: until it has what the leader has. */
  async #stored(signal: AbortSignal): Promise<readonly StoredChunk[]> {
    const { network, gateway } = this.#parts;
    const { world } = network;
    const last = await this.#read((broker) => broker.logs.lastOf(this.runId));
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const { staleReplica, staleMs } = world.profile;
      const isBehind = !world.healed && world.random.chance(staleReplica);
      const behindMs = isBehind ? world.random.between(0, staleMs) : 0;
      if (isBehind) world.mark('log read from a replica that is behind');
      const chunks = await this.#read((broker) => broker.logs.chunksOf(this.runId, world.now - behindMs));
      if ((chunks.at(-1)?.sequence ?? 0) >= last || world.mutation === 'log-of-any-replica') return chunks;
      await world.pause(gateway, BEHIND_MS, signal);
    }
    throw new SimOutage('the replicas of the log are behind');
  }

  #read<T>(work: (broker: SimBroker) => T): Promise<T> {
    const { network, gateway } = this.#parts;
    return network.world.promise((resolve, reject) =>
      network.askBroker(gateway, work, READ_MS, (answer) => {
        if (answer === undefined) reject(new SimOutage('the broker does not answer'));
        else resolve(answer);
      }),
    );
  }
}
