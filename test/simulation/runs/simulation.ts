/**
 * A simulated world with all that lives in it: schedulers, runners, gateways with their clients, a broker and a store under
 * one clock and one source of chance. It puts them together and lives them to the end; what must hold is the oracle's business.
 */
import { Clients } from '../nodes/clients.ts';
import { FleetDoor, tenantsRunners } from '../nodes/fleet-door.ts';
import { Processes } from '../nodes/processes.ts';
import { SimRunner } from '../nodes/runner-node.ts';
import { SimScheduler } from '../nodes/scheduler-node.ts';
import { SimRegistry } from '../nodes/registry-node.ts';
import { Oracle } from '../rules/oracle.ts';
import { SimBroker } from '../world/broker.ts';
import { Violation } from '../world/errors.ts';
import { lastsHours } from '../world/profile.ts';
import { Network } from '../world/network.ts';
import { SimNode } from '../world/sim-node.ts';
import { SimStorage } from '../world/storage.ts';
import { SimStore } from '../world/store.ts';
import { Exchange } from '../world/exchange.ts';
import { World, type WorldOptions } from '../world/world.ts';
import { injectFaults } from '@penstock/telemetry/borders';
import { InjectedFault } from '../world/errors.ts';
import { Faults } from './faults.ts';

const STEPS_MAX = 600_000;
/** In worlds that last for hours. */
const LOOK_EVERY_MS = 300_000;
/** Once it is healed, a world has so long to end every run and to forget it: slow ones end their last run after a quarter of an hour, and sweep then. */
const HEALED_MS_MAX = 1_500_000;

export class Simulation {
  readonly world: World;
  steps = 0;
  readonly #oracle: Oracle;
  readonly #schedulers: readonly SimScheduler[];
  readonly #runners: readonly SimRunner[];
  readonly #registries: readonly SimRegistry[];
  readonly #clients: Clients;
  readonly #faults: Faults;
  readonly #door: FleetDoor;
  #checkedAt = 0;

  constructor(seed: number, options: WorldOptions = {}) {
    const world = new World(seed, options);
    const { profile, random } = world;
    const broker = new SimBroker(world);
    const store = new SimStore();
    const storage = new SimStorage();
    const network = new Network(world, broker, store, storage);
    const exchange = new Exchange(network);
    const processes = new Processes(world);
    const dependencies = { world, network, exchange, processes };
    const schedulers = Array.from(
      { length: profile.schedulers },
      (_, index) => new SimScheduler(dependencies, `scheduler${index}`),
    );
    const runners = Array.from({ length: profile.runners }, (_, index) => {
      const labels = index === 0 ? ['linux'] : random.chance(0.5) ? ['linux', 'big'] : ['linux', 'mac'];
      return new SimRunner(dependencies, `runner${index}`, labels, 1 + random.int(3));
    });
    const labelsOfAll = runners.map(({ labels }) => labels);
    if (profile.fleet > 0)
      for (const name of tenantsRunners.keys()) runners.push(new SimRunner(dependencies, name, ['linux'], 2));
    // Those of a world in which nothing is kept have nothing to do.
    const registries =
      profile.keeps > 0 ? [new SimRegistry(dependencies, 'registry0'), new SimRegistry(dependencies, 'registry1')] : [];
    const gateways = [new SimNode('gateway0', world.timeline), new SimNode('gateway1', world.timeline)];
    for (const gateway of gateways) gateway.handled = () => world.moved();
    const clients = new Clients(dependencies, gateways, labelsOfAll);
    this.world = world;
    this.#schedulers = schedulers;
    this.#runners = runners;
    this.#registries = registries;
    this.#clients = clients;
    this.#oracle = new Oracle({ world, broker, store, storage, processes, schedulers, runners, clients });
    this.#faults = new Faults({ world, broker, store, storage, schedulers, runners, registries, gateways });
    this.#door = new FleetDoor(world, broker);
    world.witnessedBy(this.#oracle);
  }

  /** Lives the world from its beginning until everything in it is done. Throws the Violation that was found. */
  async run(): Promise<void> {
    const { world } = this;
    const { callbackThrows } = world.profile;
    if (callbackThrows > 0)
      injectFaults((border) => {
        if (!world.drops(callbackThrows)) return;
        world.mark('callback threw');
        throw new InjectedFault(`thrown at ${border}`);
      });
    try {
      await this.#live();
    } finally {
      injectFaults(undefined);
    }
  }

  async #live(): Promise<void> {
    const { profile, random } = this.world;
    for (const scheduler of this.#schedulers) this.world.after(random.between(0, 500), () => scheduler.start());
    for (const runner of this.#runners) this.world.after(random.between(0, 500), () => runner.start());
    for (const registry of this.#registries) registry.start();
    this.#door.start();
    this.#clients.start();
    this.#faults.start();
    if (lastsHours(profile)) this.#lookAtPurges();
    this.world.after(profile.quietMs + profile.illMs, () => {
      this.world.healed = true;
      this.world.trace(() => '--- the world is healed ---');
      this.#faults.heal();
    });
    for (; !this.#isDone(); this.steps++) {
      const task = this.world.timeline.next();
      if (task === undefined) throw new Violation('progress', 'nothing is planned any more, and not all is done');
      task();
      if (this.world.promisesMoved) await this.world.settlePromises();
      if (this.world.failure !== undefined) throw this.world.failure;
      if (this.steps > STEPS_MAX) throw new Violation('progress', `${STEPS_MAX} steps, and not all is done`);
    }
    this.#oracle.checkEnd();
    if (this.world.failure !== undefined) throw this.world.failure;
  }

  #lookAtPurges(): void {
    this.world.after(LOOK_EVERY_MS, () => {
      this.#oracle.checkPurges();
      this.#lookAtPurges();
    });
  }

  #isDone(): boolean {
    if (!this.world.healed || this.world.now < this.#checkedAt) return false;
    this.#checkedAt = this.world.now + 500;
    const missing = this.#oracle.missing();
    if (missing === undefined) return true;
    if (this.world.now > this.world.profile.quietMs + this.world.profile.illMs + HEALED_MS_MAX)
      throw new Violation('progress', `${HEALED_MS_MAX / 60_000} minutes after all faults have ended: ${missing}`);
    return false;
  }
}
