/**
 * When runs want to be woken; owns those times. Near deadlines are kept as timers; far ones are found by looking through all live runs now
 * and then, so that runs that have ended leave nothing behind here.
 */
import { nextDeadline, type RunSettings, type RunId } from '@penstock/run';
import { Heap } from './heap.ts';
import type { LiveRun } from './live-run.ts';

/** Deadlines within this are kept as timers; all live runs are looked through for them every SWEEP_MS. */
const NEAR_MS = 3 * 60 * 1000;
const SWEEP_MS = 60 * 1000;

export class Deadlines {
  readonly #timers = new Heap<{ readonly at: number; readonly runId: RunId }>((a, b) => a.at < b.at);
  readonly #settings: RunSettings;
  /** Run id to the time at which it is woken; its timer takes it out. */
  readonly #wakeAt = new Map<RunId, number>();
  #sweptAt = 0;

  constructor(settings: RunSettings) {
    this.#settings = settings;
  }

  /** When the next timer is due, milliseconds since 1970; undefined: there is none. */
  get next(): number | undefined {
    return this.#timers.peek()?.at;
  }

  /** An earlier time that was asked for stays. */
  wakeAt(run: LiveRun, at: number, now: number): void {
    const known = this.#wakeAt.get(run.id);
    if (at - now > NEAR_MS || (known !== undefined && known <= at)) return;
    this.#wakeAt.set(run.id, at);
    this.#timers.push({ at, runId: run.id });
  }

  /** What the run's state says is due, whatever was asked for. */
  arm(run: LiveRun, now: number): void {
    const deadline = nextDeadline(run.state, run.plan, this.#settings);
    if (deadline !== undefined) this.wakeAt(run, deadline, now);
  }

  /** Wakes those whose time has come. */
  wakeDue(runs: ReadonlyMap<RunId, LiveRun>, now: number, wake: (run: LiveRun) => void): void {
    for (let timer = this.#timers.peek(); timer !== undefined && timer.at <= now; timer = this.#timers.peek()) {
      this.#timers.pop();
      if (this.#wakeAt.get(timer.runId) !== timer.at) continue;
      this.#wakeAt.delete(timer.runId);
      const run = runs.get(timer.runId);
      if (run !== undefined && !run.ended) wake(run);
    }
    if (now - this.#sweptAt < SWEEP_MS) return;
    this.#sweptAt = now;
    for (const run of runs.values()) this.arm(run, now);
  }
}
