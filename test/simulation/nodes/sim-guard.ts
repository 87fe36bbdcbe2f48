/**
 * A guard (P15): a process of its own beside the runner. It goes on while the runner is frozen, ends what it holds at its
 * deadline or when the runner dies, and tells the runner when that can hear it.
 */
import type { Guard } from '@penstock/executor';
import { SimOutage } from '../world/errors.ts';
import type { SimNode } from '../world/sim-node.ts';
import type { SimTime } from '../world/sim-time.ts';
import type { World } from '../world/world.ts';

/** For a line there or back. */
const LINE_MS = 1;

type GuardPort = Pick<Guard, 'gone' | 'isGone' | 'setDeadline' | 'confirm' | 'fire'>;

export class SimGuard implements GuardPort {
  readonly gone: Promise<string>;
  isGone = false;
  readonly #world: World;
  readonly #node: SimNode;
  readonly #time: SimTime;
  readonly #life: number;
  /** Ends what it holds. */
  readonly #kill: () => void;
  /** Of the world's time. */
  #deadline = Number.NEGATIVE_INFINITY;
  #fired = false;
  #tell: (why: string) => void = () => {};

  constructor(world: World, node: SimNode, time: SimTime, kill: () => void) {
    this.#world = world;
    this.#node = node;
    this.#time = time;
    this.#life = node.life;
    this.#kill = kill;
    this.gone = world.promise((resolve) => {
      this.#tell = resolve;
    });
  }

  setDeadline(bootMs: number): Promise<void> {
    const deadline = this.#world.now + bootMs - this.#time.bootNow();
    return this.#ask(() => {
      this.#deadline = deadline;
      this.#world.after(Math.max(0, deadline - this.#world.now), () => {
        if (this.#deadline === deadline) this.#fire('it fired', 'session fenced');
      });
    });
  }

  confirm(): Promise<boolean> {
    return this.#ask(() => {}).then(
      () => true,
      () => false,
    );
  }

  async fire(): Promise<void> {
    this.#world.after(LINE_MS, () => this.#fire('it fired'));
    await this.gone;
  }

  /** The runner's process is no more: its end of the line is closed. */
  ownerDied(): void {
    this.#world.after(this.#world.random.between(0, 50), () => this.#fire('its owner died'));
  }

  /** Whatever it was asked before, nothing of it lives on. */
  get hasFired(): boolean {
    return this.#fired;
  }

  #fire(why: string, mark?: string): void {
    if (this.#fired) return;
    this.#fired = true;
    if (mark !== undefined) this.#world.mark(mark);
    if (this.#world.mutation !== 'no-guard') this.#kill();
    this.#world.after(LINE_MS, () =>
      this.#node.handle(this.#life, () => {
        this.isGone = true;
        this.#tell(why);
      }),
    );
  }

  #ask(take: () => void): Promise<void> {
    return this.#world.promise((resolve, reject) => {
      this.#world.after(LINE_MS, () => {
        if (!this.#fired) take();
        const refused = this.#fired;
        this.#world.after(LINE_MS, () =>
          this.#node.handle(this.#life, () => {
            if (refused) reject(new SimOutage('the guard has fired'));
            else resolve();
          }),
        );
      });
    });
  }
}
