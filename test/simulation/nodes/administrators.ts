/**
 * Administrators who pause everything, a key or a label, or drain a runner, and take it back (P35). What the broker has accepted of
 * it, and when, is what the rules go by. In a healed world nothing stays held up.
 */
import { controlName, type Control, type ControlTarget } from '@penstock/bus';
import { Random } from '../../support/random.ts';
import type { Network } from '../world/network.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { World } from '../world/world.ts';

interface Dependencies {
  readonly world: World;
  readonly network: Network;
  readonly gateways: readonly SimNode[];
  readonly labels: readonly (readonly string[])[];
}

/** By the world's clock. */
export interface HeldUp {
  readonly target: ControlTarget;
  readonly from: number;
  to: number;
}

const TRY_MS = 4_000;
/** Another source of chance: worlds in which nobody pauses anything are as they were. */
const OWN = 0xad31_0175;

export class Administrators {
  readonly heldUp: HeldUp[] = [];
  readonly #dependencies: Dependencies;
  readonly #random: Random;
  readonly #standing = new Map<string, HeldUp>();

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    this.#random = new Random(dependencies.world.seed ^ OWN);
  }

  start(): void {
    const { world } = this.#dependencies;
    const { pauses, quietMs, illMs } = world.profile;
    if (pauses === 0) return;
    const end = quietMs + illMs;
    for (let at = this.#random.exponential(60_000 / pauses); at < end; at += this.#random.exponential(60_000 / pauses))
      world.after(at, () => this.#pause());
    world.after(end, () => {
      for (const { target } of [...this.#standing.values()]) this.#resume(target);
    });
  }

  missing(): string | undefined {
    const [name] = this.#standing.keys();
    return name === undefined ? undefined : `what was paused as ${name} is not resumed`;
  }

  #pause(): void {
    const { world } = this.#dependencies;
    const target = this.#drawTarget();
    const forMs = this.#random.exponential(9_000);
    const control: Control = { target, since: world.wallClock(), by: 'admin' };
    this.#set(control, () => {
      const name = controlName(target);
      world.mark(target.kind === 'runner' ? 'runner drained' : `${target.kind} paused`);
      if (!this.#standing.has(name)) {
        const heldUp: HeldUp = { target, from: world.now, to: Number.POSITIVE_INFINITY };
        this.#standing.set(name, heldUp);
        this.heldUp.push(heldUp);
      }
      world.after(forMs, () => this.#resume(target));
    });
  }

  #resume(target: ControlTarget): void {
    const { world } = this.#dependencies;
    const name = controlName(target);
    if (!this.#standing.has(name)) return;
    this.#set({ target, since: world.wallClock(), by: 'admin', resumedAt: world.wallClock() }, () => {
      // It may have been paused anew while this was tried again and again.
      const standing = this.#standing.get(name);
      if (standing !== undefined) standing.to = Math.min(standing.to, world.now);
      this.#standing.delete(name);
    });
  }

  /** Until it is accepted; nobody writes the same key meanwhile, or what is accepted last stands. */
  #set(control: Control, accepted: () => void): void {
    const { world, network, gateways } = this.#dependencies;
    let isSet = false;
    network.askBroker(
      this.#random.pick(gateways),
      (broker) => {
        isSet = broker.set('controls', controlName(control.target), control);
        if (isSet) accepted();
        return isSet;
      },
      TRY_MS,
      () => {
        if (!isSet && (control.resumedAt !== undefined || !world.healed))
          world.after(500, () => this.#set(control, accepted));
      },
    );
  }

  #drawTarget(): ControlTarget {
    const { world, labels } = this.#dependencies;
    const kind = this.#random.pick(['all', 'key', 'label', 'runner'] as const);
    if (kind === 'key') return { kind, key: `key${this.#random.int(world.profile.keys)}` };
    if (kind === 'label') return { kind, label: this.#random.pick(this.#random.pick(labels)) };
    if (kind === 'runner') return { kind, runner: `runner${this.#random.int(world.profile.runners)}` };
    return { kind };
  }
}
