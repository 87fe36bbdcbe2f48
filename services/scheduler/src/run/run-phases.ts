/**
 * How many of a partition's runs in memory are in which phase, kept by sums: whoever asks, as every scrape does, does not walk a
 * hundred thousand of them.
 *
 *  PHASES-1 A run counts in the phase that its state is in, and those that have left memory in none.
 */
import { isEnded } from '@penstock/run';
import { invariant } from './invariant.ts';
import type { LiveRun } from './live-run.ts';
import { WideMap } from './wide-map.ts';

/** `ending`: ended, and not settled or not stored yet. */
export type RunPhase = 'queued' | 'running' | 'ending';

export class RunPhases {
  readonly #phases = new WideMap<LiveRun, RunPhase>(({ id }) => id);
  readonly #counts = new Map<RunPhase, number>();

  get counts(): ReadonlyMap<RunPhase, number> {
    return this.#counts;
  }

  /** It is in memory from now on. */
  set(run: LiveRun): void {
    this.#put(run, phaseOf(run));
  }

  /** Something was decided about the run. */
  changed(run: LiveRun): void {
    const phase = phaseOf(run);
    const known = this.#phases.get(run);
    if (known !== undefined && known !== phase) this.#put(run, phase);
  }

  delete(run: LiveRun): void {
    this.#put(run, undefined);
  }

  clear(): void {
    this.#phases.clear();
    this.#counts.clear();
  }

  /** `runs` are all those in memory, between two steps. Throws InvariantBroken. */
  assertInvariants(runs: Iterable<LiveRun>): void {
    let count = 0;
    for (const run of runs) {
      count += 1;
      const facts = (): Record<string, unknown> => ({ run: run.id, counted: this.#phases.get(run) });
      invariant(
        'PHASES-1',
        this.#phases.get(run) === phaseOf(run),
        'a run counts in another phase than its own',
        facts,
      );
    }
    const counted = [...this.#counts.values()].reduce((sum, each) => sum + each, 0);
    const facts = (): Record<string, unknown> => ({ runs: count, counted });
    invariant('PHASES-1', counted === count && this.#phases.size === count, 'runs count that are not in memory', facts);
  }

  #put(run: LiveRun, phase: RunPhase | undefined): void {
    const known = this.#phases.get(run);
    if (known !== undefined) this.#count(known, -1);
    if (phase === undefined) this.#phases.delete(run);
    else {
      this.#phases.set(run, phase);
      this.#count(phase, 1);
    }
  }

  #count(phase: RunPhase, by: number): void {
    this.#counts.set(phase, (this.#counts.get(phase) ?? 0) + by);
  }
}

function phaseOf({ state }: LiveRun): RunPhase {
  if (isEnded(state.status)) return 'ending';
  return state.status === 'RUNNING' ? 'running' : 'queued';
}
