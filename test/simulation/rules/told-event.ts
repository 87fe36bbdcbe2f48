/** Whether an event that was told is the one that was committed. */
import { isDeepStrictEqual } from 'node:util';
import type { RunEvent } from '@penstock/run';
import type { RunTruth } from './run-truth.ts';

/** The journal has no names of added stages: they follow from a text that a build which cannot read the run's file does not read either. */
export function isTold({ state, events }: RunTruth, truth: RunEvent, event: RunEvent): boolean {
  if (isSameEvent(truth, event)) return true;
  const isUnread = state.pipelineName.endsWith('unrestorable') && events.some(({ type }) => type === 'run_quarantined');
  return isUnread && truth.type === 'stages_added' && isSameEvent({ ...truth, stages: [] }, event);
}

function isSameEvent(truth: RunEvent, event: RunEvent): boolean {
  const text = JSON.stringify(event);
  // A commit that was deflated has its fields in another order.
  return text === JSON.stringify(truth) || isDeepStrictEqual(JSON.parse(text), truth);
}
