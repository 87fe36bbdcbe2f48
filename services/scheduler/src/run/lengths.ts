/**
 * How long runs and stages take: medians of the last twenty of each, and what is executed now. Owns these windows, shared by the
 * partitions of a scheduler, and kept in memory alone: a new owner knows nothing until something has ended.
 *
 *  LENGTHS-1 What is asked or told takes the same time, however many runs there are.
 *  LENGTHS-2 An attempt is among the running ones from its grant to its end, or until its partition is another's.
 */
import type { RunEvent } from '@penstock/run';
import type { LiveRun } from './live-run.ts';
import { StageMap } from './stage-map.ts';

const WINDOW = 20;
/** Of so few times between two grants no pace is made. */
const PACE_GAPS_MIN = 5;
/** Windows kept; the one that was asked or told of longest ago goes first. Each is some hundred bytes. */
const WINDOWS_MAX = 20_000;
/** Running attempts of a runner that are looked at for one answer. */
const RUNNING_LOOKED_AT_MAX = 1_000;

export interface RunningAttempt {
  /** Of its window. */
  readonly name: string;
  /** By the boot clock. */
  readonly beganAt: number;
}

/** The same as its partition has it: a name of its own for each would be most of what it takes. */
class Running implements RunningAttempt {
  readonly run: LiveRun;
  readonly stage: string;
  readonly runner: string;
  readonly beganAt: number;

  constructor(run: LiveRun, stage: string, runner: string, beganAt: number) {
    this.run = run;
    this.stage = stage;
    this.runner = runner;
    this.beganAt = beganAt;
  }

  get name(): string {
    return stageLengthName(this.run, this.stage);
  }
}

export class Lengths {
  /** The newest values of each name, oldest first. */
  readonly #windows = new Map<string, number[]>();
  /** Of each runner, a set for each partition that has granted it something: a partition that is another's takes its own with it. */
  readonly #running = new Map<string, Set<ReadonlySet<RunningAttempt>>>();
  /** Of each key, when a stage of it was granted last, and the times between two grants while others of it waited. */
  readonly #paces = new Map<string, { readonly lastAt: number; readonly gapsMs: readonly number[] }>();

  add(name: string, ms: number): void {
    const window = this.#windows.get(name) ?? [];
    this.#windows.delete(name);
    this.#windows.set(name, window);
    window.push(Math.max(0, ms));
    if (window.length > WINDOW) window.shift();
    if (this.#windows.size <= WINDOWS_MAX) return;
    const [oldest] = this.#windows.keys();
    if (oldest !== undefined) this.#windows.delete(oldest);
  }

  /** Undefined: nothing of the name has ended. */
  median(name: string): number | undefined {
    return medianOf(this.#windows.get(name) ?? []);
  }

  /**
   * How long something still takes that has taken so much: the median of those that took longer. What takes longer than all of
   * them may end at any moment. Undefined: nothing of the name has ended.
   */
  remaining(name: string, ageMs: number): number | undefined {
    const window = this.#windows.get(name) ?? [];
    const longer = medianOf(window.filter((ms) => ms > ageMs));
    if (longer !== undefined) return longer - ageMs;
    return window.length === 0 ? undefined : 0;
  }

  /** The same of what is executed, by any stage's lengths where its own are not known. */
  remainingOf({ name, beganAt }: RunningAttempt, boot: number): number | undefined {
    const ageMs = Math.max(0, boot - beganAt);
    return this.remaining(name, ageMs) ?? this.remaining(ANY_STAGE, ageMs);
  }

  /** A stage of the key goes to a runner, after it has waited for so long. */
  granted(key: string, waitedMs: number, boot: number): void {
    const pace = this.#paces.get(key);
    this.#paces.delete(key);
    const gapMs = pace === undefined ? Infinity : boot - pace.lastAt;
    // Else none of the key waited for some of the time in between.
    const gaps = [...(pace?.gapsMs ?? []), ...(waitedMs >= gapMs ? [gapMs] : [])].slice(-WINDOW);
    this.#paces.set(key, { lastAt: boot, gapsMs: gaps });
    if (this.#paces.size <= WINDOWS_MAX) return;
    const [oldest] = this.#paces.keys();
    if (oldest !== undefined) this.#paces.delete(oldest);
  }

  /** At the pace at which stages of the key were granted last while others of it waited: until so many more are. */
  pacedMs(key: string, grants: number, boot: number): number | undefined {
    const pace = this.#paces.get(key);
    if (pace === undefined || pace.gapsMs.length < PACE_GAPS_MIN) return undefined;
    const gapMs = pace.gapsMs.reduce((sum, ms) => sum + ms, 0) / pace.gapsMs.length;
    return Math.max(0, grants * gapMs - (boot - pace.lastAt));
  }

  /** What the runner executes for one partition, as it changes. */
  runs(runner: string, attempts: ReadonlySet<RunningAttempt>): void {
    const running = this.#running.get(runner);
    if (running === undefined) this.#running.set(runner, new Set([attempts]));
    else running.add(attempts);
  }

  /** It executes none of them any more. */
  runsNoMore(runner: string, attempts: ReadonlySet<RunningAttempt>): void {
    const running = this.#running.get(runner);
    running?.delete(attempts);
    if (running?.size === 0) this.#running.delete(runner);
  }

  /** What is executed by these runners, as far as this scheduler has granted it. */
  runningOn(runners: Iterable<string>): RunningAttempt[] {
    const found: RunningAttempt[] = [];
    for (const runner of runners)
      for (const attempts of this.#running.get(runner) ?? [])
        for (const attempt of attempts) {
          found.push(attempt);
          if (found.length === RUNNING_LOOKED_AT_MAX) return found;
        }
    return found;
  }
}

function medianOf(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Any stage of anybody: what is expected of those whose own lengths are not known. */
export const ANY_STAGE = 'stage';

export function stageLengthName({ state }: Pick<LiveRun, 'state'>, stage: string): string {
  return JSON.stringify([state.key, state.pipelineName, stage]);
}

export function runLengthName({ key, pipelineName }: { readonly key: string; readonly pipelineName: string }): string {
  return JSON.stringify([key, pipelineName]);
}

/** What one partition tells of its runs. */
export class RunLengths {
  readonly #lengths: Lengths;
  readonly #attempts = new StageMap<Running>();
  readonly #onRunner = new Map<string, Set<Running>>();

  constructor(lengths: Lengths) {
    this.#lengths = lengths;
  }

  restore(run: LiveRun, now: { readonly wall: number; readonly boot: number }): void {
    if (!run.ended && !run.state.held) run.beganAt = now.boot - Math.max(0, now.wall - run.state.createdAt);
    if (run.state.liveAttempts === 0) return;
    for (const { name, live } of run.state.stages.touched())
      if (live !== undefined) this.#begin(run, name, live.runner, now.boot - Math.max(0, now.wall - live.startedAt));
  }

  happened(run: LiveRun, events: readonly RunEvent[], boot: number): void {
    for (const event of events) {
      switch (event.type) {
        case 'run_created':
        case 'run_admitted':
        case 'run_approved':
          if (!run.state.held) run.beganAt = boot;
          break;
        case 'stage_started':
          this.#begin(run, event.stage, event.runner, boot);
          this.#lengths.granted(run.state.key, event.at - queuedAt(run, event.stage, event.at), boot);
          break;
        case 'stage_returned':
        case 'stage_retrying':
        case 'attempt_gone':
          this.#end(run, event.stage);
          break;
        case 'stage_completed': {
          const began = event.attempt > 0 ? this.#end(run, event.stage) : undefined;
          if (began === undefined || (event.status !== 'SUCCESS' && event.status !== 'FAILED')) break;
          this.#lengths.add(stageLengthName(run, event.stage), boot - began);
          this.#lengths.add(ANY_STAGE, boot - began);
          break;
        }
        case 'run_completed': {
          if (run.beganAt !== undefined && (event.status === 'SUCCESS' || event.status === 'FAILED'))
            this.#lengths.add(runLengthName(run.state), boot - run.beganAt);
          break;
        }
        default:
      }
    }
  }

  /** The partition is another's now: a look at each runner, however many attempts it has. */
  clear(): void {
    for (const [runner, attempts] of this.#onRunner) this.#lengths.runsNoMore(runner, attempts);
    this.#onRunner.clear();
    this.#attempts.clear();
  }

  #begin(run: LiveRun, stage: string, runner: string, beganAt: number): void {
    const attempt = new Running(run, stage, runner, beganAt);
    this.#attempts.set(run, stage, attempt);
    let onRunner = this.#onRunner.get(runner);
    if (onRunner === undefined) {
      this.#onRunner.set(runner, (onRunner = new Set()));
      this.#lengths.runs(runner, onRunner);
    }
    onRunner.add(attempt);
  }

  /** Since when it was executed. */
  #end(run: LiveRun, stage: string): number | undefined {
    const known = this.#attempts.get(run, stage);
    if (known === undefined) return undefined;
    this.#attempts.delete(run, stage);
    const onRunner = this.#onRunner.get(known.runner);
    onRunner?.delete(known);
    if (onRunner?.size === 0) {
      this.#onRunner.delete(known.runner);
      this.#lengths.runsNoMore(known.runner, onRunner);
    }
    return known.beganAt;
  }
}

/** By the wall clock. */
function queuedAt({ plan, state }: LiveRun, stage: string, at: number): number {
  return state.stages.get(plan.indexOf.get(stage) ?? -1)?.queuedAt ?? at;
}
