/**
 * What reruns take over from their parents (P30): told to the rerun a commit at a time, so that one run's outputs hold up nobody
 * else's commits. Owns who waits for its parent to be read again after a take-over; keys take turns there.
 *
 *  ADOPTIONS-1 A rerun in memory that is not complete has a part of what it takes over in a commit to come, or waits for its parent here.
 *  ADOPTIONS-2 A parent is read as it stood at the version that `run_created` names, whoever reads it.
 *  ADOPTIONS-3 What is known of reruns is known of those in memory: a parent may stay for years, and be repeated every day.
 *  ADOPTIONS-4 Of those that wait for their parents keys take turns.
 */
import { FairQueue } from '@penstock/async';
import {
  adoptionsOf,
  isAdopting,
  isEnded,
  planOf,
  type RepeatedRun,
  type RunCommand,
  type RunId,
  type TakenStage,
} from '@penstock/run';
import { invariant } from '../run/invariant.ts';
import { foldRun, type LiveRun } from '../run/live-run.ts';
import type { CommitCycle } from './commit-cycle.ts';
import type { Parents } from './parents.ts';

/** Parents that are asked for in one tick. */
const PARENTS_AT_ONCE = 20;

export interface AdoptionsHost {
  readonly parents: Pick<Parents, 'read'>;
  readonly cycle: Pick<CommitCycle, 'whenAllCommitted'>;
  /** Whether it is in memory still. */
  has(run: LiveRun): boolean;
  /** Tells the run's machine, at the present time. */
  decide(run: LiveRun, command: RunCommand): void;
  at(run: LiveRun): number;
  /** Something may follow from what was decided. */
  advance(): void;
}

export class Adoptions {
  readonly #host: AdoptionsHost;
  /** Not asked for yet, or not answered well. */
  readonly #waiting = new Map<RunId, LiveRun>();
  /** Those among them whose turn it is; some may have left. */
  readonly #turns = new FairQueue<RunId>(Infinity, Infinity);
  /** By the run that they take over from: those that had not all of it when it was last looked at. */
  readonly #takers = new Map<RunId, Set<LiveRun>>();

  constructor(host: AdoptionsHost) {
    this.#host = host;
  }

  /** The first part is decided now, the others once the one before is committed. */
  begin(run: LiveRun, lists: readonly (readonly TakenStage[])[]): void {
    const { cycle, has, decide, at } = this.#host;
    if (!has(run)) return;
    this.#takes(run);
    const [stages, ...rest] = lists;
    if (stages === undefined || run.ended) return;
    decide(run, { type: 'adopt', at: at(run), stages });
    if (rest.length > 0) cycle.whenAllCommitted(() => this.begin(run, rest));
  }

  /** A run that a take-over has found. */
  found(run: LiveRun): void {
    if (!isAdopting(run.state)) return;
    this.#wait(run);
    this.#takes(run);
  }

  #wait(run: LiveRun): void {
    this.#waiting.set(run.id, run);
    this.#turns.add(run.state.key, run.id);
  }

  /** Whether a run that has not ended still takes over from this one, as committed: it is not deleted then (P34). */
  isTakenFrom(parent: RunId): boolean {
    const takers = this.#takers.get(parent);
    if (takers === undefined) return false;
    for (const run of takers) if (!this.#host.has(run) || !takesStill(run)) takers.delete(run);
    if (takers.size === 0) this.#takers.delete(parent);
    return takers.size > 0;
  }

  #takes(run: LiveRun): void {
    const parent = run.state.lineage?.parent;
    if (parent === undefined) return;
    const takers = this.#takers.get(parent);
    if (takers === undefined) this.#takers.set(parent, new Set([run]));
    else takers.add(run);
  }

  /** About every second, and at the end of a take-over: those that wait go on where they were. */
  goOn(): void {
    // What does not answer at once is asked for again by the next tick.
    for (let turns = this.#turns.size, left = PARENTS_AT_ONCE; turns > 0 && left > 0; turns -= 1) {
      const runId = this.#turns.next() ?? '';
      const run = this.#waiting.get(runId);
      if (run === undefined) continue;
      left -= 1;
      this.#waiting.delete(runId);
      this.#resume(run);
    }
  }

  /** The run leaves memory: it takes over nothing any more, or waits for what it has taken over to be executed. */
  forget(run: LiveRun): void {
    const parent = run.state.lineage?.parent;
    if (parent === undefined) return;
    this.#waiting.delete(run.id);
    const takers = this.#takers.get(parent);
    takers?.delete(run);
    if (takers?.size === 0) this.#takers.delete(parent);
  }

  /** Between two steps. Throws InvariantBroken. */
  assertInvariants(): void {
    for (const run of [this.#waiting.values(), ...this.#takers.values()].flatMap((runs) => [...runs]))
      invariant('ADOPTIONS-3', this.#host.has(run), 'a rerun that has left memory is kept', () => ({ run: run.id }));
  }

  clear(): void {
    this.#waiting.clear();
    this.#takers.clear();
  }

  #resume(run: LiveRun): void {
    const { parents, has, decide, at, advance } = this.#host;
    const { lineage } = run.state;
    if (lineage === undefined || !has(run) || !isAdopting(run.state)) return;
    parents.read(lineage.parent, run.state.key, (parent) => {
      if (!has(run) || !isAdopting(run.state)) return;
      if (parent === 'unavailable') {
        this.#wait(run);
        return;
      }
      const read = parent === null ? undefined : runAt(parent, lineage.version);
      const lists = read === undefined ? undefined : adoptionsOf(read, run.state);
      if (lists === undefined) decide(run, { type: 'lose-parent', at: at(run) });
      else this.begin(run, lists);
      advance();
    });
  }
}

/** Not all of it is committed, so that another owner would have to read on. */
function takesStill(run: LiveRun): boolean {
  const state = run.isCommitted ? run.state : run.committedState();
  return !isEnded(state.status) && isAdopting(state);
}

/** As it stood after so many of its events; undefined: it has not so many, or they mean nothing to this build. */
function runAt(parent: LiveRun, version: number): RepeatedRun | undefined {
  if (parent.committedVersion < version || parent.restoreError !== undefined) return undefined;
  const { id, definition, events } = parent;
  return { state: foldRun(id, planOf(definition), events, version), events: events.slice(0, version) };
}
