/** Tells people that a runner has too few slots: all are taken, stages wait, and that for long. Once, and again after an hour of it. */
import type { Log } from '@penstock/telemetry/log';

export interface SlotsNow {
  readonly slots: number;
  readonly busy: number;
  /** Whether some scheduler has stages that wait. */
  readonly isAsked: boolean;
}

const FULL_MS = 5 * 60_000;
const AGAIN_MS = 60 * 60_000;

export class FullSlots {
  readonly #log: Log;
  #since: number | null = null;
  #toldAt = Number.NEGATIVE_INFINITY;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Every second or so; `now` is of a clock that never goes back. */
  look({ slots, busy, isAsked }: SlotsNow, now: number): void {
    if (slots === 0 || busy < slots || !isAsked) {
      this.#since = null;
      return;
    }
    this.#since ??= now;
    if (now - this.#since < FULL_MS || now - this.#toldAt < AGAIN_MS) return;
    this.#toldAt = now;
    this.#log.warn(
      { slots, forSecs: Math.round((now - this.#since) / 1000) },
      'all slots of this runner have been taken for minutes, and stages wait: raise SERVICE_SLOTS where the machine has room, or start another runner',
    );
  }
}
