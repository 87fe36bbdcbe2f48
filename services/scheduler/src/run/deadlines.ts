/**
 * When runs want to be woken, by the boot clock; owns those times. Near deadlines are kept as timers; far ones are found by looking
 * through the live runs, some at every tick, so that runs that have ended leave nothing behind here and no look takes long.
 *
 *  DEADLINES-1 A run is woken when a wait of its stages is over, by its own beginnings (`StageTimes`), whatever the wall clock says.
 *  DEADLINES-2 Of what is due at one moment keys take turns: one with ten thousand runs has others' woken among them.
 */
import { FairQueue } from '@penstock/async';
import type { RunId } from '@penstock/run';
import { Heap } from './heap.ts';
import type { LiveRun } from './live-run.ts';
import { WideMap } from './wide-map.ts';

/** Deadlines within this are kept as timers. All live runs are looked at in less, or a deadline would be met late. */
const NEAR_MS = 3 * 60 * 1000;
/** Ticks (of about a second) in which all live runs are looked at once. */
const ROUND_TICKS = 60;
const LOOKS_MIN = 50;
const AGAIN_MS = 1_000;
/** Where much is to be done, one tick follows the other at once: those in between look at none. */
const LOOK_EVERY_MS = 500;
/** Timers that are taken out in one call, those of runs that have ended included. */
const TIMERS_AT_ONCE = 1_000;

export class Deadlines {
  readonly #timers = new Heap<{ readonly at: number; readonly runId: RunId }>((a, b) => a.at < b.at);
  /** Their timers have come, and they are not woken yet. */
  readonly #due = new FairQueue<RunId>(Infinity, Infinity);
  /** Run id to the time at which it is woken; it is taken out then. */
  readonly #wakeAt = new WideMap<RunId, number>((id) => id);
  /** Where the look through the live runs stands. */
  #round: Iterator<LiveRun> | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** Some that are due are left over. */
  get isBusy(): boolean {
    return this.#due.size > 0;
  }

  /** When the next timer is due; undefined: there is none. */
  get next(): number | undefined {
    return this.#timers.peek()?.at;
  }

  /** An earlier time that was asked for stays. */
  wakeAt(run: LiveRun, at: number, boot: number): void {
    const known = this.#wakeAt.get(run.id);
    if (at - boot > NEAR_MS || (known !== undefined && known <= at)) return;
    this.#wakeAt.set(run.id, at);
    this.#timers.push({ at, runId: run.id });
  }

  /** What the run's state says is due, whatever was asked for. */
  arm(run: LiveRun, boot: number): void {
    const deadline = run.ended ? undefined : run.times.next(run.state);
    if (deadline !== undefined) this.wakeAt(run, deadline, boot);
  }

  #armAfter(run: LiveRun, boot: number): void {
    const deadline = run.ended ? undefined : run.times.next(run.state);
    if (deadline !== undefined) this.wakeAt(run, deadline <= boot ? boot + AGAIN_MS : deadline, boot);
  }

  /**
   * Wakes those whose time has come, with the stages whose waits are over: at most so many, for after a pause there may be as many
   * as there are runs; it is busy, or `next` has come, while others are left. How many it has woken.
   */
  wakeDue(
    runs: ReadonlyMap<RunId, LiveRun>,
    { boot, max }: { readonly boot: number; readonly max: number },
    wake: (run: LiveRun, due: readonly string[]) => void,
  ): number {
    this.#takeTimers(runs, boot);
    let woken = 0;
    for (let looks = 0; looks < TIMERS_AT_ONCE && woken < max; looks++) {
      const runId = this.#due.next();
      if (runId === undefined) break;
      const at = this.#wakeAt.get(runId);
      // It was told twice.
      if (at === undefined || at > boot) continue;
      this.#wakeAt.delete(runId);
      const run = runs.get(runId);
      if (run === undefined || run.ended) continue;
      const due = run.times.due(run.state, boot);
      if (due.length > 0) {
        wake(run, due);
        woken += 1;
      }
      // What the machine has left as it was is not asked again and again in one turn.
      this.#armAfter(run, boot);
    }
    return woken;
  }

  #takeTimers(runs: ReadonlyMap<RunId, LiveRun>, boot: number): void {
    for (let timers = 0; timers < TIMERS_AT_ONCE; timers++) {
      const timer = this.#timers.peek();
      if (timer === undefined || timer.at > boot) return;
      this.#timers.pop();
      if (this.#wakeAt.get(timer.runId) !== timer.at) continue;
      const run = runs.get(timer.runId);
      if (run === undefined) this.#wakeAt.delete(timer.runId);
      else this.#due.add(run.state.key, run.id);
    }
  }

  /** Looks at some of the live runs: at all of them in so many ticks. */
  look(runs: ReadonlyMap<RunId, LiveRun>, boot: number): void {
    if (boot - this.#lookedAt < LOOK_EVERY_MS) return;
    this.#lookedAt = boot;
    for (let left = Math.max(LOOKS_MIN, Math.ceil(runs.size / ROUND_TICKS)); left > 0; left -= 1) {
      this.#round ??= runs.values();
      const { value, done } = this.#round.next();
      if (done === true) {
        this.#round = undefined;
        return;
      }
      this.arm(value, boot);
    }
  }
}
