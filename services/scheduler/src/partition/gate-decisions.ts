/** Whether somebody's decision at a gate of a run counts (P26), by the run's own file: its owner says so, whoever has said it before. */
import type { DecideRequest, OwnerErrorCode } from '@penstock/bus';
import { isOpenGate, rightAt } from '@penstock/run';
import type { LiveRun } from '../run/live-run.ts';

/** Of what is said with a decision, in UTF-16 units. */
const COMMENT_MAX = 1_000;

export interface DecisionFault {
  readonly code: OwnerErrorCode;
  readonly message: string;
}

/** Undefined: it counts. */
export function faultOf(run: LiveRun, { stage: name, person, comment = '' }: DecideRequest): DecisionFault | undefined {
  const index = run.plan.indexOf.get(name) ?? -1;
  const approval = run.plan.stages[index]?.definition.approval;
  const stage = run.state.stages.get(index);
  if (approval === undefined || stage === undefined)
    return { code: 'BAD_USER_INPUT', message: `the run has no stage '${name.slice(0, 200)}' that waits for approval` };
  if (comment.length > COMMENT_MAX)
    return { code: 'BAD_USER_INPUT', message: `the comment is longer than ${COMMENT_MAX} characters` };
  const right = rightAt(approval, { ...run.state, actor: run.state.origin.actor }, person);
  if (right === 'forbidden')
    return { code: 'FORBIDDEN', message: `you are not among the approvers of '${stage.name}'` };
  if (right === 'self')
    return { code: 'FORBIDDEN', message: `whoever has begun the run does not count at '${stage.name}' (prevent_self)` };
  if (run.ended) return { code: 'CONFLICT', message: `the run has ended: ${run.state.status}` };
  if (isOpenGate(stage)) return undefined;
  return {
    code: 'CONFLICT',
    message:
      stage.status === 'PENDING'
        ? `the stage '${stage.name}' does not wait for approval yet`
        : `the stage '${stage.name}' is decided: ${stage.status}`,
  };
}
