/**
 * Which ids of runs may be in use (P7): those of runs that have left memory are remembered for an hour, and of the others
 * their own time says whether the store has to be asked.
 */
import { RUN_ID_AHEAD_MS } from '@penstock/bus';
import { runIdTime, type RunId } from '@penstock/run';

/** Ids of runs seen are remembered this long. */
const REMEMBERED_MS = 60 * 60 * 1000;
/** About 30 MB; a partition that closes more runs in an hour asks the store about the ids of its older ones. */
const REMEMBERED_MAX = 200_000;

export class RememberedIds {
  /** Ids of runs that have left memory, and when, by the boot clock. */
  readonly #ids = new Map<RunId, number>();
  /** Ids that are younger than this cannot be an earlier owner's. */
  #ownFrom = Number.POSITIVE_INFINITY;
  /** The latest time in an id that is remembered no more: those up to here ask the store. */
  #forgottenTo = 0;

  /**
   * The partition is ours from now on. `neverOwned`: it had no owner before this one, so that no run of it can have been
   * closed: ids are then asked about only for their age. `idsTo`: the latest time in an id that an earlier owner has created,
   * whatever its clock said.
   */
  opened(now: number, earlier: { readonly neverOwned: boolean; readonly idsTo: number }): void {
    this.#ownFrom = earlier.neverOwned ? Number.NEGATIVE_INFINITY : Math.max(now + RUN_ID_AHEAD_MS, earlier.idsTo + 1);
  }

  has(runId: RunId): boolean {
    return this.#ids.has(runId);
  }

  /** Whether the store may have a run of this id, which is not in memory. */
  mayBeStored(runId: RunId, now: number): boolean {
    const born = runIdTime(runId);
    return this.#ids.has(runId) || born <= this.#forgottenTo || born < now - REMEMBERED_MS || born < this.#ownFrom;
  }

  remember(runId: RunId, boot: number): void {
    this.#ids.delete(runId);
    this.#ids.set(runId, boot);
  }

  forgetOld(boot: number): void {
    for (const [id, seenAt] of this.#ids) {
      if (seenAt >= boot - REMEMBERED_MS && this.#ids.size <= REMEMBERED_MAX) break;
      this.#ids.delete(id);
      // The time in an id may be ahead of ours, so that it is younger than the time for which it was remembered.
      this.#forgottenTo = Math.max(this.#forgottenTo, runIdTime(id));
    }
  }
}
