/** What the command asks a server about stages that wait for approval. */
import type { GateDecision } from '@penstock/run';
import { ask, notOurs, refusal } from './graphql.ts';
import type { ServerClient } from './http-client.ts';
import { fieldOf } from './json.ts';
import { noSuchRun } from './run-id.ts';

export interface DecidedStage {
  readonly name: string;
  readonly status: string;
  readonly reason: string | null;
  /** How many different people have approved, of how many that are needed. */
  readonly approved: number;
  readonly quorum: number;
}

export async function decideStage(
  client: ServerClient,
  given: {
    readonly decision: GateDecision;
    readonly runId: string;
    readonly stage: string;
    readonly comment?: string | undefined;
  },
): Promise<DecidedStage> {
  const { decision, runId, stage, comment } = given;
  const field = decision === 'approved' ? 'approveStage' : 'rejectStage';
  const fields = 'name status reason gate { quorum } approvals { by decision }';
  const query = `mutation ($runId: String, $stage: String, $comment: String) { ${field}(runId: $runId, stage: $stage, comment: $comment) { ${fields} } }`;
  const { data, errors } = await ask(client, query, { runId, stage, ...(comment === undefined ? {} : { comment }) });
  const [error] = errors;
  if (error?.code === 'NOT_FOUND') throw noSuchRun(runId, client.server);
  if (error !== undefined) throw refusal(client, error);
  const decided = fieldOf(data, field);
  const [name, status, reason, approvals] = ['name', 'status', 'reason', 'approvals'].map((key) =>
    fieldOf(decided, key),
  );
  const quorum = fieldOf(fieldOf(decided, 'gate'), 'quorum');
  if (typeof name !== 'string' || typeof status !== 'string' || !Array.isArray(approvals) || typeof quorum !== 'number')
    return notOurs(client);
  const people = approvals.filter((one) => fieldOf(one, 'decision') === 'approved').map((one) => fieldOf(one, 'by'));
  return {
    name,
    status,
    reason: typeof reason === 'string' ? reason : null,
    approved: new Set(people).size,
    quorum,
  };
}
