import { describe, expect, it } from 'vitest';
import { newRun, planOf, summaryOf, viewOf } from '@penstock/run';
import { createdEvent, pipeline, RUN_ID, stage, DrivenRun } from './support.ts';

describe("the API's view of a run", () => {
  it('times are ISO 8601 in UTC with milliseconds, outputs a list, what is not there null', () => {
    const driven = new DrivenRun(pipeline(stage('a', { outputs: ['v'] }), stage('b', { after: ['a'] })));
    driven.grant('a');
    driven.succeed('a', { v: '1.2' });
    expect(viewOf(driven.run)).toMatchObject({
      id: RUN_ID,
      pipelineName: 'ship',
      status: 'RUNNING',
      startedAt: '1970-01-01T00:00:01.000Z',
      finishedAt: null,
      outcome: null,
      version: driven.events.length,
      cancelledStages: null,
    });
    expect(viewOf(driven.run).stages).toEqual([
      {
        name: 'a',
        after: [],
        status: 'SUCCESS',
        startedAt: '1970-01-01T00:00:03.000Z',
        finishedAt: '1970-01-01T00:00:04.000Z',
        outputs: [{ key: 'v', value: '1.2' }],
        reason: null,
        exitCode: 0,
        attempt: 1,
      },
      {
        name: 'b',
        after: ['a'],
        status: 'QUEUED',
        startedAt: null,
        finishedAt: null,
        outputs: [],
        reason: null,
        exitCode: null,
        attempt: 0,
      },
    ]);
  });

  it('attempts that failed before the last one are counted, those whose runner was lost not among them', () => {
    const retry = { max: 3, backoff: 'constant', delayMs: 1_000, on: ['failure', 'lost'] } as const;
    const driven = new DrivenRun(pipeline(stage('a', { retry })));
    driven.grant('a');
    driven.lose('a');
    driven.tell({ type: 'wake', at: driven.at + 1_000 });
    driven.grant('a');
    expect(viewOf(driven.run).stages[0]).not.toHaveProperty('failedAttempts');
    driven.fail('a');
    driven.tell({ type: 'wake', at: driven.at + 1_000 });
    driven.grant('a');
    driven.succeed('a');
    expect(viewOf(driven.run).stages[0]).toMatchObject({ status: 'SUCCESS', attempt: 3, failedAttempts: 1 });
  });

  it('where it comes from and what its `uses` stand for are told where they are known; never what it was cloned from', () => {
    const lock = { uses: 'build/node@^2', id: 'build/node', version: '2.1.0', hash: 'f00d' };
    const origin = {
      kind: 'webhook',
      repository: 'o/r',
      ref: 'refs/heads/main',
      commit: 'c0ffee',
      source: '.pipeline.yaml',
      cloneUrl: 'https://user:secret@host/o/r',
    } as const;
    const created = createdEvent({ origin, extensions: [{ ...lock, manifest: 'run: npm ci' }] });
    const view = viewOf(newRun(RUN_ID, created, planOf(pipeline(stage('a')))));
    expect(view).toMatchObject({
      repository: 'o/r',
      ref: 'refs/heads/main',
      commit: 'c0ffee',
      source: '.pipeline.yaml',
      extensions: [lock],
    });
    expect(JSON.stringify(view)).not.toMatch(/secret|npm ci/);
    const plain = viewOf(newRun(RUN_ID, createdEvent(), planOf(pipeline(stage('a')))));
    for (const field of ['repository', 'ref', 'commit', 'source', 'extensions'])
      expect(plain).not.toHaveProperty(field);
  });

  it('a cause is told of a stage only when it has ended', () => {
    const driven = new DrivenRun(
      pipeline(stage('a', { retry: { max: 1, backoff: 'constant', delayMs: 1, on: ['failure'] } })),
    );
    driven.grant('a');
    driven.fail('a');
    expect(viewOf(driven.run).stages[0]).toMatchObject({ status: 'PENDING', reason: null });
    driven.tell({ type: 'wake', at: driven.at + 1 });
    driven.grant('a');
    driven.fail('a');
    expect(viewOf(driven.run).stages[0]).toMatchObject({ status: 'FAILED', reason: 'exit', exitCode: 1 });
  });

  it('cancelled and unfinished stages are in none of the counts', () => {
    const driven = new DrivenRun(
      pipeline(stage('a'), stage('b'), stage('c', { after: ['b'] }), stage('d'), stage('e')),
    );
    driven.grant('a');
    driven.grant('b');
    driven.succeed('a');
    driven.fail('b');
    expect(summaryOf(viewOf(driven.run))).toEqual({ passed: 1, failed: 1, skipped: 1 });
    driven.tell({ type: 'cancel' });
    expect(summaryOf(viewOf(driven.run))).toEqual({ passed: 1, failed: 1, skipped: 1 });
    expect(viewOf(driven.run).cancelledStages).toBe(2);
  });
});
