/**
 * The runs to which something has happened just now: those keep what deciding needs (their actors), and all others rest. However
 * many runs wait, they take little more than their states.
 */
import type { LiveRun } from './live-run.ts';

/** About 5 KiB each, in each partition of a scheduler. */
const AWAKE_MAX = 256;

export class AwakeRuns {
  /** The one to which nothing has happened for longest first. */
  readonly #awake = new Set<LiveRun>();
  /** Of these nothing was heard since the last tick. */
  #quiet = new Set<LiveRun>();

  happened(run: LiveRun): void {
    this.#quiet.delete(run);
    this.#awake.delete(run);
    this.#awake.add(run);
    if (this.#awake.size <= AWAKE_MAX) return;
    const [oldest] = this.#awake;
    if (oldest !== undefined) this.delete(oldest);
  }

  /** About every second. */
  tick(): void {
    for (const run of this.#quiet) this.delete(run);
    this.#quiet = new Set(this.#awake);
  }

  delete(run: LiveRun): void {
    this.#awake.delete(run);
    this.#quiet.delete(run);
    run.rest();
  }

  clear(): void {
    this.#awake.clear();
    this.#quiet.clear();
  }
}
