import { describe, expect, it } from 'vitest';
import { readdirSync, readFileSync } from 'node:fs';
import { METRICS, Metrics, metricsText, renderMetricsTable } from '../src/metrics.ts';

const textOf = async (all: readonly Metrics[], accept?: string): Promise<{ type: string; body: string }> =>
  await metricsText(await Promise.all(all.map((metrics) => metrics.snapshot())), accept);

describe('what a process counts', () => {
  it('is read as Prometheus reads it, the threads of one process added up', async () => {
    const [engine, api] = [new Metrics({ process: true }), new Metrics({ process: false })];
    engine.add('penstock_commits_total', { outcome: 'stored' });
    api.add('penstock_commits_total', { outcome: 'stored' }, 2);
    api.observe('penstock_http_seconds', { route: '/graphql' }, 0.02);
    const { type, body } = await textOf([engine, api]);
    expect(type).toContain('text/plain; version=0.0.4');
    expect(body).toContain('\npenstock_commits_total{outcome="stored"} 3\n');
    expect(body).toContain('penstock_http_seconds_bucket{le="0.025",route="/graphql"} 1');
    expect(body).toMatch(/\nprocess_start_time_seconds \d+\n/u);
    expect(body).toContain('nodejs_version_info{');
  });

  it('is given as OpenMetrics to who asks for that: the name of a counter without `_total`, and an end', async () => {
    const metrics = new Metrics({ process: false });
    metrics.add('penstock_log_bytes_total', {}, 7);
    const { type, body } = await textOf([metrics], 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5');
    expect(type).toContain('application/openmetrics-text');
    expect(body).toContain('# TYPE penstock_log_bytes counter\npenstock_log_bytes_total 7\n');
    expect(body).toMatch(/# EOF\n$/u);
  });

  it('of a gauge is what stands when somebody reads: what was there before and is no more is not shown', async () => {
    const metrics = new Metrics({ process: false });
    let waiting = [{ labels: { labels: 'linux' }, value: 2 }];
    metrics.gauge('penstock_queue_demand', () => waiting);
    metrics.gauge('penstock_queue_demand', () => [{ labels: { labels: 'linux' }, value: 1 }]);
    expect((await textOf([metrics])).body).toContain('penstock_queue_demand{labels="linux"} 3');
    waiting = [{ labels: { labels: 'gpu' }, value: 5 }];
    const { body } = await textOf([metrics]);
    expect(body).toContain('penstock_queue_demand{labels="gpu"} 5');
    expect(body).toContain('penstock_queue_demand{labels="linux"} 1');
  });

  it('has no negative times, whatever a clock did', async () => {
    const metrics = new Metrics({ process: false });
    metrics.observe('penstock_run_duration_seconds', {}, -3_600);
    expect((await textOf([metrics])).body).toContain('penstock_run_duration_seconds_sum 0');
  });

  it('quotes labels that hold quotes and ends of lines: nobody adds a series by naming a label so', async () => {
    const metrics = new Metrics({ process: false });
    metrics.gauge('penstock_queue_demand', () => [{ labels: { labels: 'a"\nevil 1\n' }, value: 1 }]);
    expect((await textOf([metrics])).body.split('\n').filter((line) => line.startsWith('evil'))).toEqual([]);
  });

  it('has the same buckets for all times', () => {
    const own = Object.entries(METRICS).filter(([, definition]) => 'buckets' in definition);
    expect(own.map(([name]) => name)).toEqual(['penstock_commit_runs']);
  });

  it('stands in the operating guide, name by name', () => {
    const guide = readFileSync(new URL('../../../docs/operating.md', import.meta.url), 'utf8');
    expect(guide).toContain(renderMetricsTable());
  });
});

describe('what is watched', () => {
  const root = new URL('../../../', import.meta.url);
  const within = (folder: string, ending: string): string[] =>
    readdirSync(new URL(folder, root))
      .filter((name) => name.endsWith(ending))
      .map((name) => `${folder}${name}`);
  const files = [
    ...within('docs/', '.md'),
    ...within('deploy/prometheus/', '.yaml'),
    ...within('deploy/grafana/', '.json'),
    ...within('k8s/components/keda/', '.yaml'),
  ];

  it.each(files)('%s names metrics that there are', (file) => {
    const named = [...readFileSync(new URL(file, root), 'utf8').matchAll(/\bpenstock_[a-z_]*[a-z]\b/g)];
    const known = new Set<string>(Object.keys(METRICS));
    const plain = named.map(([name]) => (known.has(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '')));
    expect(plain.filter((name) => !known.has(name))).toEqual([]);
  });
});
