/** What the query answers where schedulers, runners and stages are there or not: by promtool, where the machine has it. */
import { execFileSync, spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { DEMAND_QUERY } from '@penstock/config';

const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (!hasPromtool && notRun !== undefined)
  appendFileSync(notRun, 'the query of the scaler in Prometheus: promtool is not installed\n');

const slots = (scheduler: string, labels: string, busy: number): string =>
  `penstock_runner_slots{instance="${scheduler}",labels="${labels}",state="busy"} ${busy}`;
const owns = (scheduler: string): string => `penstock_partitions{instance="${scheduler}",state="open"} 8`;
const waits = (scheduler: string, count: number): string =>
  `penstock_queue_demand{instance="${scheduler}",labels="linux"} ${count}`;

const CASES: Readonly<Record<string, readonly [series: readonly string[], figure: number | null]>> = {
  'nothing where no scheduler is scraped': [[], null],
  'nothing where only runners are known': [[slots('a', 'linux', 3)], null],
  'zero where nobody waits and no runner is there': [[owns('a')], 0],
  'what waits, where no runner is there': [[owns('a'), owns('b'), waits('a', 3), waits('b', 4)], 7],
  'what runs, where nobody waits': [[owns('a'), slots('a', 'linux', 5)], 5],
  'a runner once, of whom two schedulers tell': [
    [owns('a'), owns('b'), waits('b', 2), slots('a', 'linux', 5), slots('b', 'linux', 5), slots('a', 'gpu', 1)],
    8,
  ],
};

describe.runIf(hasPromtool)('the query answers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-query-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each(Object.entries(CASES))('has an answer: %s', (_name, [series, figure]) => {
    const file = join(folder, 'test.yaml');
    const test = {
      interval: '1m',
      input_series: series.map((each) => {
        const at = each.lastIndexOf(' ');
        return { series: each.slice(0, at), values: each.slice(at + 1) };
      }),
      promql_expr_test: [
        { expr: DEMAND_QUERY, eval_time: '0m', exp_samples: figure === null ? [] : [{ labels: '{}', value: figure }] },
      ],
    };
    writeFileSync(file, JSON.stringify({ tests: [test] }));
    expect(execFileSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })).toContain('SUCCESS');
  });
});

it('the ScaledObject of KEDA asks the same', () => {
  const manifest = fileURLToPath(new URL('../../../k8s/components/keda/runner.yaml', import.meta.url));
  expect(readFileSync(manifest, 'utf8')).toContain(`query: '${DEMAND_QUERY}'`);
});
