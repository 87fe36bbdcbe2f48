/** Whether a stage's failure fails nothing: neither its run nor the stages after it. It follows from the file and the run's beginning. */
import type { StageDefinition } from '@penstock/pipeline';
import type { RunState } from './state.ts';

export function isFailureTolerated(
  { createdAt }: Pick<RunState, 'createdAt'>,
  { allowFailure, quarantine }: Pick<StageDefinition, 'allowFailure' | 'quarantine'>,
): boolean {
  return allowFailure || (quarantine !== undefined && createdAt < quarantine.endsAt);
}
