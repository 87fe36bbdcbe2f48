import { describe, expect, it } from 'vitest';
import { nextDeadline, planOf, RUN_OUTPUTS_MAX } from '@penstock/run';
import { always, failure, matrix, pipeline, settings, stage, Story, types } from './support.ts';

describe('order', () => {
  it('what comes after nothing is queued at the start, in one event', () => {
    const story = new Story(pipeline(stage('a'), stage('b'), stage('c', { after: ['a', 'b'] })));
    expect(story.queued()).toEqual(['a', 'b']);
    expect(story.events.at(-1)).toMatchObject({ type: 'stages_queued', stages: ['a', 'b'] });
  });

  it('a stage is queued when all that it comes after has succeeded', () => {
    const story = new Story(pipeline(stage('a'), stage('b'), stage('c', { after: ['a', 'b'] })));
    story.grant('a');
    story.grant('b');
    story.succeed('a');
    expect(story.stage('c').status).toBe('PENDING');
    story.succeed('b');
    expect(story.queued()).toEqual(['c']);
  });

  it('the completed stage and what it sets free are one decision (P16)', () => {
    const story = new Story(pipeline(stage('a'), stage('b', { after: ['a'] })));
    story.grant('a');
    const decided = story.succeed('a');
    expect(types(decided)).toEqual(['stage_completed', 'stages_queued']);
    expect(decided?.effects).toContainEqual({ type: 'offer-stages', stages: ['b'] });
  });

  it('a failed stage skips all behind it, and the run fails', () => {
    const story = new Story(
      pipeline(stage('a'), stage('b', { after: ['a'] }), stage('c', { after: ['b'] }), stage('d')),
    );
    story.grant('a');
    story.fail('a');
    expect(story.statuses()).toEqual({ a: 'FAILED', b: 'SKIPPED', c: 'SKIPPED', d: 'QUEUED' });
    expect(story.stage('c').reason).toBe('dependency');
    story.grant('d');
    const decided = story.succeed('d');
    expect(story.run.status).toBe('FAILED');
    expect(decided?.effects).toContainEqual({ type: 'settle' });
  });

  it('allow_failure counts as success for what comes after, and for the run', () => {
    const story = new Story(pipeline(stage('a', { allowFailure: true }), stage('b', { after: ['a'] })));
    story.grant('a');
    story.fail('a');
    story.grant('b');
    story.succeed('b');
    expect(story.statuses()).toEqual({ a: 'FAILED', b: 'SUCCESS' });
    expect(story.run.status).toBe('SUCCESS');
  });

  it('a run without stages is SKIPPED at once; one whose stages were all skipped is SUCCESS', () => {
    expect(new Story(pipeline()).run.status).toBe('SKIPPED');
    expect(new Story(pipeline(stage('a', { when: { kind: 'literal', value: false } }))).run.status).toBe('SUCCESS');
  });
});

describe('when', () => {
  it("sees the stage's environment", () => {
    const deploys = {
      kind: 'binary',
      operator: '==',
      left: { kind: 'path', path: ['env', 'DEPLOY'] },
      right: { kind: 'literal', value: 'yes' },
    } as const;
    const story = new Story(
      pipeline(
        stage('a', { when: deploys, env: { DEPLOY: ['yes'] } }),
        stage('b', { when: deploys, env: { DEPLOY: ['no'] } }),
      ),
    );
    expect(story.queued()).toEqual(['a']);
    expect(story.stage('b')).toMatchObject({ status: 'SKIPPED', reason: 'when' });
  });

  it('always() runs after a failed dependency, once all have ended', () => {
    const story = new Story(
      pipeline(stage('a'), stage('b'), stage('z', { after: ['a', 'b'], when: always, runsAfterFailure: true })),
    );
    story.grant('a');
    story.fail('a');
    expect(story.stage('z').status).toBe('PENDING');
    story.grant('b');
    story.succeed('b');
    expect(story.queued()).toEqual(['z']);
  });

  it('failure() runs where an ancestor failed, also behind a skipped stage, and is skipped else', () => {
    const definition = pipeline(
      stage('a'),
      stage('b', { after: ['a'] }),
      stage('notify', { after: ['b'], when: failure, runsAfterFailure: true }),
    );
    const failed = new Story(definition);
    failed.grant('a');
    failed.fail('a');
    expect(failed.queued()).toEqual(['notify']);
    const fine = new Story(definition);
    fine.grant('a');
    fine.succeed('a');
    fine.grant('b');
    fine.succeed('b');
    expect(fine.stage('notify')).toMatchObject({ status: 'SKIPPED', reason: 'when' });
  });

  it('a condition sees the outputs of earlier stages', () => {
    const equals = {
      kind: 'binary',
      operator: '==',
      left: { kind: 'path', path: ['stages', 'a', 'outputs', 'go'] },
      right: { kind: 'literal', value: 'yes' },
    } as const;
    for (const [go, status] of [
      ['yes', 'QUEUED'],
      ['no', 'SKIPPED'],
    ] as const) {
      const story = new Story(pipeline(stage('a', { outputs: ['go'] }), stage('b', { after: ['a'], when: equals })));
      story.grant('a');
      story.succeed('a', { go });
      expect(story.stage('b').status).toBe(status);
    }
  });
});

describe('retry', () => {
  const retried = (
    on: readonly ('failure' | 'timeout' | 'lost')[],
    max = 1,
    backoff: 'constant' | 'exponential' = 'constant',
  ) => pipeline(stage('a', { retry: { max, backoff, delayMs: 1_000, on } }));

  it('another attempt follows after the delay, with the next number', () => {
    const story = new Story(retried(['failure']));
    story.grant('a');
    const decided = story.fail('a');
    expect(decided?.events).toMatchObject([{ type: 'stage_retrying', attempt: 1, dueAt: story.at + 1_000 }]);
    expect(story.tell({ type: 'wake', at: story.at + 999 })?.events).toEqual([]);
    expect(types(story.tell({ type: 'wake', at: story.at + 1 }))).toEqual(['stages_queued']);
    story.grant('a');
    expect(story.stage('a').attempt).toBe(2);
    story.succeed('a');
    expect(story.run.status).toBe('SUCCESS');
  });

  it('attempts never exceed the bound', () => {
    const story = new Story(retried(['failure'], 2));
    for (let attempt = 1; attempt <= 3; attempt++) {
      story.grant('a');
      story.fail('a');
      story.tell({ type: 'wake', at: story.at + 1_000 });
    }
    expect(story.run.status).toBe('FAILED');
    expect(story.stage('a').attempt).toBe(3);
  });

  it('exponential backoff doubles', () => {
    const story = new Story(retried(['failure'], 3, 'exponential'));
    const delays: number[] = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      story.grant('a');
      story.fail('a');
      delays.push((story.stage('a').dueAt ?? 0) - story.at);
      story.tell({ type: 'wake', at: story.stage('a').dueAt ?? 0 });
    }
    expect(delays).toEqual([1_000, 2_000, 4_000]);
  });

  it.each([
    ['lost', 'failure'],
    ['failure', 'lost'],
    ['timeout', 'failure'],
  ] as const)('what is retried on %s is not on %s', (on, cause) => {
    const story = new Story(retried([on]));
    story.grant('a');
    if (cause === 'lost') story.lose('a');
    else story.fail('a');
    expect(story.run.status).toBe('FAILED');
  });

  it('a lost runner without a retry interrupts the run', () => {
    const story = new Story(pipeline(stage('a')));
    story.grant('a');
    story.lose('a');
    expect(story.run).toMatchObject({ status: 'FAILED', outcome: 'interrupted' });
    expect(story.stage('a').reason).toBe('runner_lost');
  });

  it('a grant that came to nothing costs no retry, and its number is not used again (P12)', () => {
    const story = new Story(retried(['failure'], 0));
    story.grant('a');
    story.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(story.stage('a')).toMatchObject({ status: 'QUEUED', failures: 0 });
    story.grant('a');
    story.tell({ type: 'return-grant', stage: 'a', attempt: 2 });
    expect(story.stage('a').startedAt).toBeUndefined();
    story.grant('a');
    expect(story.stage('a').attempt).toBe(3);
  });
});

describe('matrix', () => {
  it('max_parallel holds, and a place is taken over by the next', () => {
    const story = new Story(pipeline(...matrix('m', 4, { maxParallel: 2, failFast: false })));
    expect(story.queued()).toEqual(['m (n=0)', 'm (n=1)']);
    story.grant('m (n=0)');
    story.fail('m (n=0)');
    expect(story.queued()).toEqual(['m (n=1)', 'm (n=2)']);
  });

  it('a stage that waits for its retry keeps its place', () => {
    const story = new Story(
      pipeline(
        ...matrix('m', 2, {
          maxParallel: 1,
          failFast: false,
          retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure'] },
        }),
      ),
    );
    story.grant('m (n=0)');
    story.fail('m (n=0)');
    expect(story.queued()).toEqual([]);
    story.tell({ type: 'wake', at: story.at + 1_000 });
    expect(story.queued()).toEqual(['m (n=0)']);
  });

  it('fail_fast ends those that wait and stops those that run', () => {
    const story = new Story(pipeline(...matrix('m', 3)));
    story.grant('m (n=0)');
    story.grant('m (n=1)');
    const decided = story.fail('m (n=0)');
    expect(story.stage('m (n=2)')).toMatchObject({ status: 'CANCELLED', reason: 'cancelled' });
    expect(decided?.effects).toContainEqual({
      type: 'stop-attempt',
      stage: 'm (n=1)',
      attempt: 1,
      reason: 'cancelled',
    });
    expect(story.run.status).toBe('RUNNING');
    story.fail('m (n=1)', 'cancelled');
    expect(story.stage('m (n=1)').status).toBe('CANCELLED');
    expect(story.run.status).toBe('FAILED');
  });

  it('an attempt that was being stopped for its timeout has no successor once fail_fast has ended its matrix', () => {
    const story = new Story(
      pipeline(...matrix('m', 2, { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['timeout'] } })),
    );
    story.grant('m (n=0)');
    story.grant('m (n=1)');
    story.tell({ type: 'wake', at: story.at + 200_000 });
    expect(story.stage('m (n=1)').live?.stopping).toBe('timeout');
    story.lose('m (n=0)');
    expect(story.stage('m (n=0)').status).toBe('PENDING');
    const other = new Story(
      pipeline(...matrix('m', 2, { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['timeout'] } })),
    );
    other.grant('m (n=0)');
    other.tell({ type: 'wake', at: other.at + 100_000 });
    other.grant('m (n=1)');
    other.fail('m (n=1)');
    other.fail('m (n=0)', 'timeout');
    expect(other.statuses()).toEqual({ 'm (n=0)': 'FAILED', 'm (n=1)': 'FAILED' });
    expect(other.run.status).toBe('FAILED');
  });
});

describe('time', () => {
  it('a stage that no runner takes in time is FAILED with reason no_runner', () => {
    const story = new Story(pipeline(stage('a')), { settings: { queueTimeoutMs: 5_000 } });
    expect(nextDeadline(story.run, planOf(story.definition), { queueTimeoutMs: 5_000 })).toBe(story.at + 5_000);
    story.tell({ type: 'wake', at: story.at + 5_000 });
    expect(story.stage('a')).toMatchObject({ status: 'FAILED', reason: 'no_runner' });
    expect(story.run.status).toBe('FAILED');
  });

  it('an attempt that its runner does not end in time is stopped, and fails as a timeout', () => {
    const story = new Story(pipeline(stage('a', { timeoutMs: 10_000 })));
    story.grant('a');
    const deadline = nextDeadline(story.run, planOf(story.definition), settings) ?? 0;
    expect(deadline).toBe(story.at + 10_000 + 30_000);
    const decided = story.tell({ type: 'wake', at: deadline });
    expect(decided?.effects).toContainEqual({ type: 'stop-attempt', stage: 'a', attempt: 1, reason: 'timeout' });
    story.fail('a', 'cancelled');
    expect(story.stage('a')).toMatchObject({ status: 'FAILED', reason: 'timeout' });
  });

  it('an ended run has no deadline', () => {
    const story = new Story(pipeline(stage('a')));
    story.tell({ type: 'cancel' });
    expect(nextDeadline(story.run, planOf(story.definition), settings)).toBeUndefined();
  });
});

describe('cancel (P14)', () => {
  it('ends the run at once, stops what lives, and counts what had not ended', () => {
    const story = new Story(
      pipeline(stage('a'), stage('b'), stage('z', { after: ['a'], when: always, runsAfterFailure: true })),
    );
    story.grant('a');
    story.grant('b');
    story.succeed('b');
    const decided = story.tell({ type: 'cancel' });
    expect(types(decided)).toEqual(['run_cancelled']);
    expect(decided?.effects).toEqual([{ type: 'stop-attempt', stage: 'a', attempt: 1, reason: 'cancelled' }]);
    expect(story.run).toMatchObject({ status: 'CANCELLED', cancelledStages: 2 });
    expect(story.statuses()).toEqual({ a: 'CANCELLED', b: 'SUCCESS', z: 'CANCELLED' });
  });

  it.each(['result', 'return-grant', 'lose'] as const)(
    'the place is free when the last attempt is gone, told by %s',
    (type) => {
      const story = new Story(pipeline(stage('a')));
      story.grant('a');
      story.tell({ type: 'cancel' });
      const decided =
        type === 'result'
          ? story.succeed('a')
          : type === 'lose'
            ? story.lose('a')
            : story.tell({ type, stage: 'a', attempt: 1 });
      expect(types(decided)).toEqual(['attempt_gone']);
      expect(decided?.effects).toEqual([{ type: 'settle' }]);
      expect(story.stage('a').status).toBe('CANCELLED');
    },
  );

  it('nothing is granted, and nothing ends twice, afterwards', () => {
    const story = new Story(pipeline(stage('a'), stage('b')));
    story.tell({ type: 'cancel' });
    expect(story.grant('a')).toBeUndefined();
    expect(story.tell({ type: 'cancel' })).toBeUndefined();
    expect(story.tell({ type: 'quarantine', cause: 'x' })).toBeUndefined();
    expect(story.run.status).toBe('CANCELLED');
  });
});

describe('bounds and workspaces', () => {
  it('a grant that came to nothing binds no workspace: all that waits can go elsewhere (P12, P19)', () => {
    const story = new Story(pipeline(stage('a'), stage('b')));
    story.grant('a', 'r1');
    const decided = story.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(story.run.workspaces).toEqual({});
    expect(decided?.effects).toEqual([{ type: 'offer-stages', stages: ['a', 'b'] }]);
  });

  it('a workspace that a stage has used stays bound when a later grant comes to nothing', () => {
    const story = new Story(pipeline(stage('a'), stage('b')));
    story.grant('a', 'r1');
    story.grant('b', 'r1');
    expect(story.tell({ type: 'return-grant', stage: 'b', attempt: 1 })?.effects).toEqual([
      { type: 'offer-stages', stages: ['b'] },
    ]);
    expect(story.run.workspaces).toEqual({ '': 'r1' });
  });

  it("outputs beyond a run's budget fail the stage with reason quota", () => {
    const story = new Story(pipeline(stage('a', { outputs: ['x'] })));
    story.grant('a');
    story.succeed('a', { x: 'y'.repeat(RUN_OUTPUTS_MAX) });
    expect(story.stage('a')).toMatchObject({ status: 'FAILED', reason: 'quota' });
  });

  it("the first grant binds a run's shared workspace, a lost runner sets it free (P19)", () => {
    const story = new Story(pipeline(stage('a'), stage('b'), stage('f', { workspace: 'fresh' })));
    story.grant('f', 'r9');
    expect(story.run.workspaces).toEqual({});
    story.grant('a', 'r1');
    expect(story.run.workspaces).toEqual({ '': 'r1' });
    expect(story.tell({ type: 'lose-workspace', runner: 'r2' })).toBeUndefined();
    const decided = story.tell({ type: 'lose-workspace', runner: 'r1' });
    expect(decided?.effects).toEqual([{ type: 'offer-stages', stages: ['b'] }]);
    expect(story.run.workspaces).toEqual({});
  });
});
