/**
 * Clients of the log streams of gateways: they lose their connection and come back with the cursor of the last message that they
 * have, at any gateway, as an EventSource does. What they were told is held against the truth by `rules/log-rules.ts`. The streams
 * are the production ones.
 */
import { Cursor, Streams, type StreamSink } from '@penstock/gateway/testing';
import { closesRun, endsEventStream, type PublicEvent } from '@penstock/run';
import { simLog } from '../world/sim-log.ts';
import type { SimNode } from '../world/sim-node.ts';
import { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';
import type { OwnerRequests } from './owner-requests.ts';
import { SimRunSource } from './sim-run-source.ts';

const RECONNECT_MS = 2_000;

interface Watcher {
  readonly runId: string;
  readonly name: string;
  lastId: string;
  ended: boolean;
}

export class LogWatchers {
  readonly #dependencies: NodeDependencies;
  readonly #world: World;
  readonly #owners: OwnerRequests;
  readonly #gateways: readonly { readonly node: SimNode; readonly streams: Streams }[];
  readonly #watchers: Watcher[] = [];

  constructor(dependencies: NodeDependencies, owners: OwnerRequests, gateways: readonly SimNode[]) {
    const { world } = dependencies;
    this.#dependencies = dependencies;
    this.#world = world;
    this.#owners = owners;
    this.#gateways = gateways.map((node) => ({
      node,
      streams: new Streams(
        simLog(world, node, () => false),
        { time: new SimTime(world, node) },
      ),
    }));
  }

  watch(runId: string): void {
    const watcher: Watcher = { runId, name: `client${this.#watchers.length}`, lastId: '', ended: false };
    this.#watchers.push(watcher);
    this.#connect(watcher);
  }

  missing(): string | undefined {
    const waiting = this.#watchers.find(({ ended, runId }) => !ended && !this.#world.witness.isDisturbed(runId));
    return waiting && `${waiting.name} still reads the log stream of run ${waiting.runId}`;
  }

  #connect(watcher: Watcher): void {
    const world = this.#world;
    const { runId } = watcher;
    const { node, streams } = world.random.pick(this.#gateways);
    if (world.witness.isDisturbed(runId)) return;
    const source = new SimRunSource({ ...this.#dependencies, owners: this.#owners, gateway: node }, runId);
    const again = (): void => world.after(world.random.between(0, RECONNECT_MS), () => this.#connect(watcher));
    const opened = source.events(0).then((events) => {
      const client = new SimClient(world, node, (text) => this.#take(watcher, text));
      if (world.random.chance(0.4) && !world.healed) world.after(world.random.exponential(4_000), () => client.cut());
      const cursor = (watcher.lastId === '' ? null : Cursor.decode(watcher.lastId, runId)) ?? new Cursor();
      if (world.mutation === 'cursor-of-what-is-stored')
        for (const [number, { lines }] of [...cursor.runners])
          cursor.runners.set(number, { sequence: this.#dependencies.network.broker.logs.lastOf(runId), lines });
      if (watcher.lastId !== '') world.mark('log stream resumed');
      const served = streams.serve(client, source, cursor, !events.some(closesRun));
      return served;
    });
    void world.settle(
      node,
      opened.then(
        () => {
          if (!watcher.ended) again();
        },
        () => again(),
      ),
    );
  }

  #take(watcher: Watcher, text: string): void {
    for (const frame of text.split('\n\n')) {
      const id = /^id: (.*)$/mu.exec(frame)?.[1];
      const data = /^data: (.*)$/mu.exec(frame)?.[1];
      if (id === undefined || data === undefined) continue;
      const cursor = Cursor.decode(id, watcher.runId);
      if (cursor === null) {
        this.#world.check(false, 'P21', `${id} is no cursor of run ${watcher.runId}`);
        return;
      }
      watcher.lastId = id;
      const event = JSON.parse(data) as PublicEvent;
      this.#world.trace(
        () => `${watcher.name} of run ${watcher.runId.slice(-4)} is told ${cursor.version} ${data.slice(0, 160)}`,
      );
      this.#world.witness.told(watcher.name, watcher.runId, { version: cursor.version, event });
      if (endsEventStream(event)) watcher.ended = true;
    }
  }
}

/** A socket: it may be slow, and be cut at any moment; what was written to it then may have arrived, or not. */
class SimClient implements StreamSink {
  onRoom: () => void = () => {};
  readonly #world: World;
  readonly #node: SimNode;
  readonly #arrived: (text: string) => void;
  readonly #closed = new AbortController();
  readonly #isSlow: boolean;
  #isFull = false;
  #room: (() => void)[] = [];
  #ending = false;
  /** Nothing arrives any more: the gateway may not know it yet. */
  #isCut = false;

  constructor(world: World, node: SimNode, arrived: (text: string) => void) {
    this.#world = world;
    this.#node = node;
    this.#arrived = arrived;
    this.#isSlow = world.random.chance(0.2);
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get hasRoom(): boolean {
    return !this.#isFull && !this.#ending && !this.#closed.signal.aborted;
  }

  room(): Promise<void> {
    if (this.hasRoom || this.#closed.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => this.#room.push(resolve));
  }

  write(bytes: Uint8Array): void {
    if (this.#closed.signal.aborted || this.#ending) return;
    const text = Buffer.from(bytes).toString();
    if (!this.#isCut) this.#arrived(text);
    if (!this.#isSlow || this.#isFull) return;
    this.#isFull = true;
    this.#world.after(this.#world.random.exponential(500), () =>
      this.#node.handle(this.#node.life, () => {
        this.#isFull = false;
        this.#world.moved();
        this.#settleRoom();
        this.onRoom();
      }),
    );
  }

  end(last?: Uint8Array): void {
    if (last !== undefined) this.write(last);
    this.#ending = true;
    this.#close();
  }

  destroy(): void {
    this.#close();
  }

  closeIfStalled(): void {}

  cut(): void {
    this.#isCut = true;
    this.#world.after(this.#world.random.between(0, 500), () => this.#close());
  }

  #close(): void {
    this.#world.moved();
    this.#closed.abort();
    this.#settleRoom();
  }

  #settleRoom(): void {
    for (const resolve of this.#room.splice(0)) resolve();
  }
}
