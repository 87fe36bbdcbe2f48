/** What a started server tells Prometheus of itself: read as text, and by a real Prometheus where the machine has one. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { METRICS } from '@penstock/telemetry/metrics';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RULES = join(ROOT, 'deploy/prometheus/rules.yaml');
const YAML =
  'pipeline: {name: figures}\nstages:\n  a: {run: "echo one"}\n  b: {after: a, run: exit 1, retry: {max: 1, delay: 1s, on: [failure]}}\n';

const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (!hasPrometheus && notRun !== undefined) appendFileSync(notRun, 'figures read by Prometheus: it is not installed\n');

let server: RunningServer;
/** Takes what the server's webhook is sent. */
const receiver = createHttpServer((_request, response) => response.end());

const read = async (headers: Record<string, string> = {}): Promise<Response> =>
  await fetch(`${server.url}/metrics`, { headers });
const figures = async (): Promise<string> => await (await read({ authorization: `Bearer ${server.apiKey}` })).text();

beforeAll(async () => {
  server = await startServer({ env: { SERVICE_SLOTS: '2' } });
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
});

describe('the figures of a server', () => {
  it('are for who has the API key alone', async () => {
    expect((await read()).status).toBe(401);
    expect((await read({ authorization: 'Bearer wrong' })).status).toBe(401);
  });

  it('are all there after a run, those of both threads', async () => {
    await until('the run is counted', async () => (await figures()).includes('penstock_runs_total{status="FAILED"'));
    await until('its end is told', async () =>
      (await figures()).includes('penstock_outgoing_total{outcome="taken"} 1'),
    );
    const text = await figures();
    // Nobody watched a run that went on.
    const lacking = Object.keys(METRICS).filter((name) => !text.includes(`# TYPE ${name} `));
    expect(lacking.filter((name) => name !== 'penstock_stream_lag_seconds')).toEqual([]);
    expect(text).toContain('penstock_runs_total{status="FAILED",verdict="failed",trigger="api"} 1');
    expect(text).toContain('penstock_stages_total{status="SUCCESS",reason="none"} 1');
    expect(text).toContain('penstock_stage_wait_seconds_count{kind="backoff"} 1');
    expect(text).toMatch(/penstock_stage_start_seconds_count 3/u);
    expect(text).toMatch(/penstock_http_requests_total\{route="\/graphql",method="POST",code="200"\} \d/u);
    expect(text).toMatch(/penstock_deliveries_total\{provider="git_host_a",outcome="ignored"\} 1/u);
    expect(text).toMatch(/penstock_partitions\{state="open"\} [1-9]/u);
    expect(text).toMatch(/penstock_runner_slots\{labels="[^"]*linux[^"]*",state="free"\} 2/u);
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

  it('takes every figure, and evaluates every alert without an error', async () => {
    const query = encodeURIComponent('sum(penstock_runs_total{verdict="failed"})');
    await until(
      'Prometheus has the run',
      async () => {
        const data = await ask<{ result: { value: [number, string] }[] }>(`/query?query=${query}`);
        return data?.result[0]?.value[1] === '1';
      },
      60_000,
    );
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

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}
