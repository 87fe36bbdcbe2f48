/** What must hold of deleted runs (P34), by the log and the store alone. */
import { isAdopting, isEnded, isSettled } from '@penstock/run';
import type { Commit } from '@penstock/scheduler/testing';
import type { SimStore } from '../world/store.ts';
import type { World } from '../world/world.ts';
import type { RunTruth } from './run-truth.ts';

export class DeletionRules {
  readonly #world: World;
  readonly #runs: ReadonlyMap<string, RunTruth>;
  readonly #deleted = new Map<string, { readonly partition: number; readonly sequence: number }>();

  constructor(world: World, runs: ReadonlyMap<string, RunTruth>) {
    this.#world = world;
    this.#runs = runs;
  }

  has(runId: string): boolean {
    return this.#deleted.has(runId);
  }

  /** Before the events of the commit's runs are applied: none of them may be of a run that is deleted. */
  committed(partition: number, { runs, deleted = [] }: Commit, sequence: number, disturbed: boolean): void {
    for (const { id } of runs) {
      this.#world.check(disturbed || !this.#deleted.has(id), 'P34', `events of run ${id}, which is deleted`);
      // Its deletion is lost with the end of the log.
      this.#deleted.delete(id);
    }
    for (const { id } of deleted) {
      if (!disturbed) this.#check(id);
      this.#deleted.set(id, { partition, sequence });
    }
  }

  /** Everything up to the checkpoint is in documents. */
  checkpointed(partition: number, sequence: number, { tombstones }: SimStore): void {
    for (const [id, deleted] of this.#deleted)
      this.#world.check(
        deleted.partition !== partition || deleted.sequence > sequence || tombstones.has(id),
        'P34',
        `the checkpoint of partition ${partition} at ${sequence} covers the deletion of run ${id}, whose document stands`,
      );
  }

  documented(runId: string): void {
    this.#world.check(!this.#deleted.has(runId), 'P34', `a document of run ${runId}, which is deleted`);
  }

  #check(id: string): void {
    const run = this.#runs.get(id);
    const fail = (holds: boolean, message: string): void =>
      this.#world.check(holds, 'P34', `run ${id} is deleted${message}`);
    fail(!this.#deleted.has(id), ' twice');
    fail(run !== undefined && isEnded(run.state.status) && isSettled(run.state), ' before it is closed');
    fail(run === undefined || run.storedVersion === run.events.length, ' before its end is stored');
    for (const { id: heir, state } of this.#runs.values())
      fail(
        state.lineage?.parent !== id || isEnded(state.status) || !isAdopting(state),
        `, and run ${heir} takes over from it`,
      );
  }
}
