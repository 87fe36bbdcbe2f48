/**
 * Who lets runners of a fleet in, and shuts them out again (P37): one of the tenant whose runs the world has, and one of another. It owns
 * their entries, which say whose stages each may be granted.
 */
import { FLEET_BUCKET, type FleetEntry } from '@penstock/bus';
import { Random } from '../../support/random.ts';
import type { SimBroker } from '../world/broker.ts';
import type { World } from '../world/world.ts';

export const TENANT = 'tenant';
const RETRY_MS = 500;
const FLEET = 0xf1_ee70;

/** By runner, whose stages alone it is given. */
export const tenantsRunners: ReadonlyMap<string, string> = new Map([
  [`fr_${'a'.repeat(32)}`, TENANT],
  [`fr_${'b'.repeat(32)}`, 'another'],
]);

export class FleetDoor {
  readonly #world: World;
  readonly #broker: SimBroker;
  readonly #random: Random;

  constructor(world: World, broker: SimBroker) {
    this.#world = world;
    this.#broker = broker;
    this.#random = new Random(world.seed ^ FLEET);
  }

  start(): void {
    const { fleet, quietMs, illMs } = this.#world.profile;
    if (fleet === 0) return;
    for (const runner of tenantsRunners.keys()) {
      this.#set(runner, true);
      const next = (): number => this.#random.exponential(60_000 / fleet);
      let isInside = true;
      for (let at = next(); at < quietMs + illMs; at += next()) {
        isInside = !isInside;
        const becomes = isInside;
        this.#world.after(at, () => this.#set(runner, becomes));
      }
      this.#world.after(quietMs + illMs, () => this.#set(runner, true));
    }
  }

  /** Until the broker takes it. */
  #set(runner: string, isInside: boolean): void {
    const tenant = tenantsRunners.get(runner);
    const entry: FleetEntry = isInside
      ? { labels: ['linux'], untrusted: true, tenant }
      : { labels: [], untrusted: false, revoked: true };
    if (!this.#broker.up || !this.#broker.set(FLEET_BUCKET, runner, entry))
      return void this.#world.after(RETRY_MS, () => this.#set(runner, isInside));
    if (!isInside) this.#world.mark('runner of the fleet shut out');
  }
}
