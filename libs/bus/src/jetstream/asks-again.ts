/**
 * How often a read may be asked again where no copy has said a word yet, by connection. One copy that stands still leaves the others prompt;
 * a broker with too much to do is slow in all it answers, and asked four times by each reader it would have four times as much to do. So
 * what may be asked again is earned by answers that came promptly.
 */

/** By each prompt answer: enough where half of what is asked is handed to a copy that stands still. */
const EARNED = 2;
const LEFT_MAX = 20;

export class AsksAgain {
  static readonly #known = new WeakMap<object, AsksAgain>();
  #left = LEFT_MAX;

  static of(connection: object): AsksAgain {
    const known = this.#known.get(connection) ?? new AsksAgain();
    this.#known.set(connection, known);
    return known;
  }

  /** What was asked once was answered before it would have been asked again. */
  answeredPromptly(): void {
    this.#left = Math.min(LEFT_MAX, this.#left + EARNED);
  }

  /** False: not now. */
  take(): boolean {
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}
