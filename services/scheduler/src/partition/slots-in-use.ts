/**
 * The slots that the runs of this partition have, told to the dispatch, which shares slots between keys (DISPATCH-5). It owns which
 * attempt has a slot of which runner.
 *
 *  SLOTSINUSE-1 A run has here the live attempts that its state has.
 */
import type { RunEvent } from '@penstock/run';
import type { KeySlots, SlotsHolder } from '../dispatch/key-slots.ts';
import { invariant } from '../run/invariant.ts';
import type { LiveRun } from '../run/live-run.ts';
import { StageMap } from '../run/stage-map.ts';

export class SlotsInUse {
  readonly #keySlots: KeySlots;
  #holder: SlotsHolder = { isGone: false };
  /** Of stages with live attempts. */
  readonly #runnerOf = new StageMap<string>();

  constructor(keySlots: KeySlots) {
    this.#keySlots = keySlots;
  }

  restore(run: LiveRun): void {
    if (run.state.liveAttempts === 0) return;
    for (const { name, live } of run.state.stages) if (live !== undefined) this.#begin(run, name, live.runner);
  }

  happened(run: LiveRun, events: readonly RunEvent[]): void {
    for (const event of events) {
      switch (event.type) {
        case 'stage_started':
          this.#begin(run, event.stage, event.runner);
          break;
        case 'stage_returned':
        case 'stage_retrying':
        case 'attempt_gone':
          this.#end(run, event.stage);
          break;
        case 'stage_completed':
          if (event.attempt > 0) this.#end(run, event.stage);
          break;
        default:
      }
    }
  }

  /** The partition is another's now, with all runs of its keys: at once, however many there are. */
  clear(): void {
    this.#keySlots.gone(this.#holder);
    this.#holder = { isGone: false };
    this.#runnerOf.clear();
  }

  assertInvariants(runs: Iterable<LiveRun>): void {
    for (const run of runs) {
      const known = this.#runnerOf.count(run);
      const { liveAttempts } = run.state;
      // Most runs have none, and there may be ten thousand.
      if (known === liveAttempts) continue;
      invariant('SLOTSINUSE-1', false, 'the slots of a run are not its live attempts', () => ({
        run: run.id,
        known,
        liveAttempts,
      }));
    }
  }

  #begin(run: LiveRun, stage: string, runner: string): void {
    this.#runnerOf.set(run, stage, runner);
    this.#keySlots.add(run.state.key, runner, 1, this.#holder);
  }

  #end(run: LiveRun, stage: string): void {
    const runner = this.#runnerOf.get(run, stage);
    if (runner === undefined) return;
    this.#runnerOf.delete(run, stage);
    this.#keySlots.add(run.state.key, runner, -1, this.#holder);
  }
}
