/**
 * Attempts whose session is over and which may have ended well all the same: their runner lists the result in the lease of
 * a later session (P13). They are lost once no lease lists them any more.
 */
import type { LiveAttempt } from '@penstock/run';
import type { Dispatch } from '../dispatch/dispatch.ts';
import type { LiveRun } from '../run/live-run.ts';

export type LoseAttempt = (run: LiveRun, stage: string, attempt: number, runner: string) => void;

export class HeldAttempts {
  readonly #dispatch: Dispatch;
  readonly #lose: LoseAttempt;
  readonly #held = new Map<LiveAttempt, { readonly run: LiveRun; readonly stage: string }>();

  constructor(dispatch: Dispatch, lose: LoseAttempt) {
    this.#dispatch = dispatch;
    this.#lose = lose;
  }

  /** Of an attempt whose own session is over. */
  loseUnlessHeld(run: LiveRun, stage: string, live: LiveAttempt): void {
    if (this.#dispatch.holds(live)) this.#held.set(live, { run, stage });
    else this.#lose(run, stage, live.attempt, live.runner);
  }

  /** About every second. What was to come of an attempt that no lease lists any more does not come. */
  loseReleased(): void {
    for (const [held, { run, stage }] of this.#held) {
      const live = run.state.stages.find(({ name }) => name === stage)?.live;
      const isLive = live?.session === held.session && live.credit === held.credit;
      if (isLive && this.#dispatch.holds(held)) continue;
      this.#held.delete(held);
      if (isLive) this.#lose(run, stage, held.attempt, held.runner);
    }
  }
}
