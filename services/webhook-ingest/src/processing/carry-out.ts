/** From a decision to its run. Every step may be done twice: the run's id is the delivery's. */
import type { CreateRequest } from '@penstock/bus';
import type { PullRequestOrigin } from '@penstock/run';
import type { RunLimits } from '@penstock/config';
import { BadUserInput, Conflict, NotFound, QuotaExceeded } from '@penstock/errors';
import { OwnerRefused, type Owners } from '@penstock/run-client';
import type { Decision } from '../model/decision.ts';
import { isTrustedDelivery, type Delivery } from '../model/delivery.ts';
import type { ForkPolicy } from '../model/ports.ts';
import type { PullRequestEvent } from '../providers/provider.ts';

export interface CarryOutSources {
  readonly owners: Owners;
  /** Undefined: the runs of the delivery have no limits. */
  limitsOf(delivery: Delivery): Promise<RunLimits | undefined>;
  readonly forks: ForkPolicy;
}

/** A delivery with where it stands in `DELIVERIES`: of two heads of a pull request the later is the newer (P27). */
type Placed = Delivery & { readonly sequence: number };

/** The decision as it turned out. Throws `Unavailable` while the run's owner cannot be asked. */
export async function carryOut(delivery: Placed, decision: Decision, sources: CarryOutSources): Promise<Decision> {
  if (decision.kind === 'nothing') return decision;
  if (decision.kind === 'ended') {
    await create(sources.owners, endedRequest(delivery, decision));
    return decision;
  }
  const { yaml } = decision;
  if (yaml === null) return decision;
  const limits = await sources.limitsOf(delivery);
  try {
    await create(sources.owners, {
      ...commonRequest(delivery, decision, true),
      ...(delivery.pullRequest?.fork === true && sources.forks === 'approve' ? { held: 'approval' } : {}),
      yaml,
      ...(limits === undefined ? {} : { limits }),
      ...(decision.extensions.length === 0 ? {} : { extensions: decision.extensions }),
    });
    return decision;
  } catch (error) {
    const ended = endedBy(error, decision);
    if (ended === null) throw error;
    await create(sources.owners, endedRequest(delivery, ended));
    return ended;
  }
}

/** What the owner will never take becomes a run that has failed. */
function endedBy(
  error: unknown,
  { trace, source, pipelineName }: Extract<Decision, { kind: 'run' }>,
): Extract<Decision, { kind: 'ended' }> | null {
  const reason = error instanceof QuotaExceeded ? 'quota' : error instanceof BadUserInput ? 'pipeline_file' : null;
  if (reason === null) return null;
  const { message } = error as Error;
  return {
    kind: 'ended',
    status: 'FAILED',
    reason,
    pipelineName,
    source,
    error: { code: reason, message },
    trace: [...trace, { step: 'run', passed: false, detail: message }],
  };
}

async function create(owners: Owners, request: CreateRequest): Promise<void> {
  try {
    await owners.create(request);
  } catch (error) {
    const refusal: unknown = error instanceof OwnerRefused ? error.cause : error;
    // The run that it repeats is gone, or repeated by too many: what is decided anew is a run all the same.
    if (request.rerun !== undefined && (refusal instanceof Conflict || refusal instanceof NotFound)) {
      const { rerun: _rerun, ...alone } = request;
      await create(owners, alone);
      return;
    }
    // The id fits this key and nobody else can make it: what stands there is this delivery's.
    if (!(refusal instanceof Conflict)) throw refusal;
  }
}

function endedRequest(delivery: Placed, decision: Extract<Decision, { kind: 'ended' }>): CreateRequest {
  const { pipelineName, status, reason } = decision;
  return {
    ...commonRequest(delivery, decision, status !== 'CANCELLED'),
    yaml: '',
    ended: { pipelineName, status, ...(reason === undefined ? {} : { reason }) },
  };
}

function commonRequest(
  delivery: Placed,
  { source, keepsSuperseded }: Decision,
  isHead: boolean,
): Pick<CreateRequest, 'runId' | 'tenant' | 'key' | 'origin' | 'keepsSuperseded' | 'rerun'> {
  const {
    runId,
    tenant,
    key,
    provider,
    repository,
    ref,
    commit,
    deliveryId,
    cloneUrl,
    pullRequest,
    defaultBranch,
    repeats,
  } = delivery;
  const actor = repeats?.actor ?? delivery.actor;
  return {
    runId,
    tenant,
    key,
    ...(keepsSuperseded === true ? { keepsSuperseded } : {}),
    ...(repeats === undefined ? {} : { rerun: { parent: repeats.run } }),
    origin: {
      kind: 'webhook',
      provider,
      repository,
      ref,
      commit,
      source,
      deliveryId,
      trusted: isTrustedDelivery(delivery),
      ...(pullRequest === undefined
        ? {}
        : { pullRequest: originOf(pullRequest, isHead ? delivery.sequence : undefined) }),
      cloneUrl,
      ...(actor == null ? {} : { actor }),
      ...(defaultBranch === undefined ? {} : { defaultBranch }),
    },
  };
}

function originOf({ number, branch, fork }: PullRequestEvent, sequence: number | undefined): PullRequestOrigin {
  return { number, branch, fork, ...(sequence === undefined ? {} : { sequence }) };
}
