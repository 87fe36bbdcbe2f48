/** How far apart the processing begins deliveries, of whatever lanes, so that others have the processors. */

export interface Others {
  /** Pushes come so fast that taking them in wants all there is. */
  readonly isIntakeBusy: boolean;
  /** Somebody asks for runs otherwise, on this machine. */
  readonly areRunsAsked: boolean;
}

/** A twentieth of one processor is left to the processing while pushes come fast, and at least a delivery a second. */
const TIMES_FOR_INTAKE = 20;
const MS_MAX_FOR_INTAKE = 1_000;
/**
 * Half of the time while runs are asked for otherwise: each of their dozen steps stands behind what deliveries are doing. With more
 * of them under way each takes longer, and so they become fewer.
 */
const TIMES_FOR_RUNS = 2;
/** What takes longer waits for a host, and keeps nobody from anything. */
const MS_MAX_FOR_RUNS = 100;
/** How soon it is known that nobody wants anything any more. */
const LOOK_AGAIN_MS = 25;

/** How `giveWay` waits. */
interface Waiting {
  pause(ms: number): Promise<void>;
  /** Whether nothing is to be waited for any more. */
  isOver(): boolean;
}

export class Pace {
  readonly #now: () => number;
  /** The last one that ended. */
  #tookMs = 0;
  /** The last one, which may yet be to begin. */
  #beganAt = -Infinity;

  /** Milliseconds that only go forward. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  took(ms: number): void {
    this.#tookMs = ms;
  }

  /** Waits for as long as `next` says, and no longer than others want something: a rest for a burst of pushes does not outlast it. */
  async giveWay(others: () => Others, { pause, isOver }: Waiting): Promise<void> {
    let wanted = others();
    let until = this.#now() + this.next(wanted);
    while ((wanted.isIntakeBusy || wanted.areRunsAsked) && !isOver()) {
      const leftMs = until - this.#now();
      if (leftMs <= 0) return;
      await pause(Math.min(leftMs, LOOK_AGAIN_MS));
      const wasIntakeBusy = wanted.isIntakeBusy;
      wanted = others();
      if (wasIntakeBusy && !wanted.isIntakeBusy) until = Math.min(until, this.#cutShort(MS_MAX_FOR_RUNS));
    }
    this.#cutShort(0);
  }

  /** Until when is waited at most. What was not waited for is not waited for by the next one either. */
  #cutShort(ms: number): number {
    const atMost = this.#now() + ms;
    this.#beganAt = Math.min(this.#beganAt, atMost);
    return atMost;
  }

  /** For how long the next delivery is to wait before it begins. */
  next(others: Others): number {
    const now = this.#now();
    const apartMs = this.#apartMs(others);
    this.#beganAt = apartMs === 0 ? now : Math.max(now, this.#beganAt + apartMs);
    return this.#beganAt - now;
  }

  #apartMs({ isIntakeBusy, areRunsAsked }: Others): number {
    if (isIntakeBusy) return Math.min(MS_MAX_FOR_INTAKE, this.#tookMs * TIMES_FOR_INTAKE);
    return areRunsAsked ? Math.min(MS_MAX_FOR_RUNS, this.#tookMs * TIMES_FOR_RUNS) : 0;
  }
}
