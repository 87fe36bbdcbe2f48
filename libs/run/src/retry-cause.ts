/** What a reason is to `retry.on`, and to whoever asks what an ending says about a stage. */
import type { RetryCause } from '@penstock/pipeline';
import type { StageReason } from './stage-state.ts';

/** Reasons that are not here are never retried: another attempt would end the same. */
const CAUSES: Readonly<Partial<Record<StageReason, RetryCause>>> = {
  exit: 'failure',
  signal: 'failure',
  oom: 'failure',
  service: 'failure',
  artifacts: 'failure',
  timeout: 'timeout',
  runner_lost: 'lost',
  evicted: 'lost',
  image: 'lost',
};

export function retryCauseOf(reason: StageReason): RetryCause | undefined {
  return CAUSES[reason];
}

/** The machinery's doing: it says nothing about what the stage's commands do. */
export function isLoss(reason: StageReason | null | undefined): boolean {
  return reason != null && retryCauseOf(reason) === 'lost';
}
