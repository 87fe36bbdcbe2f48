import { describe, expect, it, vi } from 'vitest';
import { isFamilyOver, readinessOf, Turns, waitingFor } from '../src/readiness.ts';
import type { PlannedStage } from '../src/plan.ts';
import { Stages } from '../src/stages.ts';
import { always, DrivenRun, failure, matrix, pipeline, stage } from './support.ts';

function planned({ run }: DrivenRun, name: string): PlannedStage {
  return run.stages.plan.stages[run.stages.plan.indexOf.get(name) ?? -1] as PlannedStage;
}

function readiness(driven: DrivenRun, name: string, chosen: readonly string[] = []): string {
  const turns = new Turns(driven.run);
  for (const other of chosen) turns.take(planned(driven, other));
  return readinessOf(driven.run, planned(driven, name), turns);
}

describe('a stage that waits', () => {
  it('is ready once all that it comes after has succeeded', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b', { after: ['a'] })));
    expect(readiness(driven, 'b')).toBe('wait');
    driven.grant('a');
    driven.succeed('a');
    expect(readiness(driven, 'b')).toBe('ready');
  });

  it('is skipped at the first failure before it, unless it runs after failures: then it waits for the others', () => {
    const after = ['a', 'b'];
    const driven = new DrivenRun(
      pipeline(
        stage('a'),
        stage('b'),
        stage('ship', { after }),
        stage('clean', { after, when: always, runsAfterFailure: true }),
      ),
    );
    driven.grant('a');
    driven.fail('a');
    expect(readiness(driven, 'ship')).toBe('dependency');
    expect(readiness(driven, 'clean')).toBe('wait');
    driven.grant('b');
    driven.succeed('b');
    expect(readiness(driven, 'clean')).toBe('ready');
  });

  it('is not asked for its `when` before all that it comes after has ended', () => {
    const driven = new DrivenRun(
      pipeline(stage('a'), stage('alarm', { after: ['a'], when: failure, runsAfterFailure: true })),
    );
    expect(readiness(driven, 'alarm')).toBe('wait');
    driven.grant('a');
    driven.succeed('a');
    expect(readiness(driven, 'alarm')).toBe('when');
  });

  it('has no turn while as many others of its matrix as `max_parallel` have theirs', () => {
    const stages = matrix('m', 3, { maxParallel: 2, after: ['a'] });
    const driven = new DrivenRun(pipeline(stage('a'), ...stages));
    driven.grant('a');
    expect(readiness(driven, 'm (n=2)')).toBe('wait');
    driven.succeed('a');
    expect(driven.queued()).toEqual(['m (n=0)', 'm (n=1)']);
    expect(readiness(driven, 'm (n=2)')).toBe('wait');
  });

  it('counts against `max_parallel` those chosen in the same decision', () => {
    const driven = new DrivenRun(pipeline(...matrix('m', 3, { maxParallel: 2 })), { started: false });
    expect(readiness(driven, 'm (n=2)', ['m (n=0)'])).toBe('ready');
    expect(readiness(driven, 'm (n=2)', ['m (n=0)', 'm (n=1)'])).toBe('wait');
  });
});

describe('what a decision looks at', () => {
  const looksAt = (decide: () => void): number => {
    const looks = vi.spyOn(Stages.prototype, 'statusOf');
    decide();
    const count = looks.mock.calls.length;
    looks.mockRestore();
    return count;
  };

  it('is each stage of a matrix a few times where all of them fall due under `max_parallel`', () => {
    const count = 100;
    const driven = new DrivenRun(pipeline(stage('a'), ...matrix('m', count, { maxParallel: 50, after: ['a'] })));
    driven.grant('a');
    expect(looksAt(() => driven.succeed('a'))).toBeLessThan(10 * count);
    expect(driven.queued()).toHaveLength(50);
  });

  it('is each dependency a few times where they end one after the other, backwards', () => {
    const [before, behind] = [40, 40];
    const chain = Array.from({ length: before }, (_, index) =>
      stage(`p${index}`, { after: [index === before - 1 ? 'a' : `p${index + 1}`] }),
    );
    const after = chain.map(({ name }) => name);
    const driven = new DrivenRun(
      pipeline(stage('a'), ...chain, ...matrix('z', behind, { after, when: always, runsAfterFailure: true })),
    );
    driven.grant('a');
    expect(looksAt(() => driven.fail('a'))).toBeLessThan(10 * before * behind);
    expect(driven.queued()).toHaveLength(behind);
  });
});

describe('whom a stage keeps waiting', () => {
  it('is what comes after it', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b', { after: ['a'] }), stage('c')));
    expect(waitingFor(driven.run, planned(driven, 'a'))).toEqual([1]);
  });
});

describe('the family of a matrix', () => {
  it('is over after a failure', () => {
    const driven = new DrivenRun(pipeline(...matrix('m', 2)));
    expect(isFamilyOver(driven.run, planned(driven, 'm (n=1)'))).toBe(false);
    driven.grant('m (n=0)');
    driven.fail('m (n=0)');
    expect(isFamilyOver(driven.run, planned(driven, 'm (n=1)'))).toBe(true);
  });

  it('goes on after a failure where it is not to fail fast, or may fail', () => {
    for (const more of [{ failFast: false }, { allowFailure: true }]) {
      const driven = new DrivenRun(pipeline(...matrix('m', 2, more)));
      driven.grant('m (n=0)');
      driven.fail('m (n=0)');
      expect(isFamilyOver(driven.run, planned(driven, 'm (n=1)'))).toBe(false);
    }
  });
});
