import { describe, expect, it } from 'vitest';
import { judge, verdictOf, viewOf, withEarlierFailure, type Judgement, type StageReason } from '@penstock/run';
import { matrix, pipeline, stage, DrivenRun } from './support.ts';

const retried = { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure', 'lost'] } } as const;
const until = (endsAt: number) => ({
  quarantine: { until: '1970-01-01', endsAt, start: 0, path: 'stages.a.quarantine' },
});

/** The word alone is the same of the state. */
function judged(driven: DrivenRun): Judgement | null {
  const judgement = judge(viewOf(driven.run));
  expect(verdictOf(driven.run, driven.run.stages.touched())).toBe(judgement?.verdict ?? null);
  return judgement;
}

describe('the verdict of a run', () => {
  it('there is none while it runs', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.grant('a');
    expect(judged(driven)).toBeNull();
  });

  it('passed: every stage at the first attempt', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.grant('a');
    driven.succeed('a');
    expect(judged(driven)).toEqual({ verdict: 'passed', evidence: [] });
  });

  it('flaky: a stage passed after a retry of its own failure, not after one of a lost runner', () => {
    const flaky = new DrivenRun(pipeline(stage('a', retried)));
    flaky.grant('a');
    flaky.fail('a');
    flaky.tell({ type: 'wake', due: undefined });
    flaky.grant('a');
    flaky.succeed('a');
    expect(judged(flaky)).toEqual({ verdict: 'flaky', evidence: ["'a' passed after 1 failed attempt"] });
    const lost = new DrivenRun(pipeline(stage('a', retried)));
    lost.grant('a');
    lost.lose('a');
    lost.tell({ type: 'wake', due: undefined });
    lost.grant('a');
    lost.succeed('a');
    expect(judged(lost)).toEqual({ verdict: 'passed', evidence: [] });
  });

  it('failed: it names the stages whose failure counts, and no more than ten of them', () => {
    const driven = new DrivenRun(
      pipeline(stage('soft', { allowFailure: true }), ...matrix('m', 12, { failFast: false })),
    );
    driven.grant('soft');
    driven.fail('soft');
    for (let index = 0; index < 12; index++) {
      driven.grant(`m (n=${index})`);
      driven.fail(`m (n=${index})`);
    }
    const judgement = judged(driven);
    expect(judgement?.verdict).toBe('failed');
    expect(judgement?.evidence).toHaveLength(11);
    expect(judgement?.evidence[0]).toBe("'m (n=0)' failed (exit code 1)");
    expect(judgement?.evidence[10]).toBe('and 2 more stages');
  });

  it('failed with the exit code 0: what the stage left for later ones is what cannot be read', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.grant('a');
    driven.fail('a', 'exit', 0);
    expect(judged(driven)?.evidence).toEqual([
      "'a' failed (its $SERVICE_OUTPUT cannot be read; its log says which line)",
    ]);
  });

  it.each<StageReason>(['image', 'checkout', 'evicted'])(
    'infrastructure: a stage failed for %s, whatever else failed',
    (reason) => {
      const driven = new DrivenRun(pipeline(stage('a'), stage('b')));
      driven.grant('a');
      driven.grant('b');
      driven.fail('a');
      driven.fail('b', reason);
      expect(judged(driven)?.verdict).toBe('infrastructure');
      expect(judged(driven)?.evidence[0]).toMatch(/^'b' failed: its /);
    },
  );

  it('interrupted stands above infrastructure, cancelled above all', () => {
    const lost = new DrivenRun(pipeline(stage('a'), stage('b')));
    lost.grant('a');
    lost.grant('b');
    lost.fail('b', 'image');
    lost.lose('a');
    expect(judged(lost)).toEqual({ verdict: 'interrupted', evidence: ["'a' failed: its runner was lost"] });
    const cancelled = new DrivenRun(pipeline(stage('a'), stage('b')));
    cancelled.grant('a');
    cancelled.fail('a');
    cancelled.tell({ type: 'cancel' });
    expect(judged(cancelled)).toEqual({
      verdict: 'cancelled',
      evidence: ['the run was cancelled with 1 stage unfinished'],
    });
  });

  it('a run that could not begin says whose doing that was', () => {
    const ended = (reason: StageReason): Judgement | null => {
      const driven = new DrivenRun(pipeline(), { started: false });
      driven.tell({ type: 'start', held: undefined, ended: { status: 'FAILED', reason } });
      return judged(driven);
    };
    expect(ended('checkout')).toEqual({ verdict: 'infrastructure', evidence: ['the run could not begin (checkout)'] });
    expect(ended('pipeline_file')).toEqual({ verdict: 'failed', evidence: ['the run failed (pipeline_file)'] });
  });

  it('an earlier failure of the same makes what has passed flaky, and nothing else', () => {
    const earlier = { id: 'earlier' } as never;
    expect(withEarlierFailure({ verdict: 'passed', evidence: [] }, earlier)).toEqual({
      verdict: 'flaky',
      evidence: ['the run earlier of the same commit and definition failed before it'],
    });
    expect(withEarlierFailure({ verdict: 'failed', evidence: ['x'] }, earlier)).toEqual({
      verdict: 'failed',
      evidence: ['x'],
    });
  });
});

describe('quarantine', () => {
  it('until its end the failure of the stage fails neither the run nor what comes after it', () => {
    const driven = new DrivenRun(pipeline(stage('a', until(1_001)), stage('b', { after: ['a'] })));
    driven.grant('a');
    driven.fail('a');
    driven.grant('b');
    driven.succeed('b');
    expect(driven.run.status).toBe('SUCCESS');
    expect(viewOf(driven.run).stages[0]).toMatchObject({ status: 'FAILED', tolerated: true });
    expect(judged(driven)).toEqual({ verdict: 'passed', evidence: ["'a' failed, which fails nothing"] });
  });

  it('has no effect on a run that was created when it was over', () => {
    const driven = new DrivenRun(pipeline(stage('a', until(1_000)), stage('b', { after: ['a'] })));
    driven.grant('a');
    driven.fail('a');
    expect(driven.run.status).toBe('FAILED');
    expect(driven.statuses()).toEqual({ a: 'FAILED', b: 'SKIPPED' });
    expect(viewOf(driven.run).stages[0]?.tolerated).toBeUndefined();
  });

  it('does not end the other expansions of a matrix', () => {
    const driven = new DrivenRun(pipeline(...matrix('m', 2, until(1_001))));
    driven.grant('m (n=0)');
    driven.fail('m (n=0)');
    expect(driven.stage('m (n=1)').status).toBe('QUEUED');
  });
});
