/** A pipeline's health: what the newest runs of one name say about it. Pure. */
import { isLoss, type RunView, type StageView } from '@penstock/run';

export interface PipelineHealth {
  readonly pipelineName: string;
  /** All runs of the window, those that have not ended included. */
  readonly totalRuns: number;
  readonly succeeded: number;
  /** Ended FAILED, interrupted ones not among them. */
  readonly failed: number;
  readonly interrupted: number;
  /** Succeeded of all that have ended, 0 to 1; 0 where none has. */
  readonly successRate: number;
  readonly flakyStages: readonly string[];
  /** In the order of their first appearance, newest run first. */
  readonly stages: readonly StageHealth[];
}

interface StageHealth {
  readonly name: string;
  /** In how many runs of the window the stage's commands came to an end of their own. */
  readonly runs: number;
  readonly failures: number;
  /** Of those runs, from the first start to the end, retries included; 0 where there is none. */
  readonly avgDurationSecs: number;
  /** It both succeeded and failed within the window: in different runs, or in attempts of one. */
  readonly flaky: boolean;
}

/** `views` is the window: runs of that name, newest first. */
export function pipelineHealth(pipelineName: string, views: readonly RunView[]): PipelineHealth {
  const tally = new HealthTally();
  for (const view of views) tally.add(view);
  return tally.health(pipelineName);
}

/** The same, run by run: a window of large runs takes long. */
export class HealthTally {
  readonly #runs = { total: 0, ended: 0, succeeded: 0, failed: 0, interrupted: 0 };
  readonly #stages = new Map<string, StageTally>();

  add(view: RunView): void {
    const runs = this.#runs;
    runs.total += 1;
    for (const stage of view.stages) tallyStage(this.#stages, stage);
    if (view.status === 'PENDING' || view.status === 'QUEUED' || view.status === 'RUNNING') return;
    runs.ended += 1;
    if (view.status === 'SUCCESS') runs.succeeded += 1;
    else if (view.outcome === 'interrupted') runs.interrupted += 1;
    else if (view.status === 'FAILED') runs.failed += 1;
  }

  health(pipelineName: string): PipelineHealth {
    const { total, ended, succeeded, failed, interrupted } = this.#runs;
    const stages = [...this.#stages].map(([name, tally]) => stageHealthOf(name, tally));
    return {
      pipelineName,
      totalRuns: total,
      succeeded,
      failed,
      interrupted,
      successRate: ended === 0 ? 0 : succeeded / ended,
      flakyStages: stages.filter((stage) => stage.flaky).map((stage) => stage.name),
      stages,
    };
  }
}

function stageHealthOf(name: string, { runs, failures, timed, durationMs, retried }: StageTally): StageHealth {
  return {
    name,
    runs,
    failures,
    avgDurationSecs: timed === 0 ? 0 : durationMs / timed / 1000,
    flaky: retried || (failures > 0 && failures < runs),
  };
}

interface StageTally {
  runs: number;
  failures: number;
  timed: number;
  durationMs: number;
  /** It succeeded in a run in which earlier attempts of it had failed. */
  retried: boolean;
}

/**
 * A stage whose runner, place or image was lost, or that no runner took, says nothing about its commands: it counts neither as a run of the
 * stage nor as its failure, or every crash of a machine would make stages flaky.
 */
function tallyStage(stages: Map<string, StageTally>, stage: StageView): void {
  let tally = stages.get(stage.name);
  if (tally === undefined) {
    tally = { runs: 0, failures: 0, timed: 0, durationMs: 0, retried: false };
    stages.set(stage.name, tally);
  }
  if (stage.status !== 'SUCCESS' && stage.status !== 'FAILED') return;
  if (isLoss(stage.reason) || stage.reason === 'no_runner') return;
  tally.runs += 1;
  if (stage.status === 'FAILED') tally.failures += 1;
  else if ((stage.failedAttempts ?? 0) > 0) tally.retried = true;
  if (stage.startedAt === null || stage.finishedAt === null) return;
  tally.timed += 1;
  tally.durationMs += Math.max(0, Date.parse(stage.finishedAt) - Date.parse(stage.startedAt));
}
