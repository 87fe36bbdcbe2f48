/** What holds between two steps of a partition: of all its runs, or of some of them at a time. Owns where the samples stand. */
import type { RunId } from '@penstock/run';
import type { ConcurrencySlots } from '../admission/concurrency-slots.ts';
import type { KeyCounts } from '../admission/key-counts.ts';
import type { PullRequests } from '../admission/pull-requests.ts';
import type { LiveRun } from '../run/live-run.ts';
import type { RunPhases } from '../run/run-phases.ts';
import type { Adoptions } from './adoptions.ts';
import type { CommitCycle } from './commit-cycle.ts';
import type { Parking } from './parking.ts';
import type { SlotsInUse } from './slots-in-use.ts';

/** Of so many runs all invariants are looked at in a few milliseconds. */
const SAMPLED_RUNS = 500;

export interface PartitionInvariantsHost {
  readonly runs: ReadonlyMap<RunId, LiveRun>;
  readonly slots: Pick<ConcurrencySlots, 'assertInvariants' | 'assertRuns'>;
  readonly counts: Pick<KeyCounts, 'assertInvariants' | 'assertRuns'>;
  readonly slotsInUse: Pick<SlotsInUse, 'assertInvariants'>;
  readonly pulls: Pick<PullRequests, 'assertInvariants'>;
  readonly phases: Pick<RunPhases, 'assertInvariants'>;
  readonly cycle: Pick<CommitCycle, 'assertInvariants'>;
  readonly parking: Pick<Parking, 'assertInvariants'>;
  readonly adoptions: Pick<Adoptions, 'assertInvariants'>;
}

export class PartitionInvariants {
  readonly #host: PartitionInvariantsHost;
  #sampled: Iterator<LiveRun> | undefined;

  constructor(host: PartitionInvariantsHost) {
    this.#host = host;
  }

  /** Throws InvariantBroken. */
  assertAll(): void {
    const { slots, counts, slotsInUse, pulls, phases, cycle, parking, adoptions } = this.#host;
    const runs = [...this.#host.runs.values()];
    slots.assertInvariants(runs);
    counts.assertInvariants(runs);
    slotsInUse.assertInvariants(runs);
    pulls.assertInvariants(runs);
    phases.assertInvariants(runs);
    cycle.assertInvariants(runs);
    parking.assertInvariants((runId) => this.#host.runs.has(runId));
    adoptions.assertInvariants();
  }

  /** The same of some of the runs, where all of them are more than one turn is for. */
  assertSample(): void {
    const { slots, counts, cycle } = this.#host;
    if (this.#host.runs.size <= SAMPLED_RUNS) {
      this.assertAll();
      return;
    }
    const runs: LiveRun[] = [];
    while (runs.length < SAMPLED_RUNS) {
      this.#sampled ??= this.#host.runs.values();
      const { value, done } = this.#sampled.next();
      if (done === true) {
        this.#sampled = undefined;
        break;
      }
      runs.push(value);
    }
    slots.assertRuns(runs);
    counts.assertRuns(runs);
    cycle.assertInvariants(runs);
  }
}
