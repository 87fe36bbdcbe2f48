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

interface Started {
  readonly start: Extract<RunEvent, { readonly type: 'stage_started' }>;
  readonly waitsFrom: number;
}

/** Values of `cicd.pipeline.result` and `cicd.pipeline.task.run.result`. */
type Result = 'success' | 'failure' | 'error' | 'timeout' | 'cancellation' | 'skip';

/** Reasons that are the machinery's and not the stage's. */
const ERRORS: ReadonlySet<string> = new Set(['runner_lost', 'no_runner', 'checkout', 'image', 'quarantined', 'secret']);
const PROVIDERS: Readonly<Record<string, string>> = { git_host_a: 'github', git_host_b: 'gitlab' };

/** Of a run's stages that wait or run, as far as its events have been looked at: each is looked at once, however many there are. */
class Known {
  #version: Version = 0;
  readonly #waitsFrom = new Map<string, number>();
  readonly #started = new Map<string, Started>();

  /** Up to this event. */
  learn(events: readonly RunEvent[], upTo: Version): void {
    for (; this.#version < upTo; this.#version += 1) {
      const event = events[this.#version];
      if (event?.type === 'stages_queued') for (const stage of event.stages) this.#waitsFrom.set(stage, event.at);
      else if (event?.type === 'stage_returned') this.#waitsFrom.set(event.stage, event.at);
      else if (event?.type === 'stage_started')
        this.#started.set(event.stage, { start: event, waitsFrom: this.#waitsFrom.get(event.stage) ?? event.at });
    }
  }

  /** The grant that ends here, and since when its stage had waited for one. */
  takeStarted({ stage, attempt }: EndOfAttempt): Started | undefined {
    const started = this.#started.get(stage);
    if (started?.start.attempt !== attempt) return undefined;
    this.#started.delete(stage);
    this.#waitsFrom.delete(stage);
    return started;
  }
}

export class RunTracer {
  readonly #tracer: Tracer;
  readonly #known = new WeakMap<TracedRun, Known>();

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
  }

  committed({ run, from, to }: CommittedPart): void {
    const { id } = run.state;
    const traceId = traceIdOf(id);
    if (!this.#tracer.keeps(traceId)) return;
    const known = this.#known.get(run) ?? new Known();
    this.#known.set(run, known);
    for (let version = from; version <= to; version += 1) {
      const event = run.events[version - 1];
      known.learn(run.events, version);
      if (event !== undefined) this.#trace(run, traceId, known, event);
    }
  }

  /** What a stage, and its runner, go on with. */
  traceparent({ runId, stage, attempt }: Pick<AttemptRef, 'runId' | 'stage' | 'attempt'>): string {
    const traceId = traceIdOf(runId);
    return traceparentFor(traceId, spanIdOf(runId, stage, attempt), this.#tracer.keeps(traceId));
  }

  #trace(run: TracedRun, traceId: string, known: Known, event: RunEvent): void {
    switch (event.type) {
      case 'stage_completed':
      case 'stage_retrying':
      case 'attempt_gone':
        if (event.attempt > 0) this.#attemptEnded(run, traceId, known, event);
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

  #attemptEnded({ state }: TracedRun, traceId: string, known: Known, event: EndOfAttempt): void {
    const started = known.takeStarted(event);
    if (started === undefined) return;
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
