/**
 * Gates: stages that run nothing and wait for people (P26). Who may decide one, as its owner and every gateway ask it, and
 * what of a gate is shown.
 */
import { renderTemplate, type ApprovalDefinition, type Template } from '@penstock/pipeline';
import { TextsTooLong } from './errors.ts';
import { countTexts, scopeOf } from './scope.ts';
import type { Plan } from './plan.ts';
import type { Lineage } from './lineage.ts';
import type { StagePicture } from './stages.ts';
import type { GateView, StageApproval } from './stage-state.ts';
import type { RunState, TriggerOrigin } from './state.ts';

/** Whoever decides, as the caller's credentials say it. */
export interface Person {
  /** Names the person among all: two decisions of one id are one person's. */
  readonly id: string;
  /** As the run's history shows it. */
  readonly by: string;
  /** What the person is known by, in lower case: a login, a verified email address. None: an approver cannot be meant. */
  readonly names: readonly string[];
  /** Whose runs the person may cancel. */
  readonly tenants: readonly string[];
}

/** Of the rendered message, in UTF-16 units: an output that stands in it may be much longer. */
const MESSAGE_MAX = 2_000;
/** Of what an extension puts into it, before it is cut: a message is made for every view. */
const INNER_TEXT_MAX = 128 * 1024;

/** `self`: whoever has begun the run does not count at this gate. */
type GateRight = 'granted' | 'forbidden' | 'self';

/** A stage waits for a runner: it is queued, and no gate. */
export function awaitsRunner({ status, gateDueAt }: Pick<StagePicture, 'status' | 'gateDueAt'>): boolean {
  return status === 'QUEUED' && gateDueAt === undefined;
}

export function isOpenGate({ status, gateDueAt }: Pick<StagePicture, 'status' | 'gateDueAt'>): boolean {
  return status === 'QUEUED' && gateDueAt !== undefined;
}

/** Nothing of the run can go on but by people. */
export function awaitsOnlyPeople({ stages, liveAttempts }: Pick<RunState, 'stages' | 'liveAttempts'>): boolean {
  if (liveAttempts > 0 || !stages.plan.gates.some((index) => isOpenGate(stages.get(index) as StagePicture)))
    return false;
  return !stages.some((stage) => awaitsRunner(stage) || (stage.status === 'PENDING' && stage.dueAt !== undefined));
}

/** Whether the person may decide it, by the gate as the run's file has it. */
export function rightAt(
  gate: Pick<ApprovalDefinition<Template>, 'approvers' | 'preventSelf'>,
  run: {
    readonly tenant: string;
    readonly actor?: string | undefined;
    /** Who began the runs that it repeats, they too. */
    readonly lineage?: Pick<Lineage, 'actors'> | undefined;
  },
  person: Pick<Person, 'names' | 'by' | 'tenants'>,
): GateRight {
  const { approvers } = gate;
  const isNamed =
    approvers === undefined
      ? person.tenants.includes(run.tenant)
      : approvers.some((name) => person.names.includes(name.toLowerCase()));
  if (!isNamed) return 'forbidden';
  const begunBy = [run.actor, ...(run.lineage?.actors ?? [])];
  return gate.preventSelf && begunBy.some((actor) => hasBegun(actor, person)) ? 'self' : 'granted';
}

/** Whether the person is named by a gate of the run, and so may read it. */
export function isApprover(gates: Iterable<Pick<GateView, 'approvers'>>, names: readonly string[]): boolean {
  for (const { approvers = [] } of gates) if (approvers.some((name) => names.includes(name.toLowerCase()))) return true;
  return false;
}

function hasBegun(actor: TriggerOrigin['actor'], { names, by }: Pick<Person, 'names' | 'by'>): boolean {
  if (actor === undefined) return false;
  const known = actor.toLowerCase();
  return known === by.toLowerCase() || names.includes(known);
}

/** How many different people have approved. */
export function approvedBy(approvals: readonly StageApproval[]): number {
  return new Set(approvals.filter(({ decision }) => decision === 'approved').map(({ person }) => person)).size;
}

/** Of a run's view. */
export function gatesOf({
  stages,
}: {
  readonly stages: readonly { readonly gate?: GateView | undefined }[];
}): GateView[] {
  return stages.flatMap(({ gate }) => gate ?? []);
}

/** Undefined: the stage is no gate. */
export function gateViewOf(run: RunState, plan: Plan, index: number): GateView | undefined {
  const approval = plan.stages[index]?.definition.approval;
  const stage = run.stages.get(index);
  if (approval === undefined || stage === undefined) return undefined;
  const { approvers, quorum, preventSelf, message } = approval;
  const { gateDueAt } = stage;
  return {
    quorum,
    ...(approvers === undefined ? {} : { approvers }),
    ...(preventSelf ? { preventSelf: true as const } : {}),
    ...(isOpenGate(stage) && gateDueAt !== undefined ? { dueAt: gateDueAt } : {}),
    ...(isOpenGate(stage) && message !== undefined ? { message: messageOf(run, plan, index, message) } : {}),
  };
}

/** What comes before the gate has ended, so it says the same each time. */
function messageOf(run: RunState, plan: Plan, index: number, message: Template): string {
  const onText = countTexts(INNER_TEXT_MAX, () => new TextsTooLong());
  try {
    const scope = scopeOf(run, plan, index, { success: true, failure: false, onText });
    const text = renderTemplate(message, scope, MESSAGE_MAX + 1);
    return text.length <= MESSAGE_MAX ? text : `${text.slice(0, MESSAGE_MAX - 1)}…`;
  } catch (error) {
    if (error instanceof TextsTooLong) return 'The message is too long to be shown.';
    throw error;
  }
}
