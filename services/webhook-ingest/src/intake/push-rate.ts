/** How fast pushes come, looked at over the last moments. */

/** Some pushes at a time are usual: of a branch with its tag, or of many projects at the full hour. */
const BUSY_PER_SECOND = 200;
const WINDOW_MS = 250;

export class PushRate {
  readonly #now: () => number;
  #windowFrom = -Infinity;
  #inWindow = 0;
  #before = 0;

  /** Milliseconds that only go forward. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  came(): void {
    this.#turn();
    this.#inWindow += 1;
  }

  get isBusy(): boolean {
    this.#turn();
    return Math.max(this.#before, this.#inWindow) * (1000 / WINDOW_MS) > BUSY_PER_SECOND;
  }

  #turn(): void {
    const now = this.#now();
    const passed = now - this.#windowFrom;
    if (passed < WINDOW_MS) return;
    this.#before = passed < 2 * WINDOW_MS ? this.#inWindow : 0;
    this.#inWindow = 0;
    this.#windowFrom = now;
  }
}
