/** The turns of runs that share a concurrency group: nobody is granted before the first of it has settled. */
import { isSettled } from '@penstock/run';
import type { Commit } from '@penstock/scheduler/testing';
import type { World } from '../world/world.ts';
import { byTurn } from './quota-rules.ts';
import type { RunTruth } from './run-truth.ts';

export class GroupRules {
  readonly #world: World;
  readonly #runs: ReadonlyMap<string, RunTruth>;
  /** Runs that have not settled, by group, in the order of their creation. */
  readonly #groups = new Map<string, string[]>();

  constructor(world: World, runs: ReadonlyMap<string, RunTruth>) {
    this.#world = world;
    this.#runs = runs;
  }

  join(run: RunTruth): void {
    this.#of(run).push(run.id);
  }

  leave(run: RunTruth): void {
    if (run.state.group === undefined) return;
    const members = this.#of(run);
    const index = members.indexOf(run.id);
    if (index >= 0) members.splice(index, 1);
  }

  isFirst(run: RunTruth): boolean {
    return this.#of(run)[0] === run.id;
  }

  /** A commit has its runs in the order in which it first heard of them: those that it adds to a group stand in it by their turns. */
  order(commit: Commit): void {
    const joined = commit.runs
      .filter(({ events }) => events.some(({ type }) => type === 'run_created' || type === 'run_approved'))
      .flatMap(({ id }) => this.#runs.get(id) ?? [])
      .toSorted(byTurn);
    for (const run of joined) {
      const members = this.#of(run);
      const index = members.indexOf(run.id);
      if (index >= 0) members.push(...members.splice(index, 1));
    }
  }

  /** A commit is one step, in whatever order its runs stand in it. */
  checkTurns(commit: Commit): void {
    for (const { id, events } of commit.runs) {
      const run = this.#runs.get(id);
      if (
        run?.state.group === undefined ||
        isSettled(run.state) ||
        !events.some(({ type }) => type === 'stage_started' || type === 'gates_queued')
      )
        continue;
      this.#world.check(
        this.isFirst(run),
        'groups',
        `run ${id} is granted before its turn in group ${run.state.group}`,
      );
    }
  }

  #of(run: RunTruth): string[] {
    const id = `${run.state.key}\n${run.state.group ?? ''}`;
    let members = this.#groups.get(id);
    if (members === undefined) this.#groups.set(id, (members = []));
    return members;
  }
}
