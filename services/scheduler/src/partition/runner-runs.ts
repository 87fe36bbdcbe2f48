/**
 * Which runs have had stages on which runner, so that what happens to a runner costs as much as it has runs, and not as much as
 * there are runs; and what is lost with a session (P5) or a runner (P19), which is given up in slices.
 *
 *  RUNNERRUNS-1 A run in memory is known of each runner that it was granted to.
 *  RUNNERRUNS-2 A workspace is given up where its runner is away for longer than the grace, or is here without the labels of the stages
 *     that it is for.
 *  RUNNERRUNS-3 What is lost at one moment is looked at in turns: of tenants with runners of their own, and of everybody's runners.
 */
import { FairQueue } from '@penstock/async';
import type { RunEvent } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';
import { WideMap } from '../run/wide-map.ts';

/** Runs of lost sessions, most of which have no attempt of them any more. */
const LOOKS_AT_ONCE = 1_000;

export interface Runners {
  hasRunner(runner: string): boolean;
  /** Whether the runner is here, and none of its sessions has all of these labels any more. */
  lacks(runner: string, labels: readonly string[]): boolean;
  /** Whose alone the runner is; undefined: everybody's. */
  tenantOf(runner: string): string | undefined;
}

interface Loss {
  readonly runner: string;
  readonly why: 'away' | 'labels';
  readonly left: Iterator<LiveRun>;
}

interface LostSession {
  readonly session: string;
  readonly runner: string;
  readonly left: Iterator<LiveRun>;
}

export class RunnerRuns {
  readonly #runners: Runners;
  readonly #runsOf = new Map<string, Set<LiveRun>>();
  readonly #runnersOf = new WideMap<LiveRun, string[]>(({ id }) => id);
  /** The session and labels that a runner was last seen with. */
  readonly #seen = new Map<string, string>();
  /** By runner and cause: a new one stands for the one before, which is passed over in its turn. */
  readonly #losses = new Map<string, Loss>();
  readonly #lossTurns = new FairQueue<Loss>(Infinity, Infinity);
  readonly #lostSessions = new FairQueue<LostSession>(Infinity, Infinity);

  constructor(runners: Runners) {
    this.#runners = runners;
  }

  /** Whether there are runs left to look at. */
  get isBusy(): boolean {
    return this.#losses.size > 0 || this.#lostSessions.size > 0;
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

  sessionLost(session: string, runner: string): void {
    const runs = this.#runsOf.get(runner);
    if (runs !== undefined) this.#lostSessions.add(this.#turnOf(runner), { session, runner, left: runs.values() });
    this.lookAtLabels(runner);
    if (!this.#runners.hasRunner(runner)) this.#seen.delete(runner);
  }

  lookAtLabels(runner: string): void {
    if (this.#runners.hasRunner(runner)) this.#lose(runner, 'labels');
  }

  away(runner: string): void {
    this.#lose(runner, 'away');
  }

  /** Looks at the next runs of sessions that are over, until `lose` has said of so many that they lose something; of how many it has. */
  lookOnAtSessions(max: number, lose: (run: LiveRun, session: string) => boolean): number {
    let count = 0;
    for (let looks = 0; count < max && looks < LOOKS_AT_ONCE; looks++) {
      const lost = this.#lostSessions.next();
      if (lost === undefined) break;
      const { value, done } = lost.left.next();
      if (done === true) continue;
      this.#lostSessions.add(this.#turnOf(lost.runner), lost);
      if (lose(value, lost.session)) count += 1;
    }
    return count;
  }

  /** Looks at the next runs, at most so many; `lose` hears which of a run's workspaces are to be given up, by their sets of labels; undefined: all of that runner's. */
  lookOn(max: number, lose: (run: LiveRun, runner: string, labelSets: readonly string[] | undefined) => void): void {
    for (let left = max; left > 0; left -= 1) {
      const loss = this.#lossTurns.next();
      if (loss === undefined) return;
      const { runner, why } = loss;
      if (this.#losses.get(nameOf(loss)) !== loss) continue;
      const next = why === 'away' && this.#runners.hasRunner(runner) ? undefined : loss.left.next();
      if (next === undefined || next.done === true) {
        this.#losses.delete(nameOf(loss));
        continue;
      }
      this.#lossTurns.add(this.#turnOf(runner), loss);
      if (why === 'away') lose(next.value, runner, undefined);
      else {
        const labelSets = this.#lackingIn(next.value, runner);
        if (labelSets.length > 0) lose(next.value, runner, labelSets);
      }
    }
  }

  #lose(runner: string, why: Loss['why']): void {
    const runs = this.#runsOf.get(runner);
    if (runs === undefined) return;
    const loss = { runner, why, left: runs.values() };
    this.#losses.set(nameOf(loss), loss);
    this.#lossTurns.add(this.#turnOf(runner), loss);
  }

  /** Runners of one tenant have a turn together; each of the others has its own. */
  #turnOf(runner: string): string {
    const tenant = this.#runners.tenantOf(runner);
    return tenant === undefined ? `runner ${runner}` : `tenant ${tenant}`;
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

function nameOf({ runner, why }: Pick<Loss, 'runner' | 'why'>): string {
  return `${why} ${runner}`;
}
