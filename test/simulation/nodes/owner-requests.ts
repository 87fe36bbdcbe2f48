/** How gateways ask the owners of partitions; they drop what comes from a lower epoch than they have seen (P4). */
import { subjects } from '@penstock/bus';
import type { Exchange } from '../world/exchange.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';

const REQUEST_MS = 10_000;
const NO_RESPONDERS_RETRY_MS = 250;

export class OwnerRequests {
  readonly #world: World;
  readonly #exchange: Exchange;
  readonly #epochs = new Map<string, number>();

  constructor(world: World, exchange: Exchange) {
    this.#world = world;
    this.#exchange = exchange;
  }

  /** Asks the partition's owner until it answers, 10 s at most. */
  ask<R extends { readonly epoch: number }>(
    gateway: SimNode,
    partition: number,
    verb: Parameters<typeof subjects.owner>[1],
    body: unknown,
    then: (reply: R | undefined) => void,
  ): void {
    const world = this.#world;
    let settled = false;
    const settle = (reply: R | undefined): void => {
      if (settled) return;
      settled = true;
      then(reply);
    };
    const retry = (): void => {
      if (!settled) world.after(NO_RESPONDERS_RETRY_MS, attempt);
    };
    const text = JSON.stringify(body);
    const attempt = (): void => {
      if (settled) return;
      this.#exchange.request(gateway, subjects.owner(partition, verb), text, REQUEST_MS, (answer) => {
        if (answer.kind === 'reply') {
          const reply = JSON.parse(answer.text) as R;
          if (this.isCurrent(gateway, partition, reply.epoch)) settle(reply);
          else retry();
        } else if (answer.kind !== 'silence') {
          if (answer.kind === 'no-responders') world.mark('no owner responds');
          retry();
        }
      });
    };
    world.after(REQUEST_MS, () => settle(undefined));
    attempt();
  }

  isCurrent(gateway: SimNode, partition: number, epoch: number): boolean {
    const id = `${gateway.name}/${partition}`;
    const seen = this.#epochs.get(id) ?? 0;
    if (epoch < seen) this.#world.mark('message of a lower epoch dropped');
    this.#epochs.set(id, Math.max(seen, epoch));
    return epoch >= seen;
  }
}
