/** What a stage that has ended by itself leaves is kept: its files, then how its tests went. */
import { ArtifactsFailed } from '@penstock/artifacts';
import type { ResultRequest } from '@penstock/bus';
import { failedBecause, type AttemptVerdict } from '@penstock/executor';
import type { Log } from '@penstock/telemetry/log';
import type { LeftByStage, StageArtifacts } from '../artifacts/stage-artifacts.ts';
import type { StageReports } from '../artifacts/stage-reports.ts';

interface Keepers {
  readonly artifacts: Pick<StageArtifacts, 'keep'>;
  readonly reports: Pick<StageReports, 'keep'>;
  readonly log: Log;
}

/** How the stage ended, with what was kept of it. */
export type KeptEnding = AttemptVerdict & Pick<ResultRequest, 'artifacts' | 'report'>;

/**
 * Without what it asks to keep a stage has not succeeded; for its reports none fails. `endedMeanwhile` says what becomes of an
 * attempt that is being ended while it is kept, for that is no fault of what it leaves; null: it was lost; undefined: it is not.
 */
export async function keepLeavings(
  left: LeftByStage,
  { artifacts, reports, log }: Keepers,
  endedMeanwhile: () => AttemptVerdict | null | undefined,
): Promise<KeptEnding | null> {
  const ending = await keepFiles(left, { artifacts, log }, endedMeanwhile);
  if (ending === null || left.job.reports === undefined) return ending;
  try {
    const report = await reports.keep(left);
    return report === undefined ? ending : { ...ending, report };
  } catch (error) {
    const ended = endedMeanwhile();
    if (ended !== undefined) return ended;
    log.warn({ err: error, ...left.ref }, 'the test report of a stage could not be kept');
    left.remark('the test report could not be kept: the runner met an error of its own');
    return ending;
  }
}

async function keepFiles(
  left: LeftByStage,
  { artifacts, log }: Pick<Keepers, 'artifacts' | 'log'>,
  endedMeanwhile: () => AttemptVerdict | null | undefined,
): Promise<KeptEnding | null> {
  const { verdict, remark } = left;
  if (left.job.artifacts === undefined) return verdict;
  try {
    const kept = await artifacts.keep(left);
    return kept === undefined ? verdict : { ...verdict, artifacts: kept };
  } catch (error) {
    const ended = endedMeanwhile();
    if (ended !== undefined) return ended;
    log.warn({ err: error, ...left.ref }, 'the files of a stage could not be kept');
    const isTold = error instanceof ArtifactsFailed;
    remark(isTold ? error.message : 'the files could not be kept: the runner met an error of its own');
    // A stage that failed by itself says so.
    if (verdict.status === 'failed') return verdict;
    return failedBecause(isTold ? error.reason : 'artifacts');
  }
}
