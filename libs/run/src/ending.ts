/** How a run ends whose stages have all ended. */
import { hasRoom } from './document-room.ts';
import type { RunEvent } from './events.ts';
import { mayFail } from './readiness.ts';
import type { RunState } from './state.ts';

type Ending = Pick<Extract<RunEvent, { type: 'run_completed' }>, 'status' | 'outcome' | 'reason'>;

export function endingOf(run: RunState): Ending {
  const failures = run.stages.filter(
    (stage, index) => (stage.status === 'FAILED' || stage.status === 'CANCELLED') && !mayFail(run, index),
  );
  const interrupted = failures.some((stage) => stage.reason === 'runner_lost');
  const outgrown = isOutgrown(run);
  const failed = failures.length > 0 || outgrown;
  return {
    status: failed ? 'FAILED' : run.stages.length === 0 ? 'SKIPPED' : 'SUCCESS',
    ...(interrupted ? { outcome: 'interrupted' as const } : {}),
    ...(outgrown ? { reason: 'quota' as const } : {}),
  };
}

/** A stage was refused what it needed, for the run's document has no room for more. */
function isOutgrown(run: RunState): boolean {
  return !hasRoom(run, run.stages.plan) && run.stages.some(({ reason }) => reason === 'quota');
}
