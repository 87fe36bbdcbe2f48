/**
 * Gates (P26): each is decided once, by people who said so, and as its quorum, a rejection or its time has it; what an approver was
 * answered holds; a gate runs nothing, and what comes after it waits for its approval.
 */
import type { RunEvent } from '@penstock/run';
import { rightTime } from '../clock.ts';
import type { Mark } from '../marks.ts';
import type { ChaosStage } from '../pipelines.ts';
import type { Report } from '../violations.ts';
import type { GateAnswer } from '../steered.ts';

type GateDecided = Extract<RunEvent, { readonly type: 'gate_decided' }>;

export interface GateEvidence {
  readonly events: readonly RunEvent[];
  /** Of this run, by stage. */
  readonly marks: ReadonlyMap<string, readonly Mark[]>;
  /** What was said at the gates of this run. */
  readonly answers: readonly GateAnswer[];
  readonly clocksStepped: boolean;
}

/** Commits' moments are whole milliseconds. */
const SLACK_MS = 2;
/** A wait is measured by the boot clock, which a later look may find up to a hundredth of a second further; both are told in whole milliseconds. */
const CLOCKS_APART_MS = 15;

export function checkGate(stage: ChaosStage, evidence: GateEvidence, report: Report): void {
  const { name, gate } = stage;
  if (gate === undefined) return;
  const own = evidence.events.filter((event) => 'stage' in event && event.stage === name);
  const answers = evidence.answers.filter((answer) => answer.stage === name);
  if (evidence.marks.has(name) || own.some(({ type }) => type === 'stage_started'))
    report('doubled', `the gate ${name} was executed`);
  const decided = own.filter((event): event is GateDecided => event.type === 'gate_decided');
  checkSayings(name, decided, answers, report);
  const ends = own.filter((event) => event.type === 'stage_completed');
  if (ends.length > 1) report('doubled', `the gate ${name} ended ${ends.length} times`);
  const [end] = ends;
  if (end !== undefined) {
    if (decided.some((event) => own.indexOf(event) > own.indexOf(end)))
      report('late', `somebody decided the gate ${name} after its end`);
    checkEnd(name, gate.quorum, end, decided, evidence, report);
  }
  for (const { status, person, outcome } of answers)
    if (outcome === 'taken' && (status === 'SUCCESS' || status === 'FAILED') && status !== end?.status)
      report(
        'answer',
        `${person} was shown the gate ${name} as ${status}, and it ended ${end?.status ?? 'not at all'}`,
      );
}

/** One saying of each person, which the person sent; and what was answered as taken is there. */
function checkSayings(
  name: string,
  decided: readonly GateDecided[],
  answers: readonly GateAnswer[],
  report: Report,
): void {
  for (const [person, said] of Map.groupBy(decided, (event) => event.person)) {
    if (said.length > 1) report('doubled', `${person} decided the gate ${name} ${said.length} times`);
    for (const { decision } of said)
      if (!answers.some((answer) => answer.person === person && answer.decision === decision))
        report('untrue', `${person} never ${decision} the gate ${name}`);
  }
  for (const { person, decision, outcome, sends } of answers) {
    const isThere = decided.some((event) => event.person === person && event.decision === decision);
    if (outcome === 'taken' && !isThere)
      report('lost', `${person} was answered that ${name} is ${decision}, and no decision of that is there`);
    const others = answers.filter((one) => one.person === person && one.decision === decision);
    if (outcome === 'refused' && sends === 1 && others.length === 1 && isThere)
      report('answer', `that ${person} ${decision} the gate ${name} was refused, and it counts`);
  }
}

function checkEnd(
  name: string,
  quorum: number,
  end: Extract<RunEvent, { readonly type: 'stage_completed' }>,
  decided: readonly GateDecided[],
  { events, clocksStepped }: GateEvidence,
  report: Report,
): void {
  const approvals = new Set(decided.flatMap((event) => (event.decision === 'approved' ? [event.person] : []))).size;
  const rejected = decided.some(({ decision }) => decision === 'rejected');
  const queued = events.find((event) => event.type === 'gates_queued' && event.stages.includes(name));
  const wrong = (why: string): void => report('untrue', `the gate ${name} ended ${end.status} (${why})`);
  if (end.status === 'SUCCESS' && (approvals < quorum || rejected))
    wrong(`${approvals} of ${quorum} approved it${rejected ? ', and somebody rejected it' : ''}`);
  else if (end.reason === 'rejected' && !rejected) wrong('and nobody rejected it');
  else if (end.reason === 'timeout' && (rejected || approvals >= quorum)) wrong('out of time, though it was decided');
  else if (
    end.reason === 'timeout' &&
    !clocksStepped &&
    queued?.type === 'gates_queued' &&
    end.at + CLOCKS_APART_MS < queued.dueAt
  )
    wrong(`out of time ${queued.dueAt - end.at} ms before that`);
  else if (end.status === 'FAILED' && end.reason !== 'rejected' && end.reason !== 'timeout')
    wrong(`${end.reason ?? ''}`);
}

/** Whether something began before this stage, which has left no marks, had ended by the journal; a gate has to be approved. */
export function beganBefore(
  { name, gate }: ChaosStage,
  startedAt: number,
  { events, clocksStepped }: Pick<GateEvidence, 'events' | 'clocksStepped'>,
): boolean {
  const end = events.find((event) => event.type === 'stage_completed' && event.stage === name);
  if (end?.type !== 'stage_completed' || (gate !== undefined && end.status !== 'SUCCESS')) return true;
  const endedAt = clocksStepped ? rightTime(end.at, startedAt) : end.at;
  return startedAt + SLACK_MS < endedAt;
}
