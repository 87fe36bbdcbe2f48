/** How long to wait before the next try: doubling, jittered over its whole upper half, bounded. */

const FIRST_MS = 500;
const MS_MAX = 15_000;

export class Backoff {
  #next = FIRST_MS;

  /** The server's own wish for the first wait. */
  startFrom(milliseconds: number): void {
    this.#next = Math.min(MS_MAX, Math.max(1, milliseconds));
  }

  nextMs(): number {
    const wait = this.#next * (0.5 + Math.random() / 2);
    this.#next = Math.min(MS_MAX, this.#next * 2);
    return wait;
  }

  reset(retryMs: number | undefined): void {
    this.#next = Math.min(MS_MAX, Math.max(1, retryMs ?? FIRST_MS));
  }
}
