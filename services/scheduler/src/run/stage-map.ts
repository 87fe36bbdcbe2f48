/**
 * Something of single stages of very many runs. Nearly every run has one such stage at a time: that takes an entry, and no map of
 * its own.
 *
 *  STAGEMAP-1 Of each stage of each run there is what was set last, until it is deleted. The order of all is nobody's business.
 */
import type { LiveRun } from './live-run.ts';
import { WideMap } from './wide-map.ts';

class Only<T> {
  readonly stage: string;
  value: T;

  constructor(stage: string, value: T) {
    this.stage = stage;
    this.value = value;
  }
}

type Of = Pick<LiveRun, 'id'>;

export class StageMap<T> {
  readonly #runs = new WideMap<Of, Only<T> | Map<string, T>>(({ id }) => id);

  get(run: Of, stage: string): T | undefined {
    const found = this.#runs.get(run);
    if (!(found instanceof Only)) return found?.get(stage);
    return found.stage === stage ? found.value : undefined;
  }

  /** How many stages of the run have something here. */
  count(run: Of): number {
    const found = this.#runs.get(run);
    if (found === undefined) return 0;
    return found instanceof Only ? 1 : found.size;
  }

  set(run: Of, stage: string, value: T): void {
    const found = this.#runs.get(run);
    if (found === undefined) this.#runs.set(run, new Only(stage, value));
    else if (!(found instanceof Only)) found.set(stage, value);
    else if (found.stage === stage) found.value = value;
    else {
      const more = new Map([
        [found.stage, found.value],
        [stage, value],
      ]);
      this.#runs.set(run, more);
    }
  }

  delete(run: Of, stage: string): void {
    const found = this.#runs.get(run);
    if (found instanceof Only) {
      if (found.stage === stage) this.#runs.delete(run);
      return;
    }
    if (found?.delete(stage) === true && found.size === 0) this.#runs.delete(run);
  }

  /** The one that is at hand may be deleted meanwhile. */
  *values(): Generator<T, void> {
    for (const found of this.#runs.values())
      if (found instanceof Only) yield found.value;
      else yield* found.values();
  }

  clear(): void {
    this.#runs.clear();
  }
}
