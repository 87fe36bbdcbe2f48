/** Sends spans by OpenTelemetry's own exporter, in batches, from a queue with a bound. It owns what waits, and how much of it was lost. */
import {
  type Attributes,
  type HrTime,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import { withRequest } from './request.ts';
import type { SamplerName, SpanRecord, Tracer, TracerOptions } from './span.ts';

/** With what is on its way: about 16 MiB at most, some seconds of a busy scheduler. */
const QUEUE_MAX = 8_192;
const BATCH_MAX = 512;
/** What waits for a batch to fill. */
const BATCH_MS_MAX = 1_000;
/** A receiver that is away must not hold up the end of a process. */
const CLOSE_MS_MAX = 3_000;
/** Between two lines about a receiver that takes nothing. */
const TELL_MS = 60_000;
/** A text is somebody's: a name, a ref. */
const TEXT_LENGTH_MAX = 256;
const FLAG_SAMPLED = 1;
const NO_EVENTS: ReadableSpan['events'] = [];
const SCOPE = { name: 'penstock' };
const NO_TIME: HrTime = [0, 0];

export class OtlpTracer implements Tracer {
  readonly #options: TracerOptions;
  readonly #sampler: Sampler;
  readonly #resource: ReadableSpan['resource'];
  readonly #processor: BatchSpanProcessor;
  /** Handed over, and neither taken nor lost. */
  #waiting = 0;
  #toldAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: TracerOptions, { name, share }: { readonly name: SamplerName; readonly share: number }) {
    this.#options = options;
    this.#sampler = samplerOf(name, share);
    this.#resource = defaultResource()
      .merge(resourceFromAttributes({ 'service.namespace': 'penstock', 'service.name': `penstock-${options.service}` }))
      // `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` stand above.
      .merge(detectResources({ detectors: [envDetector] }));
    this.#processor = new BatchSpanProcessor({
      exporter: this.#counted(new OTLPTraceExporter()),
      // Never reached: what is over is counted here, where the processor would drop it in silence.
      maxQueueSize: QUEUE_MAX + 1,
      maxExportBatchSize: BATCH_MAX,
      scheduledDelayMillis: BATCH_MS_MAX,
    });
  }

  keeps(traceId: string): boolean {
    const { decision } = this.#sampler.shouldSample(ROOT_CONTEXT, traceId, '', SpanKind.INTERNAL, {}, []);
    return decision === SamplingDecision.RECORD_AND_SAMPLED;
  }

  send(span: SpanRecord): void {
    if (this.#waiting >= QUEUE_MAX || this.#isClosed) {
      this.#options.meter.add('penstock_spans_total', { outcome: 'dropped' });
      this.#tell(undefined, 'spans are dropped: the receiver of traces takes them too slowly');
      return;
    }
    this.#waiting += 1;
    const made = readable(span, this.#resource);
    // A batch is for many requests; its timer and its line about a receiver are for none of them.
    withRequest(undefined, () => this.#processor.onEnd(made));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, CLOSE_MS_MAX);
    await Promise.race([promise, this.#processor.shutdown().catch(() => {})]);
    clearTimeout(timer);
  }

  #counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          this.#waiting -= spans.length;
          const isTaken = result.error === undefined && result.code === 0;
          this.#options.meter.add('penstock_spans_total', { outcome: isTaken ? 'sent' : 'failed' }, spans.length);
          if (!isTaken) this.#tell(result.error, 'the receiver of traces does not take them: they are dropped');
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    };
  }

  #tell(error: Error | undefined, message: string): void {
    const now = performance.now();
    if (now - this.#toldAt < TELL_MS) return;
    this.#toldAt = now;
    this.#options.log.warn(error === undefined ? {} : { err: error }, message);
  }
}

function samplerOf(name: SamplerName, share: number): Sampler {
  if (name === 'always_on') return new AlwaysOnSampler();
  return name === 'always_off' ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(share);
}

function readable(span: SpanRecord, resource: ReadableSpan['resource']): ReadableSpan {
  const { traceId, spanId, parentSpanId, from, to, link } = span;
  const context: SpanContext = { traceId, spanId, traceFlags: FLAG_SAMPLED };
  return {
    name: cut(span.name),
    kind: span.serves === true ? SpanKind.SERVER : SpanKind.INTERNAL,
    spanContext: () => context,
    ...(parentSpanId === undefined
      ? {}
      : { parentSpanContext: { traceId, spanId: parentSpanId, traceFlags: FLAG_SAMPLED } }),
    startTime: timeOf(from),
    // By clocks of several machines: nothing ends before it begins.
    endTime: timeOf(Math.max(from, to)),
    status: { code: span.failed === true ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: attributesOf(span.attributes),
    links: link === undefined ? [] : linksOf(link),
    events: NO_EVENTS,
    duration: NO_TIME,
    ended: true,
    resource,
    instrumentationScope: SCOPE,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function attributesOf(given: SpanRecord['attributes']): Attributes {
  const attributes: Attributes = {};
  for (const name of Object.keys(given)) {
    const value = given[name];
    if (value !== undefined) attributes[name] = typeof value === 'string' ? cut(value) : value;
  }
  return attributes;
}

function cut(text: string): string {
  return text.length <= TEXT_LENGTH_MAX ? text : text.slice(0, TEXT_LENGTH_MAX).toWellFormed();
}

/** `traceparentOf` has checked it. */
function linksOf(traceparent: string): Link[] {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & FLAG_SAMPLED, isRemote: true } }];
}

function timeOf(milliseconds: number): HrTime {
  const seconds = Math.floor(milliseconds / 1_000);
  return [seconds, Math.round((milliseconds - seconds * 1_000) * 1e6)];
}
