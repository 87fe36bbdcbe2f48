/** What must hold of each event of a run, seen against the state before it: an account of the rules apart from the machine's. */
import { isEnded, type Plan, type RunEvent, type RunState, type StageState } from '@penstock/run';

import { checkApproval } from './pull-rules.ts';

/** What `retry.on: [lost]` stands for. */
const LOSSES: ReadonlySet<string> = new Set(['runner_lost', 'evicted', 'image']);

type Fail = (rule: string, message: string) => void;

export function checkEvent(
  { state }: { readonly state: RunState },
  event: RunEvent,
  fail: Fail,
  mark: (name: string) => void,
): void {
  if (isEnded(state.status) && event.type !== 'attempt_gone' && event.type !== 'run_stopped') {
    fail(event.type === 'stage_started' ? 'P14' : 'terminal', `${event.type} after its end as ${state.status}`);
    return;
  }
  const { plan } = state.stages;
  checkApproval({ state }, event, fail);
  if (!('stage' in event)) {
    checkRunEvent(state, event, fail, mark);
    return;
  }
  const index = plan.indexOf.get(event.stage) ?? -1;
  const stage = state.stages.get(index);
  const planned = plan.stages[index];
  if (stage === undefined || planned === undefined) {
    fail('replay', `${event.type} of stage ${event.stage}, which does not exist`);
    return;
  }
  if (isEnded(stage.status) && event.type !== 'attempt_gone' && event.type !== 'stages_added')
    fail('terminal', `${event.type} of stage ${stage.name}, which ended as ${stage.status}`);
  switch (event.type) {
    case 'stage_started':
      checkGrant(state, plan, index, stage, event, fail);
      break;
    case 'stage_retrying': {
      mark(`retry after ${event.reason}`);
      const { retry } = planned.definition;
      if (stage.failures >= retry.max)
        fail('retry', `stage ${stage.name} is tried again after ${stage.failures} retries of ${retry.max}`);
      const cause = event.reason === 'timeout' ? 'timeout' : LOSSES.has(event.reason) ? 'lost' : 'failure';
      if (!retry.on.includes(cause)) fail('retry', `stage ${stage.name} is tried again after ${event.reason}`);
      break;
    }
    case 'stage_returned':
      mark('grant returned');
      if (stage.live?.stopping !== undefined) fail('P12', `stage ${stage.name} waits again although it was stopped`);
      break;
    case 'stage_stopping':
      mark(`stage stopped: ${event.reason}`);
      break;
    case 'stage_skipped':
      mark(`stage skipped: ${event.reason}`);
      break;
    case 'stage_completed':
      if (event.reason === 'no_runner') mark('no runner came');
      if (event.attempt > 0 && stage.live?.attempt !== event.attempt)
        fail('replay', `attempt ${event.attempt} of stage ${stage.name} completes, which does not live`);
      break;
    case 'attempt_gone':
      mark('attempt of an ended run gone');
      break;
  }
}

/** A run that has not begun is QUEUED while something but a runner holds it back: its group or its quota, or people. */
export function checkQueued({ state }: { readonly state: RunState }, fail: (message: string) => void): void {
  const { status, held, rested } = state;
  const isHeldBack = held || rested === true;
  if (status === 'PENDING' && isHeldBack) fail('is PENDING while it is held');
  if (status === 'QUEUED' && !isHeldBack) fail('is QUEUED while nothing but a runner is waited for');
}

/** P21: what ends an attempt says where its log ends: by its result, or by the first mark behind it. */
export function checkLogEnd(
  event: RunEvent,
  markOf: (stage: string, attempt: number) => number | undefined,
  fail: Fail,
): void {
  if (event.type !== 'stage_completed' && event.type !== 'stage_retrying' && event.type !== 'attempt_gone') return;
  const { stage, attempt, logBytes, logSequence } = event;
  if ((logBytes === undefined) === (logSequence === undefined))
    fail('P21', `${event.type} of attempt ${attempt} of ${stage} ends at ${logBytes} bytes and at mark ${logSequence}`);
  if (logSequence !== undefined && markOf(stage, attempt) !== logSequence)
    fail('P21', `${event.type} names ${logSequence}, the first mark of ${stage} is ${markOf(stage, attempt)}`);
}

function checkRunEvent(state: RunState, event: RunEvent, fail: Fail, mark: (name: string) => void): void {
  switch (event.type) {
    case 'run_completed': {
      const open = state.stages.filter(({ status }) => !isEnded(status));
      if (open.length > 0) fail('terminal', `completes while stage ${open[0]?.name ?? ''} is ${open[0]?.status ?? ''}`);
      break;
    }
    case 'run_stopped': {
      const live = state.stages.find((stage) => stage.live !== undefined);
      if (!isEnded(state.status)) fail('P21', `is stopped while it is ${state.status}`);
      if (live !== undefined) fail('P21', `is stopped while attempt ${live.live?.attempt} of ${live.name} lives`);
      mark('cancelled run stopped');
      break;
    }
    case 'workspace_lost':
      mark('workspace lost');
      break;
    case 'run_quarantined':
      mark('run quarantined');
      break;
    case 'stages_skipped':
      mark(`stage skipped: ${event.reason}`);
      for (const name of event.stages) {
        const stage = state.stages.find((candidate) => candidate.name === name);
        if (stage?.status !== 'PENDING')
          fail('replay', `stage ${name} is skipped while it is ${stage?.status ?? 'nothing'}`);
      }
      break;
    case 'stages_queued':
      for (const name of event.stages) {
        const stage = state.stages.find((candidate) => candidate.name === name);
        if (stage?.status !== 'PENDING')
          fail('replay', `stage ${name} is queued while it is ${stage?.status ?? 'nothing'}`);
      }
      break;
  }
}

function checkGrant(
  state: RunState,
  plan: Plan,
  index: number,
  stage: StageState,
  event: Extract<RunEvent, { type: 'stage_started' }>,
  fail: Fail,
): void {
  const planned = plan.stages[index];
  if (planned === undefined) return;
  const { definition } = planned;
  if (stage.status !== 'QUEUED') fail('P12', `stage ${stage.name} is granted while it is ${stage.status}`);
  if (event.attempt !== stage.attempt + 1)
    fail('P12', `attempt ${event.attempt} of stage ${stage.name} follows attempt ${stage.attempt}`);
  if (stage.live !== undefined) fail('P12', `stage ${stage.name} is granted while attempt ${stage.live.attempt} lives`);
  if (state.held) fail('groups', `stage ${stage.name} is granted while its run is held`);
  for (const dependency of planned.dependencies) {
    const before = state.stages.get(dependency);
    const earlier = plan.stages[dependency]?.definition;
    const allowed = earlier?.allowFailure === true || state.createdAt < (earlier?.quarantine?.endsAt ?? 0);
    if (before === undefined || !isEnded(before.status))
      fail('dependencies', `stage ${stage.name} is granted before ${before?.name ?? ''} has ended`);
    else if (!definition.runsAfterFailure && before.status !== 'SUCCESS' && !(before.status === 'FAILED' && allowed))
      fail('dependencies', `stage ${stage.name} is granted after ${before.name} ended ${before.status}`);
  }
  const { matrix } = definition;
  if (matrix?.maxParallel !== undefined) {
    const live = planned.siblings.filter((sibling) => state.stages.get(sibling)?.live !== undefined).length;
    if (live >= matrix.maxParallel)
      fail('max_parallel', `stage ${stage.name} is granted beside ${live} of ${matrix.of}`);
  }
  const holder = state.workspaces[planned.labelSet];
  if (definition.workspace === 'shared' && holder !== undefined && holder !== event.runner)
    fail('P19', `stage ${stage.name} goes to ${event.runner}, its workspace is at ${holder}`);
}
