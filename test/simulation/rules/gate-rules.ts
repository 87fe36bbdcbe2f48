/** Gates and places (P26), by a run's own file and committed events: an account apart from the machine's. */
import { isEnded, type Person, type PlannedStage, type RunEvent, type StagePicture } from '@penstock/run';
import type { RunTruth } from './run-truth.ts';

type Fail = (rule: string, message: string) => void;

export function mayDecide(run: RunTruth, stage: string, person: Pick<Person, 'names' | 'tenants'>): boolean {
  const approval = definitionOf(run, stage)?.approval;
  if (approval === undefined) return false;
  return approval.approvers === undefined
    ? person.tenants.includes(run.state.tenant)
    : approval.approvers.some((name) => person.names.includes(name));
}

/** `run` is as it was before the event. */
export function checkGateEvent(run: RunTruth, event: RunEvent, fail: Fail, mark: (name: string) => void): void {
  const { state } = run;
  switch (event.type) {
    case 'gates_queued':
      for (const name of event.stages) {
        if (definitionOf(run, name)?.approval === undefined) fail('P26', `${name} is queued as a gate, and is none`);
        if (stageOf(run, name)?.status !== 'PENDING') fail('P26', `the gate ${name} is queued a second time`);
      }
      return;
    case 'stages_queued':
      for (const name of event.stages)
        if (definitionOf(run, name)?.approval !== undefined) fail('P26', `the gate ${name} waits for a runner`);
      if (state.rested === true || state.held) fail('P26', 'stages are queued while the run has no place');
      return;
    case 'stage_started':
      if (definitionOf(run, event.stage)?.approval !== undefined) fail('P26', `the gate ${event.stage} is granted`);
      if (state.rested === true) fail('P26', `stage ${event.stage} is granted while the run has no place`);
      return;
    case 'gate_decided': {
      const approval = definitionOf(run, event.stage)?.approval;
      const gate = stageOf(run, event.stage);
      if (gate?.status !== 'QUEUED') fail('P26', `${event.stage} is decided while it is ${gate?.status ?? 'nothing'}`);
      const last = gate?.approvals?.findLast(({ person }) => person === event.person);
      if (last?.decision === event.decision) fail('P26', `${event.person} says the same again at ${event.stage}`);
      if (approval?.approvers?.includes(event.by) === false)
        fail('P26', `${event.by} decides at ${event.stage}, and is no approver`);
      mark(`gate ${event.decision}`);
      return;
    }
    case 'run_rested':
      mark('run rested');
      if (!isIdle(run)) fail('P26', 'rests while something of it can go on');
      return;
    case 'run_held':
      if (state.rested === true) mark('run held again for its place');
      return;
    case 'stage_completed':
      checkEnd(run, event, fail, mark);
      return;
    default:
  }
}

/** The run as a commit has left it. */
export function checkGates(run: RunTruth, fail: (message: string) => void): void {
  const { state } = run;
  const { plan } = state.stages;
  if (plan.gates.length === 0 || isEnded(state.status)) return;
  for (const index of plan.gates) {
    const gate = state.stages.get(index);
    const quorum = plan.stages[index]?.definition.approval?.quorum ?? 0;
    if (gate?.status !== 'QUEUED') continue;
    if (approvedBy(gate) >= quorum) fail(`the gate ${gate.name} is approved, and not decided in the same commit`);
    if (gate.approvals?.some(({ decision }) => decision === 'rejected') === true)
      fail(`the gate ${gate.name} is rejected, and not decided in the same commit`);
  }
  if (!state.held && state.rested !== true && isIdle(run)) fail('keeps its place while only gates are open');
}

function checkEnd(
  run: RunTruth,
  { stage: name, status, reason }: Extract<RunEvent, { type: 'stage_completed' }>,
  fail: Fail,
  mark: (name: string) => void,
): void {
  const approval = definitionOf(run, name)?.approval;
  const gate = stageOf(run, name);
  if (approval === undefined || gate === undefined) return;
  const isRejected = gate.approvals?.some(({ decision }) => decision === 'rejected') === true;
  if (status === 'SUCCESS' && (isRejected || approvedBy(gate) < approval.quorum))
    fail('P26', `the gate ${name} succeeds with ${approvedBy(gate)} of ${approval.quorum}`);
  if (reason === 'rejected' && !isRejected) fail('P26', `the gate ${name} ends as rejected, which nobody has done`);
  if (reason === 'no_runner') fail('P26', `the gate ${name} has waited for a runner`);
  if (reason === 'timeout') mark('gate timed out');
}

/** Gates are open, and nothing else is or is about to be. */
function isIdle({ state }: RunTruth): boolean {
  const { plan } = state.stages;
  const isGate = (index: number): boolean => plan.stages[index]?.definition.approval !== undefined;
  const open = state.stages.filter((stage, index) => stage.status === 'QUEUED' && isGate(index));
  const others = state.stages.filter(
    (stage, index) =>
      stage.live !== undefined ||
      (stage.status === 'QUEUED' && !isGate(index)) ||
      (stage.status === 'PENDING' && stage.dueAt !== undefined),
  );
  return open.length > 0 && others.length === 0;
}

function approvedBy({ approvals = [] }: Pick<StagePicture, 'approvals'>): number {
  return new Set(approvals.filter(({ decision }) => decision === 'approved').map(({ person }) => person)).size;
}

function definitionOf({ state }: RunTruth, name: string): PlannedStage['definition'] | undefined {
  const { plan } = state.stages;
  return plan.stages[plan.indexOf.get(name) ?? -1]?.definition;
}

function stageOf({ state }: RunTruth, name: string): StagePicture | undefined {
  return state.stages.get(state.stages.plan.indexOf.get(name) ?? -1);
}
