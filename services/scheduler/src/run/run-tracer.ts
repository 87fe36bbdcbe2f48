/**
 * The spans of what is committed of runs, sent by the owner that decided it, once. A run has a span that others are parts of; each attempt
 * of a stage has one with its waiting for a runner in it. What happens at the runner it sends itself, below the same span.
 */
import type { AttemptRef } from '@penstock/bus';
import { triggerOf, type RunEvent, type RunState, type TriggerOrigin, type Version } from '@penstock/run';
import { spanIdOf, traceIdOf, traceparentFor, type SpanRecord, type Tracer } from '@penstock/telemetry/traces';
import type { CommittedPart } from './ports.ts';

type TracedRun = CommittedPart['run'];
type EndOfAttempt = Extract<RunEvent, { readonly type: 'stage_completed' | 'stage_retrying' | 'attempt_gone' }>;
type StartOfAttempt = Extract<RunEvent, { readonly type: 'stage_started' }>;

/** Values of `cicd.pipeline.result` and `cicd.pipeline.task.run.result`. */
type Result = 'success' | 'failure' | 'error' | 'timeout' | 'cancellation' | 'skip';

/** Reasons that are the machinery's and not the stage's. */
const ERRORS: ReadonlySet<string> = new Set(['runner_lost', 'no_runner', 'checkout', 'image', 'quarantined', 'secret']);
const PROVIDERS: Readonly<Record<string, string>> = { git_host_a: 'github', git_host_b: 'gitlab' };

export class RunTracer {
  readonly #tracer: Tracer;

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  committed({ run, from, to }: CommittedPart): void {
    const { id } = run.state;
    const traceId = traceIdOf(id);
    if (!this.#tracer.keeps(traceId)) return;
    for (let version = from; version <= to; version += 1) {
      const event = run.events[version - 1];
      if (event !== undefined) this.#trace(run, traceId, version, event);
    }
  }

  /** What a stage, and its runner, go on with. */
  traceparent({ runId, stage, attempt }: Pick<AttemptRef, 'runId' | 'stage' | 'attempt'>): string {
    const traceId = traceIdOf(runId);
    return traceparentFor(traceId, spanIdOf(runId, stage, attempt), this.#tracer.keeps(traceId));
  }

  #trace(run: TracedRun, traceId: string, version: Version, event: RunEvent): void {
    switch (event.type) {
      case 'stage_completed':
      case 'stage_retrying':
      case 'attempt_gone':
        if (event.attempt > 0) this.#attemptEnded(run, traceId, version, event);
        break;
      case 'run_cancelled':
        this.#runEnded(run, traceId, event.at, 'cancellation', undefined);
        break;
      case 'run_completed':
        this.#runEnded(run, traceId, event.at, resultOf(event.status, event.reason), event.reason);
        break;
      case 'run_quarantined':
        this.#runEnded(run, traceId, event.at, 'error', 'quarantined');
        break;
      default:
    }
  }

  #runEnded({ state }: TracedRun, traceId: string, at: number, result: Result, reason: string | undefined): void {
    this.#tracer.send({
      name: 'pipeline run',
      traceId,
      spanId: spanIdOf(state.id),
      from: state.createdAt,
      to: at,
      serves: true,
      failed: isFailure(result),
      link: state.origin.traceparent,
      attributes: {
        'cicd.pipeline.name': state.pipelineName,
        'cicd.pipeline.run.id': state.id,
        'cicd.pipeline.result': result,
        'error.type': isFailure(result) ? (reason ?? result) : undefined,
        'penstock.trigger': triggerOf(state.origin),
        'penstock.request.id': state.origin.requestId,
        ...repositoryAttributes(state.origin),
      },
    });
  }

  #attemptEnded(run: TracedRun, traceId: string, version: Version, event: EndOfAttempt): void {
    const started = startOf(run, version, event);
    if (started === undefined) return;
    const { state } = run;
    const { stage, attempt } = event;
    const { start, waitsFrom } = started;
    const spanId = spanIdOf(state.id, stage, attempt);
    const { result, reason } = endOf(event);
    const span: SpanRecord = {
      name: `stage ${stage}`,
      traceId,
      spanId,
      parentSpanId: spanIdOf(state.id),
      from: waitsFrom,
      to: event.at,
      failed: isFailure(result),
      attributes: {
        'cicd.pipeline.run.id': state.id,
        'cicd.pipeline.task.name': stage,
        'cicd.pipeline.task.run.id': `${state.id}/${stage}/${start.number ?? attempt}`,
        'cicd.pipeline.task.run.result': result,
        'cicd.worker.name': start.runner,
        'error.type': isFailure(result) ? (reason ?? result) : undefined,
        'penstock.attempt': start.number ?? attempt,
      },
    };
    this.#tracer.send(span);
    this.#tracer.send({
      name: 'queue',
      traceId,
      spanId: spanIdOf(state.id, stage, attempt, 'queue'),
      parentSpanId: spanId,
      from: waitsFrom,
      to: start.at,
      attributes: {},
    });
  }
}

/** The grant that ends here, and since when its stage had waited for one. */
function startOf(
  { events }: TracedRun,
  before: Version,
  { stage, attempt }: EndOfAttempt,
): { readonly start: StartOfAttempt; readonly waitsFrom: number } | undefined {
  let start: StartOfAttempt | undefined;
  for (let index = before - 2; index >= 0; index -= 1) {
    const event = events[index];
    if (event === undefined) continue;
    if (start === undefined) {
      if (event.type === 'stage_started' && event.stage === stage && event.attempt === attempt) start = event;
    } else if (event.type === 'stages_queued' ? event.stages.includes(stage) : isReturnOf(event, stage))
      return { start, waitsFrom: event.at };
  }
  return start === undefined ? undefined : { start, waitsFrom: start.at };
}

function isReturnOf(event: RunEvent, stage: string): boolean {
  return event.type === 'stage_returned' && event.stage === stage;
}

function endOf(event: EndOfAttempt): { readonly result: Result; readonly reason?: string | undefined } {
  if (event.type === 'attempt_gone') return { result: 'cancellation' };
  const { reason } = event;
  return { result: event.type === 'stage_retrying' ? failureOf(reason) : resultOf(event.status, reason), reason };
}

function resultOf(status: RunState['status'], reason: string | undefined): Result {
  if (status === 'SUCCESS') return 'success';
  if (status === 'CANCELLED') return 'cancellation';
  return status === 'SKIPPED' ? 'skip' : failureOf(reason);
}

function failureOf(reason: string | undefined): Result {
  if (reason === 'timeout') return 'timeout';
  return reason !== undefined && ERRORS.has(reason) ? 'error' : 'failure';
}

function isFailure(result: Result): boolean {
  return result === 'failure' || result === 'error' || result === 'timeout';
}

function repositoryAttributes(origin: TriggerOrigin): SpanRecord['attributes'] {
  const { repository, ref, commit, provider, pullRequest } = origin;
  return {
    'vcs.repository.name': repository,
    'vcs.provider.name': provider === undefined ? undefined : (PROVIDERS[provider] ?? provider),
    'vcs.ref.head.name': ref?.replace(/^refs\/(?:heads|tags)\//u, ''),
    'vcs.ref.head.revision': commit,
    'vcs.ref.head.type': ref?.startsWith('refs/tags/') === true ? 'tag' : ref === undefined ? undefined : 'branch',
    'vcs.ref.base.name': pullRequest?.branch,
    'vcs.change.id': pullRequest === undefined ? undefined : String(pullRequest.number),
  };
}
