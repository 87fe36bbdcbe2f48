/**
 * Which runs have had stages on which runner, so that what happens to a runner costs as much as it has runs, and not as much as
 * there are runs; and the workspaces that are lost with a runner (P19), which are given up in slices.
 *
 *  RUNNERRUNS-1 A run in memory is known of each runner that it was granted to.
 *  RUNNERRUNS-2 A workspace is given up where its runner is away for longer than the grace, or is here without the labels of the stages
 *     that it is for.
 */
import type { RunEvent } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';

/** Runs looked at in one turn: 10 ms at the most where all of them have something to decide. */
const RUNS_AT_ONCE = 100;

export interface Runners {
  hasRunner(runner: string): boolean;
  /** Whether the runner is here, and none of its sessions has all of these labels any more. */
  lacks(runner: string, labels: readonly string[]): boolean;
}

interface Loss {
  readonly runner: string;
  readonly why: 'away' | 'labels';
  readonly left: Iterator<LiveRun>;
}

export class RunnerRuns {
  readonly #runners: Runners;
  readonly #runsOf = new Map<string, Set<LiveRun>>();
  readonly #runnersOf = new Map<LiveRun, string[]>();
  /** The session and labels that a runner was last seen with. */
  readonly #seen = new Map<string, string>();
  readonly #losses: Loss[] = [];

  constructor(runners: Runners) {
    this.#runners = runners;
  }

  /** Whether there are runs left to look at. */
  get isBusy(): boolean {
    return this.#losses.length > 0;
  }

  happened(run: LiveRun, events: readonly RunEvent[]): void {
    for (const event of events) if (event.type === 'stage_started') this.#add(run, event.runner);
  }

  forget(run: LiveRun): void {
    for (const runner of this.runnersOf(run)) {
      const runs = this.#runsOf.get(runner);
      runs?.delete(run);
      if (runs?.size === 0) this.#runsOf.delete(runner);
    }
    this.#runnersOf.delete(run);
  }

  runsOf(runner: string): Iterable<LiveRun> {
    return this.#runsOf.get(runner) ?? [];
  }

  runnersOf(run: LiveRun): readonly string[] {
    return this.#runnersOf.get(run) ?? [];
  }

  get names(): Iterable<string> {
    return this.#runsOf.keys();
  }

  /** A lease of the runner: one with another session or other labels than before may lack what its runs need. */
  seen(runner: string, session: string, labels: readonly string[]): void {
    const now = [session, ...labels].join('\n');
    if (this.#seen.get(runner) === now) return;
    this.#seen.set(runner, now);
    this.lookAtLabels(runner);
  }

  sessionLost(runner: string): void {
    this.lookAtLabels(runner);
    if (!this.#runners.hasRunner(runner)) this.#seen.delete(runner);
  }

  lookAtLabels(runner: string): void {
    if (this.#runners.hasRunner(runner)) this.#lose(runner, 'labels');
  }

  away(runner: string): void {
    this.#lose(runner, 'away');
  }

  /** Looks at the next runs; `lose` hears which of a run's workspaces are to be given up, by their sets of labels; undefined: all of that runner's. */
  lookOn(lose: (run: LiveRun, runner: string, labelSets: readonly string[] | undefined) => void): void {
    for (let left = RUNS_AT_ONCE; left > 0; left -= 1) {
      const [loss] = this.#losses;
      if (loss === undefined) return;
      const { runner, why } = loss;
      const next = why === 'away' && this.#runners.hasRunner(runner) ? undefined : loss.left.next();
      if (next === undefined || next.done === true) this.#losses.shift();
      else if (why === 'away') lose(next.value, runner, undefined);
      else {
        const labelSets = this.#lackingIn(next.value, runner);
        if (labelSets.length > 0) lose(next.value, runner, labelSets);
      }
    }
  }

  #lose(runner: string, why: Loss['why']): void {
    const runs = this.#runsOf.get(runner);
    if (runs === undefined) return;
    const known = this.#losses.findIndex((loss) => loss.runner === runner && loss.why === why);
    if (known >= 0) this.#losses.splice(known, 1);
    this.#losses.push({ runner, why, left: runs.values() });
  }

  #lackingIn({ plan, state }: LiveRun, runner: string): string[] {
    return Object.entries(state.workspaces).flatMap(([labelSet, holder]) => {
      if (holder !== runner) return [];
      const planned = plan.stages.find(
        (stage) => stage.labelSet === labelSet && stage.definition.workspace === 'shared',
      );
      const wanted = state.origin.trusted === false ? planned?.wanted.untrusted : planned?.wanted.trusted;
      return wanted !== undefined && this.#runners.lacks(runner, wanted.labels) ? [labelSet] : [];
    });
  }

  #add(run: LiveRun, runner: string): void {
    const known = this.#runnersOf.get(run);
    if (known?.includes(runner) === true) return;
    if (known === undefined) this.#runnersOf.set(run, [runner]);
    else known.push(runner);
    const runs = this.#runsOf.get(runner);
    if (runs === undefined) this.#runsOf.set(runner, new Set([run]));
    else runs.add(run);
  }
}
