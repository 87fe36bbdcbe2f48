/**
 * Runs that a take-over has found with attempts or workspaces: what their earlier owner left under way is taken up some at a time,
 * and of each run before anything else is done about it. Those in which something has thrown are taken up likewise a while later:
 * what was lost with it, a stop or the loss of an attempt, comes from nowhere else.
 */
import type { Dispatch } from '../dispatch/dispatch.ts';
import type { JobDeliveries } from '../dispatch/job-deliveries.ts';
import type { LiveRun } from '../run/live-run.ts';
import { WideQueue } from '../run/wide-queue.ts';
import type { HeldAttempts } from './held-attempts.ts';
import type { RunBorder } from './run-border.ts';

/** As many as an opening takes up at its end. */
const RUNS_AT_ONCE = 50;
/** What throws each time is tried as seldom as this. */
const AFTER_FAULT_MS = 5_000;

export interface ResumptionHost {
  readonly dispatch: Pick<Dispatch, 'hasSession'>;
  readonly heldAttempts: Pick<HeldAttempts, 'loseUnlessHeld'>;
  readonly jobs: Pick<JobDeliveries, 'adopt' | 'stop'>;
  readonly border: RunBorder;
  bootNow(): number;
  /** Whether it is in memory still. */
  has(run: LiveRun): boolean;
  /** The runner holds a workspace. */
  watchRunner(runner: string): void;
}

export class Resumption {
  readonly #host: ResumptionHost;
  readonly #left = new WideQueue<LiveRun>(({ id }) => id);
  /** To the time from which on they are taken up again; earliest first. */
  readonly #afterFault = new Map<LiveRun, number>();

  constructor(host: ResumptionHost) {
    this.#host = host;
  }

  /** Some have not been taken up yet. */
  get isBusy(): boolean {
    return this.#left.size > 0;
  }

  add(run: LiveRun): void {
    if (run.state.liveAttempts > 0 || Object.keys(run.state.workspaces).length > 0) this.#left.add(run);
  }

  /** Something about it has thrown, and it has ended. */
  addAfterFault(run: LiveRun): void {
    if (!this.#afterFault.has(run)) this.#afterFault.set(run, this.#host.bootNow() + AFTER_FAULT_MS);
  }

  /** The next ones, at most so many; how many there were. */
  goOn(max = RUNS_AT_ONCE): number {
    const now = this.#host.bootNow();
    for (const [run, at] of this.#afterFault) {
      if (at > now) break;
      this.#afterFault.delete(run);
      if (run.isCommitted) this.add(run);
      else this.addAfterFault(run);
    }
    let count = 0;
    for (const run of this.#left) {
      if (count >= max) break;
      count += 1;
      this.resume(run);
    }
    return count;
  }

  /** Grants without a known answer, stops, lost sessions. False: that was done before, or waits for a decision to be committed. */
  resume(run: LiveRun): boolean {
    const { dispatch, heldAttempts, jobs, border, has, watchRunner } = this.#host;
    if (this.#left.size === 0 || !this.#left.has(run)) return false;
    const isThere = has(run);
    if (isThere && !run.isCommitted) return false;
    this.#left.delete(run);
    if (!isThere) return false;
    border.run(run, () => {
      for (const { name, live } of run.state.stages.touched()) {
        if (live === undefined) continue;
        if (!dispatch.hasSession(live.session)) heldAttempts.loseUnlessHeld(run, name, live);
        else if (live.stopping === undefined) jobs.adopt(run, name, live.attempt);
        else jobs.stop(run, name, live.attempt);
      }
      for (const runner of Object.values(run.state.workspaces)) watchRunner(runner);
    });
    return true;
  }

  clear(): void {
    this.#left.clear();
    this.#afterFault.clear();
  }
}
