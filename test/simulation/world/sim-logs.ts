/** The stream `LOGS`: the chunks of runs in the order of their storing, and who hears of new ones at once. */
import type { Chunk, LiveChunk, StoredChunk } from '@penstock/bus';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

interface Stored {
  readonly chunk: StoredChunk;
  readonly at: number;
}

interface Listener {
  readonly node: SimNode;
  readonly hear: (chunk: LiveChunk) => void;
  /** What one listener hears comes in order. */
  arrivesAt: number;
  stopped: boolean;
}

export class SimLogs {
  readonly #world: World;
  readonly #runs = new Map<string, Stored[]>();
  readonly #listeners = new Map<string, Set<Listener>>();
  #sequence = 0;

  constructor(world: World) {
    this.#world = world;
  }

  store(runId: string, runner: string, chunk: Chunk): number {
    const stored = this.#of(runId);
    const before = stored.findLast((one) => one.chunk.runner === runner)?.chunk.sequence ?? 0;
    const sequence = ++this.#sequence;
    const one: StoredChunk = { sequence, runner, chunk };
    stored.push({ chunk: one, at: this.#world.now });
    for (const listener of this.#listeners.get(runId) ?? [])
      this.#deliver(listener, { ...one, lastSequenceOfSubject: before });
    return sequence;
  }

  /** As the leader has them, or as a replica had them a moment ago. */
  chunksOf(runId: string, asOf = this.#world.now): readonly StoredChunk[] {
    return this.#of(runId).flatMap(({ chunk, at }) => (at <= asOf ? [chunk] : []));
  }

  purge(runId: string): void {
    this.#runs.delete(runId);
  }

  lastOf(runId: string): number {
    return this.#of(runId).at(-1)?.chunk.sequence ?? 0;
  }

  /** At most once: a message that is lost is not sent again. */
  listen(node: SimNode, runId: string, hear: (chunk: LiveChunk) => void): () => void {
    const listener: Listener = { node, hear, arrivesAt: 0, stopped: false };
    let listeners = this.#listeners.get(runId);
    if (listeners === undefined) this.#listeners.set(runId, (listeners = new Set()));
    listeners.add(listener);
    return () => {
      listener.stopped = true;
      listeners.delete(listener);
    };
  }

  #of(runId: string): Stored[] {
    let stored = this.#runs.get(runId);
    if (stored === undefined) this.#runs.set(runId, (stored = []));
    return stored;
  }

  #deliver(listener: Listener, chunk: LiveChunk): void {
    const world = this.#world;
    if (!listener.node.linked || world.drops(world.profile.lost)) {
      world.mark('live chunk lost');
      return;
    }
    listener.arrivesAt = Math.max(listener.arrivesAt + 0.001, world.now + world.latency());
    const { life } = listener.node;
    world.after(listener.arrivesAt - world.now, () => {
      if (!listener.node.linked) return;
      listener.node.handle(life, () => {
        if (!listener.stopped) listener.hear(chunk);
      });
    });
  }
}
