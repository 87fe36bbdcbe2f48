/** How long to wait before the log is asked for again; the server may name the first wait. */
import { backoffMs } from '@penstock/async';

const FIRST_MS = 500;
const MS_MAX = 15_000;

export class ReconnectWaits {
  #firstMs = FIRST_MS;
  #failures = 0;

  nextMs(): number {
    this.#failures += 1;
    return backoffMs(this.#failures, { firstMs: this.#firstMs, maxMs: MS_MAX });
  }

  /** The connection stood: the next wait is a first one again. */
  reset(retryMs: number | undefined): void {
    this.#firstMs = Math.min(MS_MAX, Math.max(1, retryMs ?? FIRST_MS));
    this.#failures = 0;
  }
}
