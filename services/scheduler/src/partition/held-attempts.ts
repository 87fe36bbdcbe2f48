/**
 * Attempts whose session is over and which may have ended well all the same: their runner lists the result in the lease of
 * a later session (P13), or has had no broker to say so for as long as its owner (P5). They are lost once no lease lists them any
 * more, and a loss may be declared.
 */
import type { LiveAttempt } from '@penstock/run';
import type { Dispatch } from '../dispatch/dispatch.ts';
import { liveAttemptOf } from '../dispatch/job-deliveries.ts';
import type { LiveRun } from '../run/live-run.ts';

/** `stands` is asked before each try to make the loss known: it may be tried for long, and the broker be away meanwhile. */
export type LoseAttempt = (run: LiveRun, stage: string, attempt: number, runner: string, stands: () => boolean) => void;

export class HeldAttempts {
  readonly #dispatch: Dispatch;
  readonly #mayDeclare: () => boolean;
  readonly #lose: LoseAttempt;
  readonly #held = new Map<LiveAttempt, { readonly run: LiveRun; readonly stage: string }>();
  #isBusy = false;

  constructor(dispatch: Dispatch, mayDeclare: () => boolean, lose: LoseAttempt) {
    this.#dispatch = dispatch;
    this.#mayDeclare = mayDeclare;
    this.#lose = lose;
  }

  /** More of them are lost than the last call was to lose. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Of an attempt whose own session is over. */
  loseUnlessHeld(run: LiveRun, stage: string, live: LiveAttempt): void {
    if (!this.#hold(run, stage, live)) this.#loseNow(run, stage, live);
  }

  #loseNow(run: LiveRun, stage: string, live: LiveAttempt): void {
    this.#lose(run, stage, live.attempt, live.runner, () => !this.#hold(run, stage, live));
  }

  /** False: it is to be lost. */
  #hold(run: LiveRun, stage: string, live: LiveAttempt): boolean {
    const isHeld = this.#isHeld(live);
    if (isHeld) this.#held.set(live, { run, stage });
    return isHeld;
  }

  #isHeld(live: LiveAttempt): boolean {
    return this.#dispatch.holds(live) || !this.#mayDeclare();
  }

  /**
   * About every second, and while `isBusy` again at once. What was to come of an attempt that no lease lists any more does not come:
   * at most so many are lost, for a loss may be declared again of all of them in one moment. How many were.
   */
  loseReleased(max = Number.POSITIVE_INFINITY): number {
    let count = 0;
    this.#isBusy = false;
    if (!this.#mayDeclare()) return count;
    for (const [held, { run, stage }] of this.#held) {
      if (count >= max) {
        this.#isBusy = true;
        break;
      }
      const live = liveAttemptOf(run, stage);
      const isLive = live?.session === held.session && live.credit === held.credit;
      if (isLive && this.#isHeld(held)) continue;
      this.#held.delete(held);
      if (!isLive) continue;
      this.#loseNow(run, stage, held);
      count += 1;
    }
    return count;
  }
}
