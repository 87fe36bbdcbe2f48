/** What must hold of the runs of pull requests (P27), derived from the log alone. */
import { isEnded, type RunEvent, type RunState } from '@penstock/run';
import type { Commit } from '@penstock/scheduler/testing';
import type { CreateRequest } from '@penstock/bus';
import { HELD_MAX } from '../world/profile.ts';
import type { World } from '../world/world.ts';
import type { RunTruth } from './run-truth.ts';

/** What can happen to a run that waits for its approval. */
const WHILE_HELD: ReadonlySet<RunEvent['type']> = new Set([
  'run_approved',
  'stages_skipped',
  'run_completed',
  'run_cancelled',
  'run_quarantined',
]);

type Fail = (rule: string, message: string) => void;

export function checkApproval({ state }: { readonly state: RunState }, event: RunEvent, fail: Fail): void {
  const waits = state.awaitsApproval === true;
  if (waits && !WHILE_HELD.has(event.type)) fail('P27', `${event.type} before anybody has approved it`);
  if (!waits && event.type === 'run_approved') fail('P27', 'is approved, and did not wait for it');
}

export class PullRules {
  readonly #world: World;
  readonly #runs: ReadonlyMap<string, RunTruth>;
  readonly #requestOf: (runId: string) => CreateRequest | undefined;
  /** In the order of the log. */
  readonly #created: RunTruth[] = [];

  constructor(
    world: World,
    runs: ReadonlyMap<string, RunTruth>,
    requestOf: (runId: string) => CreateRequest | undefined,
  ) {
    this.#world = world;
    this.#runs = runs;
    this.#requestOf = requestOf;
  }

  /** A commit is at its end, which is one step. */
  checkStep({ runs }: Commit, disturbed: boolean): void {
    const heads = runs.flatMap(({ id, from }) => (from === 1 ? (this.#runs.get(id) ?? []) : []));
    for (const run of heads) {
      if (run.state.origin.pullRequest === undefined) continue;
      if (!disturbed) this.#checkCreated(run);
      this.#created.push(run);
    }
    if (disturbed) return;
    for (const run of heads) this.#checkWaiting(run);
  }

  #checkCreated(run: RunTruth): void {
    const world = this.#world;
    const { origin } = run.state;
    const [created] = run.events;
    const counts = created?.type === 'run_created' && created.runOfMonth !== undefined;
    const isOver = run.events.some(({ type }) => type === 'run_cancelled') && run.state.stages.length === 0;
    if (created?.type === 'run_created' && created.held !== undefined) {
      world.mark('run held for its approval');
      world.check(!counts, 'P27', `run ${run.id} counts, and is held`);
    }
    const sequence = origin.pullRequest?.sequence;
    if (sequence === undefined) {
      world.check(isOver && !counts, 'P27', `run ${run.id} goes on, or counts, and is not of the head`);
      return;
    }
    const others = this.#headsOf(run);
    const newest = others.toSorted((a, b) => sequenceOf(b) - sequenceOf(a))[0];
    if (newest !== undefined && sequenceOf(newest) > sequence && newest.state.origin.commit !== origin.commit) {
      world.mark('head created behind a newer one');
      world.check(
        isOver && !counts,
        'P27',
        `run ${run.id} goes on, or counts, behind the newer head of run ${newest.id}`,
      );
      return;
    }
    if (this.#requestOf(run.id)?.keepsSuperseded === true) return;
    const older = others.filter((other) => sequenceOf(other) < sequence && other.state.origin.commit !== origin.commit);
    if (older.length > 0) world.mark('head superseded');
    const left = older.find((other) => !isEnded(other.state.status));
    world.check(left === undefined, 'P27', `run ${left?.id ?? ''} goes on, of a head older than that of run ${run.id}`);
  }

  /** Of the same pull request. */
  #headsOf({ state }: RunTruth): RunTruth[] {
    return this.#created.filter(
      (other) =>
        this.#runs.get(other.id) === other &&
        other.state.key === state.key &&
        other.state.origin.ref === state.origin.ref &&
        other.state.origin.pullRequest?.sequence !== undefined,
    );
  }

  #checkWaiting({ state }: RunTruth): void {
    const waiting = this.#created.filter(
      (run) => this.#runs.get(run.id) === run && run.state.key === state.key && run.state.awaitsApproval === true,
    );
    this.#world.check(waiting.length <= HELD_MAX, 'P27', `${waiting.length} runs of a repository wait for an approval`);
  }
}

function sequenceOf({ state }: RunTruth): number {
  return state.origin.pullRequest?.sequence ?? 0;
}
