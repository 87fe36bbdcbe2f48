/**
 * The runs that others repeat (P30): each is read at one version, from memory as far as it is committed, else from its document. Owns
 * who waits for which document.
 *
 *  PARENTS-1 What waits here is bounded; what is over the bound, or cannot be read, is `unavailable`, to be asked again.
 *  PARENTS-2 `null` means that the run is nowhere: neither in memory, nor outside of it, nor in the store.
 */
import type { RunId } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';
import type { CommitCycle } from './commit-cycle.ts';
import type { Parking } from './parking.ts';

/** A document may be some ten MiB, and with its run twice that. */
const READS_AT_ONCE = 2;
/** Runs whose documents wait to be read. */
const READS_MAX = 100;
/** Askers of one of them. */
const ASKERS_MAX = 100;

export type ReadParent = LiveRun | null | 'unavailable';
type Asker = (parent: ReadParent) => void;

export interface ParentsHost {
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly parking: Pick<Parking, 'find' | 'read'>;
  readonly cycle: Pick<CommitCycle, 'whenCommitted' | 'whenAllCommitted'>;
  /** Whether it is decided that the run is deleted. */
  isDeleted(runId: RunId): boolean;
  /** The run as its document has it; null: there is none. Answers as the ports do. */
  readStored(runId: RunId, then: Asker): void;
}

export class Parents {
  readonly #host: ParentsHost;
  readonly #asked = new Map<RunId, Asker[]>();
  readonly #toRead: RunId[] = [];
  #reading = 0;

  constructor(host: ParentsHost) {
    this.#host = host;
  }

  /** What is answered has at least what was decided about it by now, committed; it is not to be told anything. */
  read(runId: RunId, then: Asker): void {
    const { runs, parking, cycle, isDeleted } = this.#host;
    if (isDeleted(runId)) {
      cycle.whenAllCommitted(() => then(null));
      return;
    }
    const run = runs.get(runId);
    if (run !== undefined) {
      cycle.whenCommitted(run, () => then(run));
      return;
    }
    if (parking.find(runId) !== undefined) {
      parking.read(runId, (parked) => {
        // It may be back by now, and more than what was read.
        if (parked !== 'unavailable' && runs.has(runId)) this.read(runId, then);
        else then(parked);
      });
      return;
    }
    const asked = this.#asked.get(runId);
    if (asked === undefined && this.#asked.size < READS_MAX) {
      this.#asked.set(runId, [then]);
      this.#toRead.push(runId);
      this.#readOn();
    } else if (asked !== undefined && asked.length < ASKERS_MAX) asked.push(then);
    else then('unavailable');
  }

  /** Whether somebody waits for its document. */
  isReading(runId: RunId): boolean {
    return this.#asked.has(runId);
  }

  clear(): void {
    this.#asked.clear();
    this.#toRead.length = 0;
  }

  #readOn(): void {
    while (this.#reading < READS_AT_ONCE) {
      const runId = this.#toRead.shift();
      if (runId === undefined) return;
      this.#reading += 1;
      this.#host.readStored(runId, (parent) => {
        this.#reading -= 1;
        const asked = this.#asked.get(runId) ?? [];
        this.#asked.delete(runId);
        for (const then of asked) then(parent);
        this.#readOn();
      });
    }
  }
}
