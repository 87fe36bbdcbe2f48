/** The clocks and timers of a machine: its boot clock began at another time than the world, its wall clock is set by anybody. */
import type { Time } from '@penstock/async';
import type { SimNode } from './sim-node.ts';
import type { World } from './world.ts';

export class SimTime implements Time {
  /** How far its wall clock is from the true time. */
  skewMs: number;
  readonly #world: World;
  readonly #node: SimNode;
  readonly #upSinceMs: number;

  constructor(world: World, node: SimNode) {
    this.#world = world;
    this.#node = node;
    this.skewMs = Math.floor(world.random.between(-1, 1) * world.profile.clockSkewMs);
    this.#upSinceMs = world.random.between(0, 10_000_000);
  }

  wallNow(): number {
    return this.#world.wallClock() + this.skewMs;
  }

  bootNow(): number {
    if (this.#world.mutation === 'waits-by-the-wall-clock') return this.wallNow();
    return this.#world.now + this.#upSinceMs;
  }

  /** By the boot clock: what was at a time of the world's. */
  bootAt(worldMs: number): number {
    return this.bootNow() - this.#world.now + worldMs;
  }

  after(milliseconds: number, task: () => void): () => void {
    let calledOff = false;
    this.#node.after(milliseconds, () => {
      if (!calledOff) task();
    });
    return () => {
      calledOff = true;
    };
  }

  pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return this.#world.pause(this.#node, milliseconds, signal);
  }

  turn(): Promise<void> {
    return this.#world.pause(this.#node, 0);
  }
}
