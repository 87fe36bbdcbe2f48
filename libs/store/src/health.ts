/** A pipeline's health: what the newest runs of one name say about it. Pure. */
import { isLoss, judge, type RunView, type StageView } from '@penstock/run';
import { isTrusted, sameAsOf } from './run-documents.ts';

export interface PipelineHealth {
  readonly pipelineName: string;
  /** All runs of the window, those that have not ended included. */
  readonly totalRuns: number;
  readonly succeeded: number;
  /** Ended FAILED, interrupted ones not among them. */
  readonly failed: number;
  readonly interrupted: number;
  /** Ended with the verdict `infrastructure`; they are among the failed. */
  readonly infrastructure: number;
  /** Passed, after a retry or where an older run of the window, of the same commit and definition, had failed; they are among the succeeded. */
  readonly flaky: number;
  /** From creation to end, of the runs that succeeded or failed; 0 where there is none. */
  readonly p50DurationSecs: number;
  readonly p95DurationSecs: number;
  /** Succeeded of all that have ended, 0 to 1; 0 where none has. */
  readonly successRate: number;
  readonly flakyStages: readonly string[];
  /** In the order of their first appearance, newest run first. */
  readonly stages: readonly StageHealth[];
}

interface StageHealth {
  readonly name: string;
  /** In how many runs of the window it succeeded or failed. */
  readonly runs: number;
  /** Whatever the reason was: a stage whose runner was lost has failed as well. */
  readonly failures: number;
  /** Of the runs in which its commands came to an end of their own, from the first start to the end, retries included; 0 where there is none. */
  readonly avgDurationSecs: number;
  /** It both succeeded and failed within the window: in different runs, or in attempts of one. `flakeRate` leaves out what the machinery did. */
  readonly flaky: boolean;
  /**
   * In how many of the runs in which its commands came to an end of their own it failed for no cause in the code, 0 to 1: it then passed in
   * the same run, or in another one of the window of the same commit and definition. A commit that breaks it is no flake.
   */
  readonly flakeRate: number;
  readonly p95DurationSecs: number;
}

/** `views` is the window: runs of that name, newest first. */
export function pipelineHealth(pipelineName: string, views: readonly RunView[]): PipelineHealth {
  const tally = new HealthTally();
  for (const view of views) tally.add(view);
  return tally.health(pipelineName);
}

/** The same, run by run, the newest first: a window of large runs takes long. */
export class HealthTally {
  readonly #runs = { total: 0, ended: 0, succeeded: 0, failed: 0, interrupted: 0, infrastructure: 0, flaky: 0 };
  readonly #durationsMs: number[] = [];
  readonly #stages = new Map<string, StageTally>();
  /** Runs that have passed at once, by what they are the same as: an older failure makes them flaky. */
  readonly #passed = new Map<string, number>();

  add(view: RunView): void {
    const runs = this.#runs;
    runs.total += 1;
    const sameAs = alikeOf(view);
    for (const stage of view.stages) tallyStage(this.#stages, stage, sameAs);
    const verdict = judge(view)?.verdict;
    if (verdict === undefined) return;
    runs.ended += 1;
    if (view.status === 'SUCCESS') runs.succeeded += 1;
    else if (view.outcome === 'interrupted') runs.interrupted += 1;
    else if (view.status === 'FAILED') runs.failed += 1;
    if (verdict === 'infrastructure') runs.infrastructure += 1;
    if (verdict === 'flaky') runs.flaky += 1;
    if (sameAs !== '' && verdict === 'passed') this.#passed.set(sameAs, (this.#passed.get(sameAs) ?? 0) + 1);
    if (sameAs !== '' && verdict === 'failed') {
      runs.flaky += this.#passed.get(sameAs) ?? 0;
      this.#passed.delete(sameAs);
    }
    if ((view.status === 'SUCCESS' || view.status === 'FAILED') && view.outcome === null && view.finishedAt !== null)
      this.#durationsMs.push(msBetween(view.startedAt, view.finishedAt));
  }

  health(pipelineName: string): PipelineHealth {
    const { total, ended, succeeded, failed, interrupted, infrastructure, flaky } = this.#runs;
    const stages = [...this.#stages].map(([name, tally]) => stageHealthOf(name, tally));
    return {
      pipelineName,
      totalRuns: total,
      succeeded,
      failed,
      interrupted,
      infrastructure,
      flaky,
      p50DurationSecs: percentile(this.#durationsMs, 0.5) / 1000,
      p95DurationSecs: percentile(this.#durationsMs, 0.95) / 1000,
      successRate: ended === 0 ? 0 : succeeded / ended,
      flakyStages: stages.filter((stage) => stage.flaky).map((stage) => stage.name),
      stages,
    };
  }
}

function stageHealthOf(name: string, tally: StageTally): StageHealth {
  const { runs, failures, ownEnds, durationsMs, retried, sameRuns } = tally;
  let flakes = retried;
  for (const { passed, failed } of sameRuns.values()) if (passed > 0) flakes += failed;
  const durationMs = durationsMs.reduce((sum, ms) => sum + ms, 0);
  return {
    name,
    runs,
    failures,
    avgDurationSecs: durationsMs.length === 0 ? 0 : durationMs / durationsMs.length / 1000,
    flaky: retried > 0 || (failures > 0 && failures < runs),
    flakeRate: ownEnds === 0 ? 0 : flakes / ownEnds,
    p95DurationSecs: percentile(durationsMs, 0.95) / 1000,
  };
}

interface StageTally {
  runs: number;
  failures: number;
  /** Of `runs`, those in which its commands came to an end of their own. */
  ownEnds: number;
  readonly durationsMs: number[];
  /** In how many runs it succeeded after earlier attempts of it had failed. */
  retried: number;
  /** Of runs of one commit and definition. */
  readonly sameRuns: Map<string, { passed: number; failed: number }>;
}

/**
 * A stage whose runner, place or image was lost, or that no runner took, has failed as any other that is FAILED; but it says nothing about
 * its commands, so nothing about how long they take or how often they flake.
 */
function tallyStage(stages: Map<string, StageTally>, stage: StageView, sameAs: string): void {
  // It did not run in this run: the one that it ran in counts it.
  if (stage.adopted === true) return;
  let tally = stages.get(stage.name);
  if (tally === undefined) {
    tally = { runs: 0, failures: 0, ownEnds: 0, durationsMs: [], retried: 0, sameRuns: new Map() };
    stages.set(stage.name, tally);
  }
  if (stage.status !== 'SUCCESS' && stage.status !== 'FAILED') return;
  tally.runs += 1;
  const hasFailed = stage.status === 'FAILED';
  if (hasFailed) tally.failures += 1;
  if (isLoss(stage.reason) || stage.reason === 'no_runner') return;
  tally.ownEnds += 1;
  if (!hasFailed && (stage.failedAttempts ?? 0) > 0) tally.retried += 1;
  if (sameAs !== '') {
    const same = tally.sameRuns.get(sameAs) ?? { passed: 0, failed: 0 };
    tally.sameRuns.set(sameAs, same);
    same[hasFailed ? 'failed' : 'passed'] += 1;
  }
  if (stage.startedAt !== null && stage.finishedAt !== null)
    tally.durationsMs.push(msBetween(stage.startedAt, stage.finishedAt));
}

/** As where an earlier failure is looked for. '': it is like no other run. */
function alikeOf(view: RunView): string {
  const sameAs = sameAsOf(view);
  return sameAs === '' ? '' : `${sameAs} ${isTrusted(view)} ${view.key}`;
}

function msBetween(start: string, end: string): number {
  return Math.max(0, Date.parse(end) - Date.parse(start));
}

/** By nearest rank; 0 of none. */
function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) return 0;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}
