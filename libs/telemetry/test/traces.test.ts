/** Spans on their way to a receiver: what is counted, what is refused, and that nothing waits for it. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { noMeter, type Meter } from '../src/metrics.ts';
import { silentLog } from '../src/log.ts';
import {
  openTracer,
  spanIdOf,
  traceIdOf,
  traceparentFor,
  tracesProblems,
  tracesSecrets,
  type SpanRecord,
  type Tracer,
} from '../src/traces.ts';
import { traceparentOf } from '../src/request.ts';

const SPAN: SpanRecord = {
  name: 'a span',
  traceId: traceIdOf('run'),
  spanId: spanIdOf('run'),
  from: 1_800_000_000_000,
  to: 1_800_000_000_001.5,
  attributes: { text: 'ä'.repeat(1_000), absent: undefined },
};

let server: Server;
let tracer: Tracer | undefined;
afterEach(async () => {
  delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  delete process.env['OTEL_EXPORTER_OTLP_TIMEOUT'];
  await tracer?.close();
  tracer = undefined;
  server?.closeAllConnections();
  server?.close();
});

/** `answer`: the status of every answer; null: there is none. */
async function receiver(
  answer: number | null,
): Promise<{ readonly bodies: Buffer[]; readonly came: () => Promise<void> }> {
  const bodies: Buffer[] = [];
  let heard = Promise.withResolvers<void>();
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => void parts.push(part));
    request.on('end', () => {
      bodies.push(Buffer.concat(parts));
      if (answer !== null) response.writeHead(answer).end();
      heard.resolve();
      heard = Promise.withResolvers();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { bodies, came: () => heard.promise };
}

function counting(): {
  readonly meter: Meter;
  readonly counts: Record<string, number>;
  readonly until: (outcome: string) => Promise<void>;
} {
  const counts: Record<string, number> = {};
  const waiting = new Map<string, () => void>();
  const meter: Meter = {
    ...noMeter,
    add: (_name, labels, count = 1) => {
      const { outcome } = labels as { readonly outcome: string };
      counts[outcome] = (counts[outcome] ?? 0) + count;
      waiting.get(outcome)?.();
    },
  };
  return { meter, counts, until: (outcome) => new Promise((resolve) => waiting.set(outcome, resolve)) };
}

describe('traces', () => {
  it('are off without a receiver, and where OpenTelemetry is told so', async () => {
    const options = { service: 'test', log: silentLog, meter: noMeter };
    const at = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
    expect(await openTracer({}, options)).toBeUndefined();
    expect(await openTracer({ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, options)).toBeUndefined();
    expect(await openTracer({ ...at, OTEL_SDK_DISABLED: 'TRUE' }, options)).toBeUndefined();
    expect(await openTracer({ ...at, OTEL_TRACES_EXPORTER: 'none' }, options)).toBeUndefined();
    expect(tracesProblems({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toEqual([]);
  });

  it('reach the receiver as protobuf, texts cut', async () => {
    const { bodies } = await receiver(200);
    const { meter, counts, until } = counting();
    tracer = await openTracer(process.env, { service: 'test', log: silentLog, meter });
    const sent = until('sent');
    tracer?.send(SPAN);
    await sent;
    expect(counts).toEqual({ sent: 1 });
    const body = Buffer.concat(bodies);
    expect(body.includes('penstock-test')).toBe(true);
    expect(body.includes(Buffer.from(SPAN.traceId, 'hex'))).toBe(true);
    expect(body.includes('ä'.repeat(256))).toBe(true);
    expect(body.includes('ä'.repeat(257))).toBe(false);
  }, 60_000);

  it('that nobody takes are counted as lost, and said once', async () => {
    await receiver(400);
    const { meter, counts, until } = counting();
    const warned: string[] = [];
    const log = { ...silentLog, warn: (_fields: unknown, message: string) => void warned.push(message) };
    tracer = await openTracer(process.env, { service: 'test', log, meter });
    for (let round = 0; round < 2; round++) {
      const failed = until('failed');
      tracer?.send(SPAN);
      await failed;
    }
    expect(counts).toEqual({ failed: 2 });
    expect(warned).toEqual(['the receiver of traces does not take them: they are dropped']);
  }, 60_000);

  it('do not fill the memory while the receiver is silent, nor hold up the end', async () => {
    const { came } = await receiver(null);
    const { meter, counts } = counting();
    tracer = await openTracer(process.env, { service: 'test', log: silentLog, meter });
    const heard = came();
    for (let index = 0; index < 10_000; index++) tracer?.send(SPAN);
    await heard;
    expect(counts).toEqual({ dropped: 10_000 - 8_192 });
    await tracer?.close();
    tracer?.send(SPAN);
    expect(counts['dropped']).toBe(10_000 - 8_192 + 1);
  }, 60_000);

  it('are kept by the share that the variables say, the same everywhere', async () => {
    const at = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    };
    const options = { service: 'test', log: silentLog, meter: noMeter };
    const [one, two] = await Promise.all([
      openTracer({ ...at, OTEL_TRACES_SAMPLER_ARG: '0.25' }, options),
      openTracer({ ...at, OTEL_TRACES_SAMPLER_ARG: '0.25' }, options),
    ]);
    const ids = Array.from({ length: 4_000 }, (_, index) => traceIdOf(`run-${index}`));
    const kept = ids.filter((id) => one?.keeps(id));
    expect(kept.length).toBeGreaterThan(800);
    expect(kept.length).toBeLessThan(1_200);
    expect(ids.filter((id) => two?.keeps(id))).toEqual(kept);
    await Promise.all([one?.close(), two?.close()]);
  }, 60_000);

  it('are refused before the start where a variable cannot be followed, with what it takes', () => {
    const at = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
    expect(tracesProblems(at)).toEqual([]);
    expect(
      tracesProblems({ ...at, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf', OTEL_TRACES_SAMPLER: 'always_off' }),
    ).toEqual([]);
    for (const [variables, told] of [
      [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /^OTEL_EXPORTER_OTLP_ENDPOINT is to be the address/u],
      [{ ...at, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'x' }, /^OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is to be/u],
      [
        { ...at, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
        /^OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'; .* http\/protobuf only$/u,
      ],
      [{ ...at, OTEL_TRACES_EXPORTER: 'zipkin' }, /^OTEL_TRACES_EXPORTER is 'zipkin'/u],
      [{ ...at, OTEL_TRACES_SAMPLER: 'jaeger_remote' }, /^OTEL_TRACES_SAMPLER is 'jaeger_remote'/u],
      [
        { ...at, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' },
        /^OTEL_TRACES_SAMPLER_ARG is '2'/u,
      ],
    ] as const)
      expect(tracesProblems(variables)).toEqual([expect.stringMatching(told)]);
  });

  it('bring keys along that no log shows', () => {
    expect(tracesSecrets({ OTEL_EXPORTER_OTLP_HEADERS: 'api-key=s3cret-a, other=b%20c' })).toEqual(
      expect.arrayContaining(['s3cret-a', 'b%20c', 'b c']),
    );
    expect(tracesSecrets({})).toEqual([]);
  });

  it('have ids of the run alone, as W3C writes them', () => {
    expect(traceIdOf('r')).toBe(traceIdOf('r'));
    expect(spanIdOf('r', 'a', 1)).not.toBe(spanIdOf('r', 'a', 2));
    const text = traceparentFor(traceIdOf('r'), spanIdOf('r'), false);
    expect(traceparentOf(text)).toBe(text);
  });
});
