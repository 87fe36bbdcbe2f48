/**
 * P5, as one process of a scheduler keeps it: no attempt is declared lost before a lease has passed since it was connected. The
 * first thing that it does about one is to close its log, and a loss is declared anew at each try to close it.
 */
import type { AttemptLogRef } from '@penstock/scheduler/testing';
import type { World } from './world.ts';

export class LossRule {
  readonly #world: World;
  #connectedAt: number;

  /** The process has started. */
  constructor(world: World) {
    this.#world = world;
    this.#connectedAt = world.now;
  }

  connected(): void {
    this.#world.mark('a scheduler is connected again');
    this.#connectedAt = this.#world.now;
  }

  /** At each try; what was stopped, or is of a run that has ended, is no loss. */
  declared({ runId, stage, attempt }: AttemptLogRef): void {
    const world = this.#world;
    const live = world.witness.stateOf(runId)?.stages.find(({ name }) => name === stage)?.live;
    if (live?.attempt !== attempt || live.stopping !== undefined) return;
    const afterMs = world.now - this.#connectedAt;
    world.check(
      afterMs > world.profile.leaseMs - 1,
      'P5',
      `attempt ${attempt} of ${stage} in ${runId} is declared lost ${afterMs.toFixed(0)} ms after its owner was connected`,
    );
  }
}
