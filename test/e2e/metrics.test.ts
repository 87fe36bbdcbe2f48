/**
 * What a started server tells of itself: its figures, read as text and by a real Prometheus where the machine has one; the traces of runs, by a
 * receiver of OTLP that others have made; and its log, by one id from the request to the last line about a run.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MockOtlpServer, type ReceivedSpan } from '@elastic/mockotlpserver';
import { METRICS } from '@penstock/telemetry/metrics';
import { githubPush, makeRepository } from '@penstock/webhook-ingest/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RULES = join(ROOT, 'deploy/prometheus/rules.yaml');
const DASHBOARD = join(ROOT, 'deploy/grafana/penstock.json');
const YAML =
  'pipeline: {name: figures}\nstages:\n  a: {run: "echo one"}\n  b: {after: a, run: exit 1, retry: {max: 1, delay: 1s, on: [failure]}}\n';

const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (!hasPrometheus && notRun !== undefined) appendFileSync(notRun, 'figures read by Prometheus: it is not installed\n');

let server: RunningServer;
/** Takes what the server's webhook is sent. */
const receiver = createHttpServer((_request, response) => response.end());

const spans: ReceivedSpan[] = [];
const collector = new MockOtlpServer({
  services: ['http'],
  httpHostname: '127.0.0.1',
  httpPort: 0,
  logLevel: 'fatal',
  onTrace: ({ resourceSpans }) => {
    for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
  },
});
const repository = makeRepository();

const read = async (headers: Record<string, string> = {}): Promise<Response> =>
  await fetch(`${server.url}/metrics`, { headers });
const figures = async (): Promise<string> => await (await read({ authorization: `Bearer ${server.apiKey}` })).text();

beforeAll(async () => {
  await collector.start();
  server = await startServer({
    env: { SERVICE_SLOTS: '2', SERVICE_LOG_LEVEL: 'debug', OTEL_EXPORTER_OTLP_ENDPOINT: String(collector.httpUrl) },
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  await server.graphql('mutation ($url: String!) { createHook(url: $url, events: ["run.completed"]) { id } }', {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
  });
  const { data } = await server.graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, {
    yaml: YAML,
    waitSeconds: 60,
  });
  await readStream(`${server.url}/pipeline/${data.triggerPipeline.run.id}/logs`, server.apiKey);
  await fetch(`${server.url}/webhook`, { method: 'POST', headers: { 'x-github-event': 'ping' }, body: '{}' });
}, 120_000);
afterAll(async () => {
  await server.stop();
  receiver.closeAllConnections();
  receiver.close();
  await collector.close();
  repository.remove();
});

describe('the figures of a server', () => {
  it('are for who has the API key alone', async () => {
    expect((await read()).status).toBe(401);
    expect((await read({ authorization: 'Bearer wrong' })).status).toBe(401);
  });

  it('are all there after a run, those of both threads', async () => {
    await until('the run is counted', async () => (await figures()).includes('penstock_runs_total{status="FAILED"'));
    await until('its spans are sent', async () => (await figures()).includes('penstock_spans_total{outcome="sent"}'));
    await until('its end is told', async () =>
      (await figures()).includes('penstock_outgoing_total{outcome="taken"} 1'),
    );
    await until('its slot is free', async () =>
      /penstock_runner_slots\{labels="[^"]*linux[^"]*",state="free"\} 2/u.test(await figures()),
    );
    const text = await figures();
    // Nobody watched a run that went on, no large file came past the broker, and that has this machine's clock.
    const idle = ['penstock_stream_lag_seconds', 'penstock_contents_bytes_total', 'penstock_clock_ahead_seconds'];
    const lacking = Object.keys(METRICS).filter((name) => !text.includes(`# TYPE ${name} `));
    expect(lacking.filter((name) => !idle.includes(name))).toEqual([]);
    expect(text).toContain('penstock_runs_total{status="FAILED",verdict="failed",trigger="api"} 1');
    expect(text).toContain('penstock_stages_total{status="SUCCESS",reason="none"} 1');
    expect(text).toContain('penstock_stage_wait_seconds_count{kind="backoff"} 1');
    expect(text).toMatch(/penstock_stage_start_seconds_count 3/u);
    expect(text).toMatch(/penstock_http_requests_total\{route="\/graphql",method="POST",code="200"\} \d/u);
    expect(text).toMatch(/penstock_deliveries_total\{provider="git_host_a",outcome="ignored"\} 1/u);
    expect(text).toMatch(/penstock_partitions\{state="open"\} [1-9]/u);
  });

  it('have no series for a path or a label that somebody invents', async () => {
    await fetch(`${server.url}/no/such/path/of/mine`);
    await server.graphql(TRIGGER, {
      yaml: 'pipeline: {name: nobody}\nstages: {a: {run: "true", runs_on: [invented-label]}}\n',
      waitSeconds: 0,
    });
    await until('the stage waits', async () => (await figures()).includes('penstock_queue_demand{labels="other"} 1'));
    const text = await figures();
    expect(text).not.toContain('such/path');
    expect(text).not.toContain('invented-label');
  });
});

describe('a push', () => {
  const requestId = 'push-4711';
  const callersTrace = '0af7651916cd43dd8448eb211c80319c';
  const hexOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString('hex');
  const isOf = (runId: string) => (span: ReceivedSpan) => attributeOf(span, 'cicd.pipeline.run.id') === runId;
  let runId: string;
  let answeredId: string | null;

  beforeAll(async () => {
    const commit = repository.commit({
      '.pipeline.yaml': 'pipeline: {name: followed}\nstages:\n  only: {run: echo "trace $TRACEPARENT"}\n',
    });
    const body = JSON.stringify(githubPush({ url: repository.url, commit }));
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': 'followed',
      'x-request-id': requestId,
      traceparent: `00-${callersTrace}-b7ad6b7169203331-01`,
    };
    const answer = await fetch(`${server.url}/webhook`, { method: 'POST', headers, body });
    answeredId = answer.headers.get('x-request-id');
    runId = ((await answer.json()) as { run_id: string }).run_id;
  }, 120_000);

  it('is followed by one id through the logs of all who touched it, to the last line about its run', async () => {
    expect(answeredId).toBe(requestId);
    const lines = (): { msg: string; service: string; runId?: string }[] =>
      server
        .output()
        .split('\n')
        .filter((line) => line.includes(`"requestId":"${requestId}"`))
        .map((line) => JSON.parse(line) as { msg: string; service: string; runId?: string });
    const told = (service: string, msg: string) => (): boolean =>
      lines().some((line) => line.service === service && line.msg === msg && (line.runId ?? runId) === runId);
    for (const [service, msg] of [
      ['webhook-ingest', 'a delivery is kept'],
      ['webhook-ingest', 'a delivery is processed'],
      ['scheduler', 'a run is accepted'],
      ['scheduler', 'a stage is granted'],
      ['runner', 'a stage has begun'],
      ['runner', 'a stage has ended, and the broker has its log'],
      ['scheduler', 'a stage has ended'],
      ['scheduler', 'a run has ended'],
    ] as const)
      await until(`${service}: ${msg}`, () => Promise.resolve(told(service, msg)()));
    // No line about the run lacks it, and none about another has it.
    const others = server.output().split('\n');
    expect(others.filter((line) => line.includes(`"runId":"${runId}"`) && !line.includes(requestId))).toEqual([]);
    expect(lines().filter((line) => (line.runId ?? runId) !== runId)).toEqual([]);
  }, 60_000);

  it('is one trace, of whose stage a part is what its commands are given', async () => {
    await until('the run and its parts have come', () =>
      Promise.resolve(
        ['pipeline run', 'stage only'].every((name) => spans.some((span) => span.name === name && isOf(runId)(span))),
      ),
    );
    const run = spans.find((span) => span.name === 'pipeline run' && isOf(runId)(span));
    const traceId = hexOf(run?.traceId);
    const ofTrace = (): ReceivedSpan[] => spans.filter((span) => hexOf(span.traceId) === traceId);
    await until('what happened at the runner has come', () => Promise.resolve(ofTrace().length >= 5));
    const parents = Object.fromEntries(
      ofTrace().map(({ name, parentSpanId }) => [
        name,
        ofTrace().find(({ spanId }) => hexOf(spanId) === hexOf(parentSpanId))?.name,
      ]),
    );
    expect(parents).toEqual({
      'pipeline run': undefined,
      'stage only': 'pipeline run',
      queue: 'stage only',
      start: 'stage only',
      execute: 'stage only',
    });
    expect(ofTrace()).toHaveLength(5);
    expect(run?.links.map((link) => hexOf(link.traceId))).toEqual([callersTrace]);
    expect(attributeOf(run, 'penstock.request.id')).toBe(requestId);
    expect(attributeOf(run, 'cicd.pipeline.result')).toBe('success');
    expect(attributeOf(run, 'vcs.repository.name')).toBe('acme/demo');
    const execute = ofTrace().find(({ name }) => name === 'execute');
    const stream = await readStream(`${server.url}/pipeline/${runId}/logs`, server.apiKey);
    expect(JSON.stringify(stream)).toContain(`trace 00-${traceId}-${hexOf(execute?.spanId)}-01`);
  }, 60_000);

  it('is in the figures', async () => {
    const figure = 'penstock_runs_total{status="SUCCESS",verdict="passed",trigger="push"} 1';
    await until('the run is counted', async () => (await figures()).includes(figure));
    expect(await figures()).toContain(figure);
  }, 60_000);
});

function attributeOf(span: ReceivedSpan | undefined, name: string): unknown {
  return span?.attributes.find(({ key }) => key === name)?.value['stringValue'];
}

describe.runIf(hasPrometheus)('Prometheus', () => {
  const folder = temporaryFolder('penstock-prometheus-');
  let prometheus: ChildProcess;
  let api: string;

  beforeAll(async () => {
    const port = await freePort();
    api = `http://127.0.0.1:${port}/api/v1`;
    const config = join(folder.path, 'prometheus.yaml');
    const target = new URL(server.url).host;
    writeFileSync(
      config,
      JSON.stringify({
        global: { scrape_interval: '1s', evaluation_interval: '1s' },
        rule_files: [RULES],
        scrape_configs: [
          {
            job_name: 'penstock',
            authorization: { credentials: server.apiKey },
            static_configs: [{ targets: [target] }],
          },
        ],
      }),
      { mode: 0o600 },
    );
    prometheus = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder.path, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    );
  });
  afterAll(async () => {
    if (prometheus.exitCode === null) {
      prometheus.kill('SIGKILL');
      await once(prometheus, 'exit');
    }
    folder.remove();
  });

  const ask = async <Data>(path: string): Promise<Data | null> => {
    try {
      const answer = (await (await fetch(`${api}${path}`)).json()) as { status: string; data: Data };
      return answer.status === 'success' ? answer.data : null;
    } catch {
      return null;
    }
  };

  it('takes every figure, those of the push among them, and evaluates every alert without an error', async () => {
    for (const which of ['verdict="failed"', 'trigger="push",verdict="passed"']) {
      const query = encodeURIComponent(`sum(penstock_runs_total{${which}})`);
      await until(
        `Prometheus has the run of ${which}`,
        async () => {
          const data = await ask<{ result: { value: [number, string] }[] }>(`/query?query=${query}`);
          return data?.result[0]?.value[1] === '1';
        },
        60_000,
      );
    }
    interface Rule {
      readonly name: string;
      readonly health: string;
      readonly lastError?: string;
    }
    const rulesNow = async (): Promise<Rule[]> =>
      (await ask<{ groups: { rules: Rule[] }[] }>('/rules'))?.groups.flatMap(({ rules }) => rules) ?? [];
    await until(
      'the rules are evaluated',
      async () => {
        const rules = await rulesNow();
        return rules.length > 0 && rules.every(({ health }) => health !== 'unknown');
      },
      60_000,
    );
    expect((await rulesNow()).filter(({ health }) => health !== 'ok')).toEqual([]);
  }, 120_000);

  it('answers the query of every panel of the Grafana dashboard, with lines where something has happened', async () => {
    // Nobody watched a run that went on, no large file came past the broker, and the broker is on this machine.
    const idle = new Set([
      'Events behind their commit',
      'Large files past the broker',
      "Clocks, ahead of the broker's",
    ]);
    const empty = async (): Promise<string[]> => {
      const lacking: string[] = [];
      for (const { title, expr } of panelQueries()) {
        const query = expr.replaceAll('$job', 'penstock').replaceAll('$__rate_interval', '1m');
        // oxlint-disable-next-line no-await-in-loop -- One query after the other is enough for a test.
        const data = await ask<{ result: unknown[] }>(`/query?query=${encodeURIComponent(query)}`);
        if (data === null) throw new Error(`Prometheus refuses the query of '${title}': ${query}`);
        if (data.result.length === 0 && !idle.has(title)) lacking.push(title);
      }
      return lacking;
    };
    // A queue has lines while something waits.
    await server.graphql(TRIGGER, {
      yaml: 'pipeline: {name: waits}\nstages: {a: {run: "true", runs_on: [nobody-has-it]}}\n',
      waitSeconds: 0,
    });
    await until('Prometheus answers', async () => (await ask('/status/buildinfo')) !== null, 60_000);
    let lacking: readonly string[] = ['not asked yet'];
    const areFull = async (): Promise<boolean> => {
      lacking = await empty();
      return lacking.length === 0;
    };
    // Those that lack lines to the end are told.
    await until('every panel has lines', areFull, 60_000).catch(() => {});
    expect(lacking).toEqual([]);
  }, 120_000);
});

it('every alert names a paragraph of the operating guide, and figures that there are', () => {
  const rules = readFileSync(RULES, 'utf8');
  const guide = readFileSync(join(ROOT, 'docs/operating.md'), 'utf8').toLowerCase();
  for (const [, name] of rules.matchAll(/alert: (\w+)/gu)) {
    expect(rules).toContain(`docs/operating.md#alert-${String(name).toLowerCase()}`);
    expect(guide, name).toContain(`### alert: ${String(name).toLowerCase()}`);
  }
  const known = Object.keys(METRICS);
  for (const [, figure] of rules.matchAll(/\b(penstock_\w+)/gu))
    expect(known, figure).toContain(String(figure).replace(/_(?:bucket|sum|count)$/u, ''));
});

it('the dashboard shows every figure, by labels that it has', () => {
  const shown = new Set<string>();
  for (const { title, expr } of panelQueries())
    for (const [, name = '', matched = ''] of expr.matchAll(/\b(penstock_\w+)\{([^}]*)\}/gu)) {
      const known = name.replace(/_(?:bucket|sum|count)$/u, '');
      const figure = Object.entries(METRICS).find(([is]) => is === known)?.[1];
      if (figure === undefined) throw new Error(`the panel '${title}' shows ${name}, which there is not`);
      shown.add(known);
      const grouped = /\bby \(([^)]*)\)/u.exec(expr)?.[1]?.split(', ') ?? [];
      const used = [...grouped, ...[...matched.matchAll(/(\w+)=/gu)].map(([, label = '']) => label)];
      expect(['job', 'instance', 'le', ...figure.labels], title).toEqual(expect.arrayContaining(used));
    }
  expect(Object.keys(METRICS).filter((name) => !shown.has(name))).toEqual([]);
});

interface PanelQuery {
  readonly title: string;
  readonly expr: string;
}

function panelQueries(): PanelQuery[] {
  const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
    readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
  };
  return panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}
