/**
 * The runs that others repeat (P30): each is read at one version, from memory as far as it is committed, else from its document. Owns
 * who waits for which document.
 *
 *  PARENTS-1 What waits here is bounded, of which a key has its share, and its turns; what is over the bound, or cannot be read, is
 *     `unavailable`, to be asked again.
 *  PARENTS-2 `null` means that the run is nowhere: neither in memory, nor outside of it, nor in the store.
 */
import { FairQueue, FairRoom } from '@penstock/async';
import type { RunId } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';
import type { CommitCycle } from './commit-cycle.ts';
import type { Parking } from './parking.ts';

/** A document may be some ten MiB, and with its run twice that. */
const READS_AT_ONCE = 2;
/** Runs whose documents wait to be read. */
const READS = { shared: 100, own: 2 };
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
  readonly #asked = new Map<RunId, { readonly key: string; readonly askers: Asker[] }>();
  #toRead = new FairQueue<RunId>(Infinity, Infinity);
  #room = new FairRoom(READS);
  #reading = 0;

  constructor(host: ParentsHost) {
    this.#host = host;
  }

  /**
   * What is answered has at least what was decided about it by now, committed; it is not to be told anything. `key`: of the run
   * that repeats it.
   */
  read(runId: RunId, key: string, then: Asker): void {
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
        if (parked !== 'unavailable' && runs.has(runId)) this.read(runId, key, then);
        else then(parked);
      });
      return;
    }
    const asked = this.#asked.get(runId);
    if (asked === undefined ? !this.#room.take(key, 1) : asked.askers.length >= ASKERS_MAX) then('unavailable');
    else if (asked === undefined) {
      this.#asked.set(runId, { key, askers: [then] });
      this.#toRead.add(key, runId);
      this.#readOn();
    } else asked.askers.push(then);
  }

  /** Whether somebody waits for its document. */
  isReading(runId: RunId): boolean {
    return this.#asked.has(runId);
  }

  clear(): void {
    this.#asked.clear();
    this.#toRead = new FairQueue(Infinity, Infinity);
    this.#room = new FairRoom(READS);
  }

  #readOn(): void {
    while (this.#reading < READS_AT_ONCE) {
      const runId = this.#toRead.next();
      if (runId === undefined) return;
      this.#reading += 1;
      this.#host.readStored(runId, (parent) => {
        this.#reading -= 1;
        const asked = this.#asked.get(runId);
        this.#asked.delete(runId);
        if (asked !== undefined) this.#room.giveBack(asked.key, 1);
        for (const then of asked?.askers ?? []) then(parent);
        this.#readOn();
      });
    }
  }
}
