import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pipelineHealth } from '../src/index.ts';
import { runId, runView, stageView } from './support.ts';

describe('pipelineHealth', () => {
  it('an unknown name gives zeros', () => {
    expect(pipelineHealth('nothing', [])).toEqual({
      pipelineName: 'nothing',
      totalRuns: 0,
      succeeded: 0,
      failed: 0,
      interrupted: 0,
      successRate: 0,
      flakyStages: [],
      stages: [],
    });
  });

  it('counts every run, and rates those that have ended: succeeded / terminal', () => {
    const views = (
      ['SUCCESS', 'SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED', 'RUNNING', 'QUEUED', 'PENDING'] as const
    ).map((status, index) => runView({ id: runId(index), status }));
    expect(pipelineHealth('build', views)).toMatchObject({
      totalRuns: 8,
      succeeded: 2,
      failed: 1,
      interrupted: 0,
      successRate: 2 / 5,
    });
  });

  it('counts an interrupted run apart, not as failed, and against the rate', () => {
    const views = [
      runView({ id: runId(1) }),
      runView({ id: runId(2), status: 'FAILED', outcome: 'interrupted', reason: 'runner_lost' }),
      runView({ id: runId(3), status: 'FAILED', outcome: 'quarantined' }),
    ];
    expect(pipelineHealth('build', views)).toMatchObject({
      succeeded: 1,
      failed: 1,
      interrupted: 1,
      successRate: 1 / 3,
    });
  });

  it('no run that has ended gives the rate 0', () => {
    expect(pipelineHealth('build', [runView({ id: runId(1), status: 'RUNNING' })])).toMatchObject({
      totalRuns: 1,
      successRate: 0,
    });
  });

  it('flags a stage as flaky when it both succeeded and failed within the window', () => {
    const health = pipelineHealth('build', [
      runView({
        id: runId(3),
        status: 'RUNNING',
        stages: [stageView('lint', 'SUCCESS', { secs: 2 }), stageView('test', 'RUNNING')],
      }),
      runView({
        id: runId(2),
        status: 'FAILED',
        stages: [
          stageView('lint', 'SUCCESS', { secs: 4 }),
          stageView('test', 'FAILED', { secs: 10 }),
          stageView('deploy', 'SKIPPED'),
        ],
      }),
      runView({
        id: runId(1),
        stages: [
          stageView('lint', 'SUCCESS', { secs: 3 }),
          stageView('test', 'SUCCESS', { secs: 5.5 }),
          stageView('deploy', 'FAILED', { secs: 1 }),
        ],
      }),
    ]);
    expect(health.flakyStages).toEqual(['test']);
    expect(health.stages).toEqual([
      { name: 'lint', runs: 3, failures: 0, avgDurationSecs: 3, flaky: false },
      { name: 'test', runs: 2, failures: 1, avgDurationSecs: 7.75, flaky: true },
      { name: 'deploy', runs: 1, failures: 1, avgDurationSecs: 1, flaky: false },
    ]);
  });

  it('flags a stage as flaky that succeeded after attempts that failed, and not one that failed in all of them', () => {
    const health = pipelineHealth('build', [
      runView({
        id: runId(1),
        stages: [
          stageView('test', 'SUCCESS', { secs: 9, failedAttempts: 2 }),
          stageView('lint', 'FAILED', { secs: 2, failedAttempts: 2 }),
        ],
      }),
    ]);
    expect(health.flakyStages).toEqual(['test']);
    expect(health.stages).toMatchObject([
      { name: 'test', runs: 1, failures: 0, flaky: true },
      { name: 'lint', runs: 1, failures: 1, flaky: false },
    ]);
  });

  it('does not blame a stage for the loss of its runner, for a missing one or for a cancel', () => {
    const views = [
      runView({ id: runId(1), stages: [stageView('test', 'SUCCESS', { secs: 1 })] }),
      runView({ id: runId(2), stages: [stageView('test', 'FAILED', { secs: 100, reason: 'runner_lost' })] }),
      runView({ id: runId(3), stages: [stageView('test', 'FAILED', { reason: 'no_runner' })] }),
      runView({ id: runId(4), stages: [stageView('test', 'CANCELLED', { secs: 100, reason: 'cancelled' })] }),
    ];
    expect(pipelineHealth('build', views).stages).toEqual([
      { name: 'test', runs: 1, failures: 0, avgDurationSecs: 1, flaky: false },
    ]);
  });

  it('adds up for any window', () => {
    const anyView = fc.record({
      status: fc.constantFrom('PENDING', 'QUEUED', 'RUNNING', 'SUCCESS', 'FAILED', 'SKIPPED', 'CANCELLED'),
      interrupted: fc.boolean(),
      stages: fc.uniqueArray(
        fc.record({
          name: fc.constantFrom('a', '__proto__', 'constructor'),
          status: fc.constantFrom('SUCCESS', 'FAILED', 'SKIPPED', 'RUNNING'),
          secs: fc.nat(100),
        }),
        { selector: ({ name }) => name },
      ),
    });
    fc.assert(
      fc.property(fc.array(anyView, { maxLength: 20 }), (window) => {
        const health = pipelineHealth(
          'p',
          window.map(({ status, interrupted, stages }, index) =>
            runView({
              id: runId(index),
              status,
              outcome: status === 'FAILED' && interrupted ? 'interrupted' : null,
              stages: stages.map(({ name, status: stage, secs }) => stageView(name, stage, { secs })),
            }),
          ),
        );
        expect(health.totalRuns).toBe(window.length);
        expect(health.succeeded + health.failed + health.interrupted).toBe(
          window.filter(({ status }) => status === 'SUCCESS' || status === 'FAILED').length,
        );
        expect(health.successRate).toBeGreaterThanOrEqual(0);
        expect(health.successRate).toBeLessThanOrEqual(1);
        for (const stage of health.stages) expect(stage.flaky).toBe(stage.failures > 0 && stage.runs > stage.failures);
        expect(health.flakyStages).toEqual(health.stages.filter(({ flaky }) => flaky).map(({ name }) => name));
      }),
    );
  });
});
