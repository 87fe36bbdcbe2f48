/** A delivery and its decision, as people are shown them. */
import type { DeliveryView } from '@penstock/bus';
import type { Decision, TraceStep } from './decision.ts';
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
    trace: traceOf(decision),
    replayOf: delivery.replayOf ?? null,
  };
}

const LEFT_OUT: TraceStep = {
  step: 'event',
  passed: true,
  detail:
    'too many deliveries came in a day for all steps to be kept: the last one is, without the paths that it changed',
};

function traceOf(decision: Decision | null): readonly TraceStep[] {
  if (decision === null) return [];
  return decision.shortened === true ? [LEFT_OUT, ...decision.trace] : decision.trace;
}

function outcomeOf(decision: Decision): string {
  if (decision.kind === 'run') return 'Run';
  return decision.kind === 'ended' ? capitalised(decision.status) : decision.status;
}
