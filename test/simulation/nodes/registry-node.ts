/**
 * The process that keeps what stages leave: the production classes, over the simulated storage of objects, store and bus. It sweeps
 * much more often than a real one, and by a clock that anybody sets.
 */
import type { Bus } from '@penstock/bus';
import { Unavailable } from '@penstock/errors';
import { ObjectsUnavailable } from '@penstock/object-store';
import {
  answerArtifactCalls,
  answerRunners,
  ArtifactKeeper,
  askOwner,
  CacheKeeper,
  Grants,
  IncomingUploads,
  runnerVerbs,
  sweptRuns,
  type SweptRunsParts,
} from '@penstock/registry/testing';
import { CacheEntries, DeletedRuns, StoreUnavailable } from '@penstock/store';
import { SimOutage } from '../world/errors.ts';
import { SimLedger } from '../world/ledger.ts';
import { SimBus } from '../world/sim-bus.ts';
import { SimDocuments } from '../world/sim-documents.ts';
import { SimNode } from '../world/sim-node.ts';
import { SimObjects } from '../world/sim-objects.ts';
import { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';
import type { NodeDependencies } from './dependencies.ts';

const SWEEP_MS = 7_000;
/** More than any clock of a registry is wrong. */
const EXPIRED_FOR_MS = 3 * 60 * 60 * 1000;
/** Once the world is healed: what was counted by a clock an hour ahead goes as well. */
const HEALED = { olderThanMs: -61 * 60 * 1000, expiredForMs: 10_000 };
const ARCHIVES_AFTER_MS = 2_000;

export class SimRegistry {
  readonly node: SimNode;
  readonly #dependencies: NodeDependencies;
  readonly #world: World;
  readonly #time: SimTime;

  constructor(dependencies: NodeDependencies, name: string) {
    const { world } = dependencies;
    this.#dependencies = dependencies;
    this.#world = world;
    this.node = new SimNode(name, world.timeline);
    this.node.handled = () => world.moved();
    this.#time = new SimTime(world, this.node);
  }

  start(): void {
    this.node.handle(this.node.life, () => this.#begin());
  }

  crash(): void {
    this.node.crash();
  }

  /** How far its clock is from the true time. */
  setClock(skewMs: number): void {
    this.#time.skewMs = skewMs;
  }

  #begin(): void {
    const { network, exchange } = this.#dependencies;
    const { node } = this;
    const time = this.#time;
    const bus = new SimBus(this.#world, exchange, node) as Bus;
    const store = new SimDocuments(network, node);
    const objects = new SimObjects(network, node);
    const now = (): number => time.wallNow();
    const grants = new Grants(bus, time);
    const incoming = new IncomingUploads();
    const runOf = this.#mutatedRuns({
      runs: new SimLedger(network, node),
      deleted: new DeletedRuns(store),
      isWithOwner: askOwner(bus, this.#world.profile.partitions),
    });
    const artifacts = new ArtifactKeeper({ bus, store, objects, now, time, runOf, grants, incoming });
    const caches = new CacheKeeper({ bus, entries: new CacheEntries(store), objects, now, time, grants, incoming });
    answerArtifactCalls(bus, artifacts);
    answerRunners(bus, runnerVerbs(artifacts, caches));
    this.#sweepLater(artifacts, caches);
  }

  #sweepLater(artifacts: ArtifactKeeper, caches: CacheKeeper): void {
    const world = this.#world;
    this.node.after(world.random.between(SWEEP_MS / 2, SWEEP_MS), () => {
      void world.settle(
        this.node,
        this.#sweep(artifacts, caches).then(() => this.#sweepLater(artifacts, caches)),
      );
    });
  }

  async #sweep(artifacts: ArtifactKeeper, caches: CacheKeeper): Promise<void> {
    const world = this.#world;
    const delays = world.healed ? HEALED : { olderThanMs: world.profile.sweptAfterMs, expiredForMs: EXPIRED_FOR_MS };
    const expiredForMs = world.mutation === 'sweeps-by-any-clock' ? 0 : delays.expiredForMs;
    try {
      const { objects } = await artifacts.sweep({ ...delays, expiredForMs });
      if (objects > 0) world.mark('kept files swept');
      const { archives } = await caches.sweep(Math.max(ARCHIVES_AFTER_MS, delays.olderThanMs));
      if (archives > 0) world.mark('archives swept');
    } catch (error) {
      if (!isOutage(error)) throw error;
      world.mark('sweep cut short');
    }
  }

  #mutatedRuns(parts: SweptRunsParts): ReturnType<typeof sweptRuns> {
    switch (this.#world.mutation) {
      case 'sweeps-behind-the-log':
        return sweptRuns({ ...parts, isWithOwner: async () => false });
      case 'forgets-heirs':
        return sweptRuns({ ...parts, deleted: { heirsOf: async () => [] } });
      case 'sweeps-open-runs': {
        const runOf = sweptRuns(parts);
        return async (runId) => {
          const run = await runOf(runId);
          return run && { ...run, open: false };
        };
      }
      default:
        return sweptRuns(parts);
    }
  }
}

function isOutage(error: unknown): boolean {
  return (
    error instanceof SimOutage ||
    error instanceof StoreUnavailable ||
    error instanceof ObjectsUnavailable ||
    error instanceof Unavailable
  );
}
