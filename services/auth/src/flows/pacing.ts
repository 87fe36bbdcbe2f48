/**
 * How fast each device code is polled. In the memory of this process: with several, each sees a part of the polls and is
 * the milder for it. Only for codes that exist, so what it remembers is bounded by them, and by a number.
 */

interface Pace {
  lastAt: number;
  intervalSecs: number;
}

const CODES_MAX = 10_000;
/** RFC 8628, 3.5: by so much the interval grows at each slow_down. */
const SLOWER_SECS = 5;
const INTERVAL_SECS_MAX = 60;

export class Pacing {
  readonly #intervalSecs: number;
  readonly #paces = new Map<string, Pace>();

  constructor(intervalSecs: number) {
    this.#intervalSecs = intervalSecs;
  }

  /** Notes a poll. Too fast: less than half of the interval after the last one; timers and networks make up the rest. */
  isTooFast(code: string, now: number): boolean {
    const pace = this.#paceOf(code);
    const sinceLastMs = now - pace.lastAt;
    pace.lastAt = now;
    return sinceLastMs < (pace.intervalSecs * 1000) / 2;
  }

  /** The new interval. */
  slower(code: string): number {
    return this.atLeast(code, this.#paceOf(code).intervalSecs + SLOWER_SECS);
  }

  atLeast(code: string, intervalSecs: number): number {
    const pace = this.#paceOf(code);
    pace.intervalSecs = Math.min(INTERVAL_SECS_MAX, Math.max(pace.intervalSecs, intervalSecs));
    return pace.intervalSecs;
  }

  #paceOf(code: string): Pace {
    const known = this.#paces.get(code);
    if (known !== undefined) return known;
    const pace = { lastAt: Number.NEGATIVE_INFINITY, intervalSecs: this.#intervalSecs };
    this.#paces.set(code, pace);
    const [oldest] = this.#paces.keys();
    if (this.#paces.size > CODES_MAX && oldest !== undefined) this.#paces.delete(oldest);
    return pace;
  }
}
