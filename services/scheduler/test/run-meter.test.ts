/** What is counted of runs: once for what is committed, by the journal's times. */
import { RunMeter } from '@penstock/scheduler/testing';
import { Metrics, metricsText, noMeter } from '@penstock/telemetry/metrics';
import { describe, expect, it, vi } from 'vitest';
import { Harness, stage, text } from './support.ts';

function metered(): { readonly world: Harness; read(): Promise<string[]> } {
  const metrics = new Metrics({ process: false });
  const world = new Harness({ meter: new RunMeter(metrics) });
  return {
    world,
    read: async () =>
      (await metricsText([await metrics.snapshot()], undefined)).body
        .split('\n')
        .filter((line) => /_total|_sum|_count/u.test(line) && !line.startsWith('#')),
  };
}

describe('the figures of runs', () => {
  it('tell how a run went, and how long its stage waited for a runner and took', async () => {
    const { world, read } = metered();
    world.create(text([stage('a'), stage('b', { after: ['a'] })]));
    world.settle();
    world.later(3_000);
    world.session('r1-1', { credits: 2 });
    world.settle();
    world.later(5_000);
    world.result(world.job(0), 'failed');
    world.settle();
    expect(await read()).toEqual(
      expect.arrayContaining([
        'penstock_runs_total{status="FAILED",verdict="failed",trigger="api"} 1',
        'penstock_stages_total{status="FAILED",reason="exit"} 1',
        'penstock_stages_total{status="SKIPPED",reason="dependency"} 1',
        'penstock_stage_wait_seconds_sum{kind="runner"} 3',
        'penstock_stage_wait_seconds_count{kind="runner"} 1',
        'penstock_stage_duration_seconds_sum 5',
        'penstock_run_duration_seconds_sum 8',
      ]),
    );
  });

  it('count nothing before it is committed', async () => {
    const { world, read } = metered();
    const { id } = world.create(text([stage('a')]));
    world.settle();
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    expect((await read()).some((line) => line.startsWith('penstock_runs_total'))).toBe(false);
    world.settle();
    expect(await read()).toEqual(
      expect.arrayContaining([
        'penstock_runs_total{status="CANCELLED",verdict="cancelled",trigger="api"} 1',
        'penstock_stages_total{status="CANCELLED",reason="cancelled"} 1',
      ]),
    );
  });

  it('tell how long a run was held, and by what', async () => {
    const { world, read } = metered();
    const limits = { limits: { pipelineRunLimit: 100, maxConcurrent: 1 } };
    const first = world.create(text([stage('a')]), limits);
    world.create(text([stage('a')]), limits);
    world.settle();
    world.later(7_000);
    world.partition.cancel({ runId: first.id, tenants: ['ada'] }, () => {});
    world.settle();
    expect(await read()).toEqual(expect.arrayContaining(['penstock_stage_wait_seconds_sum{kind="quota"} 7']));
  });

  it('are made of what has happened to a run, not of its thousands of stages', async () => {
    const { world, read } = metered();
    const stages = Array.from({ length: 50 }, (_, index) => stage(`s${index}`));
    const { id } = world.create(text(stages));
    world.settle();
    const [run] = world.partition.liveRuns;
    if (run === undefined) throw new Error('there is no run');
    const reads = vi.spyOn(run.state.stages, 'get');
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    reads.mockClear();
    new RunMeter(noMeter).committed({ run, from: 1, to: run.events.length });
    expect(reads).not.toHaveBeenCalled();
    world.settle();
    expect(await read()).toContain('penstock_runs_total{status="CANCELLED",verdict="cancelled",trigger="api"} 1');
  });
});
