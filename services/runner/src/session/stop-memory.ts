/** The stops of the last minute: a grant that comes after its stop is refused (P14). */
import type { AttemptRef } from '@penstock/bus';
import { STOPS_KEPT_MS } from '@penstock/bus';

/** A minute of the fastest canceller there is; the oldest goes first. */
const STOPS_MAX = 50_000;

export class StopMemory {
  /** The oldest first. */
  readonly #stops = new Map<string, number>();
  readonly #now: () => number;

  /** `now`: milliseconds of a clock that never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  remember(ref: AttemptRef): void {
    const now = this.#now();
    for (const [id, at] of this.#stops) {
      if (now - at < STOPS_KEPT_MS && this.#stops.size < STOPS_MAX) break;
      this.#stops.delete(id);
    }
    const id = idOf(ref);
    this.#stops.delete(id);
    this.#stops.set(id, now);
  }

  has(ref: AttemptRef): boolean {
    const at = this.#stops.get(idOf(ref));
    return at !== undefined && this.#now() - at < STOPS_KEPT_MS;
  }
}

function idOf({ runId, stage, attempt, session, credit }: AttemptRef): string {
  return JSON.stringify([runId, stage, attempt, session, credit]);
}
