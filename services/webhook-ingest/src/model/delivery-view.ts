/** A delivery and its decision, as people are shown them. */
import type { DeliveryView } from '@penstock/bus';
import type { Decision } from './decision.ts';
import type { Delivery } from './delivery.ts';
import { capitalised } from './outcome.ts';

/** `decision` null: not decided yet. `runId` is shown only where there is, or will be, a run of it. */
export function deliveryView(delivery: Delivery, decision: Decision | null, runId: string | null): DeliveryView {
  return {
    id: delivery.id,
    deliveryId: delivery.deliveryId,
    provider: delivery.provider,
    event: delivery.event,
    repository: delivery.repository,
    ref: delivery.ref,
    commit: delivery.commit,
    receivedAt: new Date(delivery.receivedAt).toISOString(),
    verified: delivery.verified,
    outcome: decision === null ? 'Pending' : outcomeOf(decision),
    runId,
    pipelineName: decision === null || decision.kind === 'nothing' ? null : decision.pipelineName,
    source: decision?.source ?? 'none',
    error: decision === null || decision.kind === 'run' ? null : (decision.error ?? null),
    trace: decision?.trace ?? [],
    replayOf: delivery.replayOf ?? null,
  };
}

function outcomeOf(decision: Decision): string {
  if (decision.kind === 'run') return 'Run';
  return decision.kind === 'ended' ? capitalised(decision.status) : decision.status;
}
