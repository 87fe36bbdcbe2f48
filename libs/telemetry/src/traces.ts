/**
 * Spans of runs, for whoever receives OpenTelemetry's own protocol (OTLP over HTTP, protobuf). Off unless OpenTelemetry's variables name
 * a receiver, and then nothing of its SDK is loaded (`otlp-tracer.ts` is imported by need).
 *
 *  TRACES-1 A run has one trace. Its id, and those of its spans, are made from the run's id: who takes a run over goes on with the
 *     same trace, and nobody keeps a span that is open.
 *  TRACES-2 Sending never waits and never throws. What does not fit the queue, or is not taken by the receiver, is dropped and counted.
 */
import { hash } from 'node:crypto';
import type { SamplerName, Tracer, TracerOptions } from './span.ts';

export type { SpanRecord, Tracer } from './span.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const TRACE_ID_LENGTH = 32;
const SPAN_ID_LENGTH = 16;
const SAMPLED = '01';
const NOT_SAMPLED = '00';
const PROTOCOL = 'http/protobuf';
const SAMPLERS: readonly SamplerName[] = ['always_on', 'always_off', 'traceidratio'];

/** Undefined: traces are off. Whoever reads its configuration has asked `tracesProblems` before. */
export async function openTracer(env: Environment, options: TracerOptions): Promise<Tracer | undefined> {
  if (!areTracesOn(env)) return undefined;
  const { OtlpTracer } = await import('./otlp-tracer.ts');
  const tracer = new OtlpTracer(options, samplerOf(env));
  options.log.info({ endpoint: shownEndpoint(env) }, 'sends the traces of runs');
  return tracer;
}

/** What stands in OpenTelemetry's variables that cannot be done here; empty where traces are off. */
export function tracesProblems(env: Environment): string[] {
  if (!areTracesOn(env)) return [];
  const problems: string[] = [];
  const [name, endpoint] = endpointOf(env);
  if (!isHttpUrl(endpoint))
    problems.push(`${name} is to be the address of an OTLP receiver, as in http://collector:4318; it is another text`);
  const [protocolName, protocol] = firstOf(env, ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']);
  if (protocol !== undefined && protocol !== PROTOCOL)
    problems.push(`${protocolName} is '${protocol.slice(0, 40)}'; traces are sent by ${PROTOCOL} only`);
  const exporter = textOf(env, 'OTEL_TRACES_EXPORTER');
  if (exporter !== undefined && exporter !== 'otlp')
    problems.push(`OTEL_TRACES_EXPORTER is '${exporter.slice(0, 40)}'; it takes 'otlp' and 'none'`);
  const sampler = samplerName(env);
  if (!SAMPLERS.some((known) => known === sampler))
    problems.push(
      `OTEL_TRACES_SAMPLER is '${sampler.slice(0, 40)}'; it takes ${SAMPLERS.join(', ')}, and these with 'parentbased_' before them`,
    );
  const share = textOf(env, 'OTEL_TRACES_SAMPLER_ARG');
  if (sampler === 'traceidratio' && share !== undefined && !(Number(share) >= 0 && Number(share) <= 1))
    problems.push(`OTEL_TRACES_SAMPLER_ARG is '${share.slice(0, 40)}'; it takes a share from 0 to 1`);
  return problems;
}

/** What must not appear in a log: the receiver's headers hold its keys. */
export function tracesSecrets(env: Environment): string[] {
  return ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'].flatMap((name) =>
    (textOf(env, name) ?? '').split(',').flatMap((pair) => {
      const value = pair.slice(pair.indexOf('=') + 1).trim();
      return value === '' ? [] : [value, decoded(value)];
    }),
  );
}

/** TRACES-1 */
export function traceIdOf(runId: string): string {
  return hash('sha256', runId, 'hex').slice(0, TRACE_ID_LENGTH);
}

/** `path`: which span of the run. */
export function spanIdOf(runId: string, ...path: readonly (string | number)[]): string {
  return hash('sha256', [runId, ...path].join('\n'), 'hex').slice(-SPAN_ID_LENGTH);
}

/** W3C Trace Context, of a span of ours. */
export function traceparentFor(traceId: string, spanId: string, isKept: boolean): string {
  return `00-${traceId}-${spanId}-${isKept ? SAMPLED : NOT_SAMPLED}`;
}

/** A run is where its trace begins: a sampler that looks at the parent has none to look at. */
function samplerOf(env: Environment): { readonly name: SamplerName; readonly share: number } {
  return { name: samplerName(env) as SamplerName, share: Number(textOf(env, 'OTEL_TRACES_SAMPLER_ARG') ?? '1') };
}

function samplerName(env: Environment): string {
  return (textOf(env, 'OTEL_TRACES_SAMPLER') ?? 'always_on').replace(/^parentbased_/u, '');
}

function areTracesOn(env: Environment): boolean {
  return (
    textOf(env, 'OTEL_SDK_DISABLED')?.toLowerCase() !== 'true' &&
    textOf(env, 'OTEL_TRACES_EXPORTER') !== 'none' &&
    endpointOf(env)[1] !== undefined
  );
}

function endpointOf(env: Environment): readonly [name: string, value: string | undefined] {
  return firstOf(env, ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT']);
}

function firstOf(env: Environment, names: readonly string[]): readonly [name: string, value: string | undefined] {
  const name = names.find((each) => textOf(env, each) !== undefined) ?? '';
  return [name, textOf(env, name)];
}

/** A variable that is set to nothing counts as not set. */
function textOf(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === '' ? undefined : value;
}

function isHttpUrl(text: string | undefined): boolean {
  return /^https?:$/u.test(URL.parse(text ?? '')?.protocol ?? '');
}

/** Without what may be a credential in it. */
function shownEndpoint(env: Environment): string | undefined {
  return URL.parse(endpointOf(env)[1] ?? '')?.origin;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
