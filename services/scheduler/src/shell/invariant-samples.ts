/**
 * Invariants in production: now and then one partition's, and those of the dispatch, in turn. A broken one is logged with
 * its facts and counted, and never stops a tick: its runs are better served by a partition that goes on.
 */
import type { Log } from '@penstock/telemetry/log';

/** Ticks between two looks. */
const EVERY_TICKS = 10;

export interface Invariants {
  /** Some of what there is to look at where that is much: a few milliseconds' worth, the next time others. */
  sampleInvariants(): void;
}

export class InvariantSamples {
  readonly #log: Pick<Log, 'error'>;
  #ticks = 0;
  #broken = 0;

  constructor(log: Pick<Log, 'error'>) {
    this.#log = log;
  }

  /** How many looks have found one broken. */
  get broken(): number {
    return this.#broken;
  }

  /** Called at every tick with all that has invariants; every tenth looks at the next of them. */
  tick(all: readonly Invariants[]): void {
    this.#ticks += 1;
    if (this.#ticks % EVERY_TICKS !== 0) return;
    try {
      all[(this.#ticks / EVERY_TICKS) % all.length]?.sampleInvariants();
    } catch (error) {
      this.#broken += 1;
      this.#log.error(
        { err: error, broken: this.#broken },
        'an invariant of the scheduler is broken, and the scheduler goes on; unless the journal has lost its end in a power cut, report this as a fault of Penstock',
      );
    }
  }
}
