/** Who reads what stages have kept, at a gateway, as the store shows the runs: all that has not expired is there, and as it was. */
import { NotFound, Unavailable } from '@penstock/errors';
import { KeptFiles, keptIn } from '@penstock/gateway/testing';
import type { Bus, CreateRequest } from '@penstock/bus';
import type { RunView } from '@penstock/run';
import { SimBus } from '../world/sim-bus.ts';
import type { SimNode } from '../world/sim-node.ts';
import { sumOf } from '../world/sim-objects.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';

const EVERY_MS = 2_500;

export class KeptReaders {
  readonly #dependencies: NodeDependencies;
  readonly #world: World;
  readonly #gateways: readonly SimNode[];

  constructor(dependencies: NodeDependencies, gateways: readonly SimNode[]) {
    this.#dependencies = dependencies;
    this.#world = dependencies.world;
    this.#gateways = gateways;
  }

  start(runs: () => readonly CreateRequest[]): void {
    const { exchange } = this.#dependencies;
    for (const gateway of this.#gateways) {
      const bus = new SimBus(this.#world, exchange, gateway) as Bus;
      this.#readLater(gateway, new KeptFiles(bus, () => this.#world.wallClock()), runs);
    }
  }

  #readLater(gateway: SimNode, kept: KeptFiles, runs: () => readonly CreateRequest[]): void {
    const world = this.#world;
    world.after(world.random.exponential(EVERY_MS), () => {
      const all = runs();
      const reruns = all.filter(({ rerun }) => rerun !== undefined);
      if (world.healed) {
        for (const { runId } of reruns) this.#read(gateway, kept, runId);
        return;
      }
      const some = reruns.length > 0 && world.random.chance(0.5) ? reruns : all;
      if (some.length > 0) this.#read(gateway, kept, world.random.pick(some).runId);
      this.#readLater(gateway, kept, runs);
    });
  }

  #read(gateway: SimNode, kept: KeptFiles, runId: string): void {
    const { network } = this.#dependencies;
    network.askStore(
      gateway,
      (store) => store.view(runId) ?? null,
      (view) => {
        if (view !== null) void this.#world.settle(gateway, this.#readAll(kept, view));
      },
      () => {},
    );
  }

  async #readAll(kept: KeptFiles, run: RunView): Promise<void> {
    const world = this.#world;
    for (const { artifacts } of run.stages) {
      if (artifacts === undefined) continue;
      const owner = keptIn(run, artifacts);
      const missing = (why: string): void => world.witness.keptMissing(owner, artifacts.manifest, why);
      try {
        const files = await kept.of(run, artifacts);
        if (files === undefined) missing('there is no list');
        for (const file of files ?? []) {
          const bytes = Buffer.concat(await Array.fromAsync(kept.read(owner, file)));
          world.check(sumOf(bytes) === file.sha256, 'P32', `a kept file of run ${owner} is not what was kept`);
        }
        if (files !== undefined) world.mark(owner === run.id ? 'kept files read' : 'kept files of another run read');
      } catch (error) {
        if (error instanceof NotFound) missing(error.message);
        else if (!(error instanceof Unavailable)) throw error;
        else if (error.message.includes('damaged')) missing(error.message);
      }
    }
  }
}
