import { describe, expect, it } from 'vitest';
import { Metrics } from '../src/index.ts';

describe('metrics', () => {
  it('renders counters, gauges and histograms as Prometheus reads them', () => {
    const metrics = new Metrics();
    const commits = metrics.counter('penstock_commits_total', 'Commits acknowledged.');
    commits.add({ partition: 0 });
    commits.add({ partition: 0 }, 2);
    commits.add({ partition: 1 });
    metrics.gauge('penstock_live_runs', 'Runs in memory.').set(7);
    const latency = metrics.histogram('penstock_commit_seconds', 'From join to acknowledgement.', [0.1, 1]);
    for (const value of [0.05, 0.1, 0.5, 3]) latency.observe(value);
    expect(metrics.render()).toBe(`# HELP penstock_commits_total Commits acknowledged.
# TYPE penstock_commits_total counter
penstock_commits_total{partition="0"} 3
penstock_commits_total{partition="1"} 1
# HELP penstock_live_runs Runs in memory.
# TYPE penstock_live_runs gauge
penstock_live_runs 7
# HELP penstock_commit_seconds From join to acknowledgement.
# TYPE penstock_commit_seconds histogram
penstock_commit_seconds_bucket{le="0.1"} 2
penstock_commit_seconds_bucket{le="1"} 3
penstock_commit_seconds_bucket{le="+Inf"} 4
penstock_commit_seconds_sum 3.65
penstock_commit_seconds_count 4
`);
  });

  it('escapes label values', () => {
    const metrics = new Metrics();
    metrics.counter('c', 'Help.').add({ name: 'a"b\\c\nd' });
    expect(metrics.render()).toContain('c{name="a\\"b\\\\c\\nd"} 1');
  });

  it('refuses one name twice, a counter that goes back, and labels without an end', () => {
    const metrics = new Metrics();
    const counter = metrics.counter('c', 'Help.');
    expect(() => metrics.gauge('c', 'Help.')).toThrow('there already');
    expect(() => counter.add({}, -1)).toThrow(RangeError);
    expect(() => {
      for (let user = 0; user < 2_000; user++) counter.add({ user });
    }).toThrow('not from a known set');
  });
});
