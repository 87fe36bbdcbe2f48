/** `approveStage` and `rejectStage`: the decision is the owner's; who may see the run and its gate is looked at here first (P26). */
import { isEnded, isReached, isRunId, rightAt, type GateDecision, type RunView, type StageView } from '@penstock/run';
import { grantedReaches, requireReader, requireScope, type Caller } from '@penstock/identity';
import { BadUserInput, Conflict, Forbidden, NotFound, Unavailable } from '@penstock/errors';
import { OwnerRefused, type Owners, type RunReads } from '@penstock/run-client';
import type { People } from '../people/people.ts';

export interface DecisionArguments {
  readonly runId: string;
  readonly stage: string;
  readonly comment?: string | undefined;
}

interface Dependencies {
  readonly owners: Owners;
  readonly reads: RunReads;
  readonly people: People;
}

/** Throws `NotFound` for a run that the caller may not see, `Forbidden` for whoever is no approver, `Conflict` where it is decided. */
export async function decideStage(
  { owners, reads, people }: Dependencies,
  caller: Caller,
  decision: GateDecision,
  { runId, stage, comment }: DecisionArguments,
): Promise<{ readonly run: RunView; readonly stage: StageView }> {
  requireScope(caller, 'trigger');
  const known = await people.personOf(caller);
  const view = async (): Promise<RunView> => {
    const run = isRunId(runId) ? await reads.view(runId, requireReader(caller), async () => known.names) : null;
    if (run === null) throw new NotFound(`There is no run '${runId.slice(0, 100)}'.`);
    return run;
  };
  const run = await view();
  const isLetIn = isReached(grantedReaches(caller, 'approve'), run);
  const person = isLetIn ? { ...known, tenants: [...known.tenants, run.tenant] } : known;
  const { gate } = stageOf(run, stage);
  if (gate === undefined) throw new BadUserInput(`The stage '${stage}' waits for nobody: it has no 'approval'.`);
  const preventSelf = gate.preventSelf === true;
  const right = rightAt({ ...gate, preventSelf }, run, person);
  if (right === 'forbidden') throw new Forbidden(`You are not among those who may approve '${stage}'.`);
  if (right === 'self') throw new Forbidden(`Whoever has begun the run does not count at '${stage}' (prevent_self).`);
  try {
    const decided = (await owners.decide({ runId, stage, decision, comment, person })).run;
    return { run: decided, stage: stageOf(decided, stage) };
  } catch (error) {
    if (!(error instanceof OwnerRefused)) throw error;
    const { cause, repeated } = error;
    if (!(cause instanceof NotFound) && !(cause instanceof Conflict)) throw cause;
    const after = await view();
    const decided = stageOf(after, stage);
    const said = decided.approvals?.findLast((approval) => approval.person === person.id)?.decision;
    // An earlier sending of this very decision was stored, and its answer lost.
    if (repeated && said === decision) return { run: after, stage: decided };
    if (cause instanceof NotFound && !isEnded(after.status))
      throw new Unavailable('The run is being taken over by another scheduler; try again in a moment.', { cause });
    if (isEnded(after.status)) throw new Conflict(`The run has ended (${after.status}).`, {}, { cause });
    throw new Conflict(sentenceOf(cause.message), {}, { cause });
  }
}

function stageOf(run: RunView, name: string): StageView {
  const stage = run.stages.find((one) => one.name === name);
  if (stage === undefined) throw new BadUserInput(`The run has no stage '${name.slice(0, 200)}'.`);
  return stage;
}

function sentenceOf(message: string): string {
  return `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`;
}
