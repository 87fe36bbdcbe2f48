/** How fast pushes come, looked at over the last moments. */

/** Some pushes at a time are usual: of a branch with its tag, or of many projects at the full hour. */
const BUSY_PER_SECOND = 200;
/** By steps, so that a burst is over soon after its last push. */
const STEP_MS = 50;
const STEPS = 5;
const BUSY_IN_WINDOW = (BUSY_PER_SECOND * STEPS * STEP_MS) / 1000;

export class PushRate {
  readonly #now: () => number;
  /** The step that is under way, of those since the clock's beginning. */
  #step = 0;
  /** What came in each of the last steps, in a ring. */
  readonly #counts = new Uint32Array(STEPS);
  #inWindow = 0;

  /** Milliseconds that only go forward. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  came(): void {
    this.#turn();
    this.#inWindow += 1;
    const at = this.#step % STEPS;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  get isBusy(): boolean {
    this.#turn();
    return this.#inWindow > BUSY_IN_WINDOW;
  }

  #turn(): void {
    const step = Math.floor(this.#now() / STEP_MS);
    for (let next = Math.max(this.#step, step - STEPS) + 1; next <= step; next += 1) {
      this.#inWindow -= this.#counts[next % STEPS] ?? 0;
      this.#counts[next % STEPS] = 0;
    }
    this.#step = step;
  }
}
