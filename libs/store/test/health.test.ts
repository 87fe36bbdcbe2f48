import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunView, StageReason } from '@penstock/run';
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
      infrastructure: 0,
      flaky: 0,
      p50DurationSecs: 0,
      p95DurationSecs: 0,
      successRate: 0,
      flakyStages: [],
      stages: [],
    });
  });

  it('counts no stage that a run has adopted: the run that it ran in does (P30)', () => {
    const stages = [
      { ...stageView('build', 'SUCCESS'), adopted: true as const },
      stageView('test', 'SUCCESS', { secs: 1 }),
    ];
    expect(pipelineHealth('build', [runView({ id: runId(1), stages })]).stages).toMatchObject([
      { name: 'test', runs: 1 },
    ]);
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
    expect(health.stages).toMatchObject([
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

  it('a stage that is FAILED for the loss of its runner or for a missing one has failed; a cancelled one has not', () => {
    const views = [
      runView({ id: runId(1), stages: [stageView('test', 'SUCCESS', { secs: 1 })] }),
      runView({ id: runId(2), stages: [stageView('test', 'FAILED', { secs: 100, reason: 'runner_lost' })] }),
      runView({ id: runId(3), stages: [stageView('test', 'FAILED', { reason: 'no_runner' })] }),
      runView({ id: runId(4), stages: [stageView('test', 'CANCELLED', { secs: 100, reason: 'cancelled' })] }),
    ];
    expect(pipelineHealth('build', views).stages).toMatchObject([
      { name: 'test', runs: 3, failures: 2, avgDurationSecs: 1, p95DurationSecs: 1, flaky: true, flakeRate: 0 },
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

describe('what the newest runs say about flakes', () => {
  const like = { commit: 'c1', fingerprint: 'f1' } as const;
  const passed = (number: number, more: object = {}) =>
    runView({ id: runId(number), stages: [stageView('test', 'SUCCESS', { secs: 1 })], ...more });
  const failed = (number: number, more: object = {}, reason: StageReason = 'exit') =>
    runView({
      id: runId(number),
      status: 'FAILED',
      stages: [stageView('test', 'FAILED', { secs: 1, reason })],
      ...more,
    });

  it('a run is flaky that passed where an older one of its commit and definition failed; a broken commit is none', () => {
    const health = pipelineHealth('build', [
      passed(6, like),
      passed(5, like),
      failed(4, { ...like, commit: 'broken' }),
      failed(3, like),
      failed(2, { ...like, fingerprint: 'f2' }),
      passed(1, like),
    ]);
    expect(health).toMatchObject({ succeeded: 3, failed: 3, flaky: 2, infrastructure: 0 });
    expect(health.stages).toMatchObject([{ name: 'test', runs: 6, failures: 3, flaky: true, flakeRate: 1 / 6 }]);
  });

  it('what failed among strangers, or without secrets, says nothing about a run of one’s own', () => {
    const others = [
      failed(2, { ...like, key: 'service/git_host_a/unsigned/acme/shop' }),
      failed(1, { ...like, trusted: false }),
    ];
    const health = pipelineHealth('build', [passed(3, like), ...others]);
    expect(health).toMatchObject({ flaky: 0, stages: [{ flakeRate: 0 }] });
  });

  it('a stage that passed at a later attempt was flaky in that run', () => {
    const retried = runView({
      id: runId(2),
      stages: [stageView('test', 'SUCCESS', { secs: 1, failedAttempts: 2 })],
    });
    expect(pipelineHealth('build', [retried, passed(1)])).toMatchObject({ flaky: 1, stages: [{ flakeRate: 0.5 }] });
  });

  it('the machinery at fault is counted, and says nothing of how often the stage flakes', () => {
    expect(pipelineHealth('build', [failed(2, like, 'image'), passed(1, like)])).toMatchObject({
      failed: 1,
      infrastructure: 1,
      flaky: 0,
      stages: [{ runs: 2, failures: 1, flakeRate: 0 }],
    });
    const retried = runView({ id: runId(3), stages: [stageView('test', 'SUCCESS', { secs: 1, failedAttempts: 1 })] });
    expect(pipelineHealth('build', [retried, failed(2, like, 'runner_lost'), passed(1, like)])).toMatchObject({
      stages: [{ runs: 3, failures: 1, flakeRate: 1 / 2 }],
    });
  });

  it('durations are those of runs and stages that succeeded or failed, by nearest rank', () => {
    const at = (secs: number) => new Date(Date.parse('2025-11-21T13:00:00.000Z') + secs * 1000).toISOString();
    const views = Array.from({ length: 20 }, (_, index) =>
      runView({
        id: runId(20 - index),
        finishedAt: at(index + 1),
        stages: [stageView('test', 'SUCCESS', { secs: index + 1 })],
      }),
    );
    const cancelled = runView({ id: runId(30), status: 'CANCELLED', finishedAt: at(900) });
    expect(pipelineHealth('build', [cancelled, ...views])).toMatchObject({
      p50DurationSecs: 10,
      p95DurationSecs: 19,
      stages: [{ p95DurationSecs: 19 }],
    });
  });

  it('tells flaky stages from broken ones on histories whose rates are known: precision and recall of 0.95', () => {
    let [right, wrong, missed] = [0, 0, 0];
    for (let seed = 1; seed <= 20; seed++) {
      const history = drawHistory(drawsFrom(seed));
      const { stages } = pipelineHealth('build', history.views);
      const told = new Set(stages.filter(({ flakeRate }) => flakeRate > 0).map(({ name }) => name));
      for (const [name, rate] of history.rates) {
        if (rate > 0 && told.has(name)) right += 1;
        else if (rate > 0) missed += 1;
        else if (told.has(name)) wrong += 1;
      }
    }
    expect(right).toBeGreaterThan(100);
    expect(right / (right + wrong)).toBeGreaterThanOrEqual(0.95);
    expect(right / (right + missed)).toBeGreaterThanOrEqual(0.95);
  });
});

/** From 0 to below 1, the same for a seed: a linear congruential generator. */
function drawsFrom(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 0x1_0000_0000;
}

/** 500 runs of some 150 commits, of which some break a stage for good; stages fail by chance at their rate, once or twice retried or not. */
function drawHistory(draw: () => number): {
  readonly views: RunView[];
  readonly rates: ReadonlyMap<string, number>;
} {
  const rates = new Map(Array.from({ length: 20 }, (_, index) => [`s${index}`, draw() < 0.5 ? 0.03 + draw() / 5 : 0]));
  const retries = new Set([...rates.keys()].filter(() => draw() < 0.5));
  const broken = new Map<number, string>();
  const views = Array.from({ length: 500 }, (_, index) => {
    const commit = Math.floor(index / 3) - (draw() < 0.2 ? Math.floor(draw() * 3) : 0);
    if (!broken.has(commit)) broken.set(commit, draw() < 0.2 ? `s${Math.floor(draw() * rates.size)}` : '');
    const stages = [...rates].map(([name, rate]) => {
      const fails = () => broken.get(commit) === name || draw() < rate;
      if (!fails()) return stageView(name, 'SUCCESS', { secs: 1 });
      const passesLater = retries.has(name) && !fails();
      return stageView(name, passesLater ? 'SUCCESS' : 'FAILED', {
        secs: 1,
        ...(passesLater ? { failedAttempts: 1 } : { reason: 'exit' }),
      });
    });
    return runView({
      id: runId(index),
      status: stages.some(({ status }) => status === 'FAILED') ? 'FAILED' : 'SUCCESS',
      commit: `c${commit}`,
      fingerprint: 'f',
      stages,
    });
  });
  return { views: views.reverse(), rates };
}
