/**
 * Runs between their last commit and the store: whose documents are behind, and which have settled and wait for the
 * checkpoint to pass them before they leave memory (P6).
 */
import type { RunEvent, RunState, Sequence } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';
import { WideQueue } from '../run/wide-queue.ts';

export interface DirtyRun {
  readonly run: LiveRun;
  /** As committed. It may be the machine's own: it is to be encoded before anything else is done. */
  readonly state: RunState;
  readonly events: readonly RunEvent[];
}

export class ProjectionBacklog {
  /** Longest waiting first. */
  readonly #dirty = new WideQueue<LiveRun>(({ id }) => id);
  /** Settled and projected, but by a commit that the checkpoint has not reached. */
  readonly #leaving = new Set<LiveRun>();

  get dirty(): number {
    return this.#dirty.size;
  }

  /** Whether it has commits that no document stands for yet. */
  isDirty(run: LiveRun): boolean {
    return this.#dirty.has(run);
  }

  add(run: LiveRun): void {
    this.#dirty.add(run);
  }

  delete(run: LiveRun): void {
    this.#dirty.delete(run);
    this.#leaving.delete(run);
  }

  /** Up to `count` runs with commits that no document stands for yet. */
  take(count: number): DirtyRun[] {
    const taken: DirtyRun[] = [];
    for (const run of this.#dirty) {
      if (taken.length === count) break;
      this.#dirty.delete(run);
      if (run.committedVersion > 0)
        taken.push({ run, state: run.committedState(), events: run.events.slice(0, run.committedVersion) });
    }
    return taken;
  }

  /** These runs' documents are written, and the checkpoint stands at `sequence`: answers those that nothing holds any more. */
  projected(sequence: Sequence, runs: Iterable<LiveRun>): LiveRun[] {
    for (const run of runs) if (run.settled && run.isCommitted) this.#leaving.add(run);
    const closed = [...this.#leaving].filter((run) => run.committedSequence <= sequence);
    for (const run of closed) this.delete(run);
    return closed;
  }
}
