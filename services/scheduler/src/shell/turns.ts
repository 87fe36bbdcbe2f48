/** Gives others a turn after each piece of a long work: what awaits only what is there already never leaves its turn. */

/** Events that are read, folded or counted in a few milliseconds. */
const EVENTS_A_TURN = 1_000;
/** Of a run or document, whatever its size. */
const EACH = 10;

export class Turns {
  readonly #turn: (() => Promise<void>) | undefined;
  #left = EVENTS_A_TURN;

  /** Without `turn` there is nobody to be given one. */
  constructor(turn?: () => Promise<void>) {
    this.#turn = turn;
  }

  /** So many events of one run were worked on. */
  async after(events: number): Promise<void> {
    this.#left -= events + EACH;
    if (this.#left > 0) return;
    this.#left = EVENTS_A_TURN;
    await this.#turn?.();
  }
}
