/** Gives others a turn after each piece of a long work: what awaits only what is there already never leaves its turn. */

/** Events that are read, folded or counted in a few milliseconds. */
const EVENTS_A_TURN = 1_000;
/** Of a run or document, whatever its size. */
const EACH = 10;

export class Turns {
  readonly #turn: (() => Promise<void>) | undefined;
  readonly #signal: AbortSignal | undefined;
  #left = EVENTS_A_TURN;

  /** Without `turn` there is nobody to be given one. `signal` ends the work. */
  constructor(turn?: () => Promise<void>, signal?: AbortSignal) {
    this.#turn = turn;
    this.#signal = signal;
  }

  /** So many events of one run were worked on. */
  async after(events: number): Promise<void> {
    this.#signal?.throwIfAborted();
    this.#left -= events + EACH;
    if (this.#left > 0) return;
    this.#left = EVENTS_A_TURN;
    await this.#turn?.();
  }
}
