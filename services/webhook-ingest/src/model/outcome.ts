/** What became of a delivery, as ingests tell each other and as its sender is answered. */
import type { RunStatus } from '@penstock/run';
import type { Decision } from './decision.ts';
import type { Delivery } from './delivery.ts';
import type { DeliveryError } from './errors.ts';

/** `subjects.decided`, published when a delivery has been processed. */
export interface DecidedMessage {
  readonly runId: string;
  readonly decided: DecidedSummary;
}

/** A decision without its pipeline and its trace. */
export interface DecidedSummary {
  readonly kind: Decision['kind'];
  readonly source: string;
  /** Where there are no stages to wait for: what the sender is answered. */
  readonly status?: string | undefined;
  readonly error?: DeliveryError | undefined;
}

export function summaryOfDecision(decision: Decision): DecidedSummary {
  const { kind, source } = decision;
  if (kind === 'run') return { kind, source };
  const status = decision.kind === 'ended' ? capitalised(decision.status) : decision.status;
  return { kind, source, status, ...(decision.error === undefined ? {} : { error: decision.error }) };
}

export function decidedMessage(delivery: Delivery, decision: Decision): DecidedMessage {
  return { runId: delivery.runId, decided: summaryOfDecision(decision) };
}

/** `POST /webhook`, as the specification names its fields. */
export interface WebhookResult {
  readonly accepted: boolean;
  readonly provider: string;
  readonly repository: string;
  readonly ref: string;
  readonly commit: string;
  readonly run_id: string | null;
  readonly status: string;
  readonly source: string;
  readonly error?: DeliveryError | undefined;
}

export function resultOf(
  push: { readonly provider: string; readonly repository: string; readonly ref: string; readonly commit: string },
  outcome: Pick<WebhookResult, 'run_id' | 'status' | 'source' | 'error'> & { readonly accepted?: boolean },
): WebhookResult {
  const { provider, repository, ref, commit } = push;
  const { accepted = true, run_id, status, source, error } = outcome;
  return {
    accepted,
    provider,
    repository,
    ref,
    commit,
    run_id,
    status,
    source,
    ...(error === undefined ? {} : { error }),
  };
}

export function capitalised(status: RunStatus): string {
  return status.charAt(0) + status.slice(1).toLowerCase();
}
