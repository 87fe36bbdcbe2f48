/**
 * How long a runner that is to leave stays for the runs whose shared folder it has (adr/0087). It is told of what changes, and looks at
 * nothing by itself; so nothing that changes may be kept from it.
 */
import type { Time } from '@penstock/async';

/** Where no scheduler has been there for so long all of them are being stopped: none sends a stage, or says that a run has ended. */
const NO_SCHEDULER_MS = 10_000;
/** Whoever waits for people, or for stages that run elsewhere, is waited for no longer: the runner's successor is held up meanwhile. */
const NOTHING_TO_DO_MS = 30_000;

export interface Situation {
  /** It has a session, takes stages of these runs, and there are some. */
  readonly goesOn: boolean;
  readonly hasScheduler: boolean;
  readonly isBusy: boolean;
}

export class Finishing {
  /** Resolves when it need not stay. */
  readonly over: Promise<void>;
  readonly #look: () => Situation;
  readonly #leave: () => void;
  readonly #unserved: Lasting;
  readonly #unused: Lasting;

  constructor(time: Time, look: () => Situation) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    this.#look = look;
    this.#leave = resolve;
    this.#unserved = new Lasting(time, NO_SCHEDULER_MS, () => this.end());
    this.#unused = new Lasting(time, NOTHING_TO_DO_MS, () => this.end());
    this.changed();
  }

  /** Something that `Situation` tells may be otherwise now. */
  changed(): void {
    const { goesOn, hasScheduler, isBusy } = this.#look();
    if (!goesOn) return this.end();
    this.#unserved.holds(!hasScheduler);
    this.#unused.holds(!isBusy);
  }

  end(): void {
    this.#unserved.holds(false);
    this.#unused.holds(false);
    this.#leave();
  }
}

/** Calls back when something has held for so long without a break. */
class Lasting {
  readonly #time: Time;
  readonly #milliseconds: number;
  readonly #lasted: () => void;
  #callOff: (() => void) | null = null;

  constructor(time: Time, milliseconds: number, lasted: () => void) {
    this.#time = time;
    this.#milliseconds = milliseconds;
    this.#lasted = lasted;
  }

  holds(does: boolean): void {
    if (does) this.#callOff ??= this.#time.after(this.#milliseconds, this.#lasted);
    else {
      this.#callOff?.();
      this.#callOff = null;
    }
  }
}
