/** The faults of a world: crashes, freezes, cut wires, outages, power cuts; and the end of all of them. */
import { lastsHours, type FaultRates } from '../world/profile.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';
import type { SimRunner } from '../nodes/runner-node.ts';
import type { SimScheduler } from '../nodes/scheduler-node.ts';
import type { SimBroker } from '../world/broker.ts';
import type { SimRegistry } from '../nodes/registry-node.ts';
import type { SimStorage } from '../world/storage.ts';
import type { SimStore } from '../world/store.ts';

const HOUR_MS = 60 * 60 * 1000;

/** What faults happen to. */
interface Victims {
  readonly world: World;
  readonly broker: SimBroker;
  readonly store: SimStore;
  readonly storage: SimStorage;
  readonly schedulers: readonly SimScheduler[];
  readonly runners: readonly SimRunner[];
  readonly registries: readonly SimRegistry[];
  readonly gateways: readonly SimNode[];
}

export class Faults {
  readonly #victims: Victims;
  readonly #world: World;

  constructor(victims: Victims) {
    this.#victims = victims;
    this.#world = victims.world;
  }

  start(): void {
    const { profile } = this.#world;
    for (const [name, act] of Object.entries(this.#actions)) {
      const rate = profile.faults[name as keyof FaultRates];
      if (rate > 0) this.#world.after(profile.quietMs, () => this.#next(name, rate, act));
    }
    // When journals were purged that nothing was added to, and before the last runs come.
    if (lastsHours(profile))
      for (const scheduler of this.#victims.schedulers)
        this.#world.after(profile.illMs * 0.85, () => this.#crash(scheduler, 'scheduler crashed'));
    if (profile.unrestorable > 0)
      this.#world.after(profile.quietMs + profile.illMs / 2, () => {
        this.#world.definitions.newBuild = true;
      });
  }

  heal(): void {
    const world = this.#world;
    world.journalUsed = world.profile.journalUsed;
    this.#victims.store.up = true;
    this.#victims.broker.full = false;
    this.#victims.storage.up = true;
    for (const { disk } of this.#victims.runners) disk.full = false;
    if (!this.#victims.broker.up) this.#victims.broker.recover();
    for (const gateway of this.#victims.gateways) if (!gateway.linked) this.#link(gateway);
    for (const { node } of [...this.#victims.schedulers, ...this.#victims.runners]) {
      if (node.frozen) node.wake();
      if (!node.linked) this.#link(node);
    }
    for (const registry of this.#victims.registries) {
      registry.setClock(0);
      if (!registry.node.alive) this.#revive(registry);
    }
    for (const scheduler of this.#victims.schedulers) if (!scheduler.node.alive) this.#revive(scheduler);
    for (const runner of this.#victims.runners) if (!runner.node.alive) this.#revive(runner);
  }

  #next(name: string, ratePerMinute: number, act: () => void): void {
    const world = this.#world;
    world.after(world.random.exponential(60_000 / ratePerMinute), () => {
      if (world.healed) return;
      act();
      this.#next(name, ratePerMinute, act);
    });
  }

  readonly #actions: { readonly [name in keyof FaultRates]: () => void } = {
    schedulerCrash: () => this.#crash(this.#world.random.pick(this.#victims.schedulers), 'scheduler crashed'),
    schedulerFreeze: () => this.#freeze(this.#world.random.pick(this.#victims.schedulers).node, 'scheduler frozen'),
    schedulerCut: () => this.#cut(this.#world.random.pick(this.#victims.schedulers).node, 'scheduler cut off'),
    schedulerStop: () => this.#stop(this.#world.random.pick(this.#victims.schedulers), 'scheduler stopped'),
    runnerCrash: () => this.#crash(this.#world.random.pick(this.#victims.runners), 'runner crashed'),
    runnerFreeze: () => this.#freeze(this.#world.random.pick(this.#victims.runners).node, 'runner frozen'),
    runnerCut: () => this.#cut(this.#world.random.pick(this.#victims.runners).node, 'runner cut off'),
    gatewayCut: () => this.#cut(this.#world.random.pick(this.#victims.gateways), 'gateway cut off'),
    runnerStop: () => this.#stop(this.#world.random.pick(this.#victims.runners), 'runner stopped'),
    runnerDiskFull: () => {
      const { disk, node } = this.#world.random.pick(this.#victims.runners);
      if (disk.full) return;
      disk.full = true;
      this.#happened("runner's disk full", node);
      this.#world.after(this.#world.random.exponential(8_000), () => {
        disk.full = false;
      });
    },
    brokerOutage: () => this.#outage(),
    storeOutage: () => this.#outageOf(this.#victims.store, 'store down'),
    storageOutage: () => this.#outageOf(this.#victims.storage, 'object storage down'),
    registryCrash: () => this.#crash(this.#world.random.pick(this.#victims.registries), 'registry crashed'),
    registryClock: () => {
      const registry = this.#world.random.pick(this.#victims.registries);
      this.#happened("registry's clock an hour off", registry.node);
      registry.setClock(this.#world.random.pick([-1, 0, 1]) * HOUR_MS);
    },
    cacheDamaged: () => this.#damageCache(),
    powerCut: () => {
      const world = this.#world;
      if (!this.#victims.broker.up) return;
      this.#happened('power cut');
      for (let partition = 0; partition < world.profile.partitions; partition++)
        if (world.random.chance(0.7)) this.#victims.broker.loseEnd(partition, 1 + world.random.int(12));
      this.#outage();
    },
    journalFull: () => {
      const world = this.#world;
      world.journalUsed = world.random.pick([0.6, 0.85, 0.97]);
      this.#happened(
        world.journalUsed > 0.95
          ? 'journal full'
          : world.journalUsed > 0.8
            ? 'journal nearly full'
            : 'journal half full',
      );
      world.after(world.random.between(1_000, 70_000), () => {
        world.journalUsed = world.profile.journalUsed;
      });
    },
    bucketAnew: () => {
      const { broker } = this.#victims;
      if (!broker.up) return;
      const bucket = this.#world.random.pick(['members', 'runners'] as const);
      this.#happened(`bucket of ${bucket} made anew`);
      broker.makeAnew(bucket);
    },
    clockStep: () => this.#stepClock(),
    brokerFull: () => {
      const { broker } = this.#victims;
      if (broker.full) return;
      broker.full = true;
      this.#happened("broker's disk full");
      this.#world.after(this.#world.random.exponential(6_000), () => {
        broker.full = false;
      });
    },
  };

  #outageOf(server: { up: boolean }, what: string): void {
    if (!server.up) return;
    server.up = false;
    this.#happened(what);
    this.#world.after(this.#world.random.exponential(6_000), () => {
      server.up = true;
    });
  }

  /** An archive is gone, or is not what was put there. */
  #damageCache(): void {
    const { random } = this.#world;
    const { objects } = this.#victims.storage;
    const archives = [...objects.keys()].filter((key) => key.startsWith('caches/'));
    const found = archives.length === 0 ? undefined : random.pick(archives);
    const stored = found === undefined ? undefined : objects.get(found);
    if (found === undefined || stored === undefined) return;
    const isGone = random.chance(0.5);
    this.#happened(isGone ? 'archive lost' : 'archive damaged');
    if (isGone) objects.delete(found);
    else objects.set(found, { ...stored, bytes: Buffer.from(stored.bytes).fill(0) });
  }

  /** An hour forward or back; some are put right soon, others stay. */
  #stepClock(): void {
    const { random } = this.#world;
    const scheduler = random.pick(this.#victims.schedulers);
    const byMs = (random.chance(0.5) ? 1 : -1) * random.pick([1, 2, 25]) * HOUR_MS;
    this.#happened(byMs > 0 ? 'clock set forward' : 'clock set back', scheduler.node);
    scheduler.setClock(byMs);
    if (random.chance(0.5)) this.#world.after(random.exponential(7_000), () => scheduler.setClock(-byMs));
  }

  #outage(): void {
    const { broker } = this.#victims;
    const { random } = this.#world;
    if (!broker.up) return;
    broker.up = false;
    this.#happened('broker down');
    this.#world.after(random.exponential(4_000), () => {
      if (!broker.up) broker.recover();
    });
  }

  #crash(who: { readonly node: SimNode; crash(): void; start(): void }, name: string): void {
    const world = this.#world;
    if (!who.node.alive) return;
    this.#happened(`${name}`, who.node);
    who.crash();
    const { life } = who.node;
    world.after(world.random.chance(0.5) ? world.random.between(50, 1_000) : world.random.exponential(12_000), () => {
      if (who.node.life === life && !who.node.alive) this.#revive(who);
    });
  }

  #stop(
    who: { readonly node: SimNode; stop(then: () => void): void; crash(): void; start(): void },
    name: string,
  ): void {
    const world = this.#world;
    if (!who.node.alive || who.node.frozen) return;
    const { life } = who.node;
    who.stop(() => {
      this.#happened(name, who.node);
      who.crash();
      world.after(world.random.between(100, 8_000), () => {
        if (who.node.life === life) this.#revive(who);
      });
    });
  }

  #revive(who: { readonly node: SimNode; start(): void }): void {
    who.node.revive();
    who.start();
    this.#world.trace(() => `${who.node.name} starts again`);
  }

  #freeze(node: SimNode, name: string): void {
    const world = this.#world;
    if (!node.alive || node.frozen) return;
    this.#happened(name, node);
    node.frozen = true;
    const { life } = node;
    world.after(world.random.exponential(9_000), () => {
      if (node.life !== life || !node.frozen) return;
      world.trace(() => `${node.name} wakes`);
      node.wake();
    });
  }

  #cut(node: SimNode, name: string): void {
    const world = this.#world;
    if (!node.linked) return;
    this.#happened(name, node);
    node.linked = false;
    node.cutAt = world.now;
    world.after(world.random.exponential(8_000), () => {
      if (!node.linked) this.#link(node);
    });
  }

  #link(node: SimNode): void {
    node.linked = true;
    this.#world.trace(() => `${node.name} is linked again`);
    this.#victims.broker.reconnected(node);
  }

  #happened(name: string, node?: SimNode): void {
    this.#world.mark(name);
    this.#world.trace(() => `*** ${name}${node === undefined ? '' : `: ${node.name}`}`);
  }
}
