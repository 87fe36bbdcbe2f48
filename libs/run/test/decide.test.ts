import { describe, expect, it } from 'vitest';
import {
  evolve,
  newRun,
  nextDeadline,
  planOf,
  publicEventsOf,
  RUN_OUTPUTS_MAX,
  STAGE_OUTPUTS_MAX,
  viewOf,
  workOf,
} from '@penstock/run';
import { always, createdEvent, failure, matrix, pipeline, settings, stage, DrivenRun, types } from './support.ts';

describe('order', () => {
  it('what comes after nothing is queued at the start, in one event', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b'), stage('c', { after: ['a', 'b'] })));
    expect(driven.queued()).toEqual(['a', 'b']);
    expect(driven.events.at(-1)).toMatchObject({ type: 'stages_queued', stages: ['a', 'b'] });
  });

  it('a stage is queued when all that it comes after has succeeded', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b'), stage('c', { after: ['a', 'b'] })));
    driven.grant('a');
    driven.grant('b');
    driven.succeed('a');
    expect(driven.stage('c').status).toBe('PENDING');
    driven.succeed('b');
    expect(driven.queued()).toEqual(['c']);
  });

  it('the completed stage and what it sets free are one decision (P16)', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b', { after: ['a'] })));
    driven.grant('a');
    const decided = driven.succeed('a');
    expect(types(decided)).toEqual(['stage_completed', 'stages_queued']);
    expect(decided?.effects).toContainEqual({ type: 'offer-stages', stages: ['b'] });
  });

  it('a failed stage skips all behind it, and the run fails', () => {
    const driven = new DrivenRun(
      pipeline(stage('a'), stage('b', { after: ['a'] }), stage('c', { after: ['b'] }), stage('d')),
    );
    driven.grant('a');
    driven.fail('a');
    expect(driven.statuses()).toEqual({ a: 'FAILED', b: 'SKIPPED', c: 'SKIPPED', d: 'QUEUED' });
    expect(driven.stage('c').reason).toBe('dependency');
    driven.grant('d');
    const decided = driven.succeed('d');
    expect(driven.run.status).toBe('FAILED');
    expect(decided?.effects).toContainEqual({ type: 'settle' });
  });

  it('allow_failure counts as success for what comes after, and for the run', () => {
    const driven = new DrivenRun(pipeline(stage('a', { allowFailure: true }), stage('b', { after: ['a'] })));
    driven.grant('a');
    driven.fail('a');
    driven.grant('b');
    driven.succeed('b');
    expect(driven.statuses()).toEqual({ a: 'FAILED', b: 'SUCCESS' });
    expect(driven.run.status).toBe('SUCCESS');
  });

  it('all that are skipped for one reason in one decision are one event, and its replay is the same state', () => {
    const never = { when: { kind: 'literal', value: false } } as const;
    const driven = new DrivenRun(
      pipeline(stage('a', never), stage('b', { after: ['a'] }), stage('c', { after: ['b'] }), stage('d', never)),
    );
    expect(driven.events.slice(1)).toMatchObject([
      { type: 'stages_skipped', reason: 'dependency', stages: ['b', 'c'] },
      { type: 'stages_skipped', reason: 'when', stages: ['a', 'd'] },
      { type: 'run_completed', status: 'SUCCESS' },
    ]);
    const plan = planOf(driven.definition);
    const replayed = newRun(driven.run.id, createdEvent(), plan);
    for (const event of driven.events.slice(1)) evolve(replayed, event);
    expect(replayed).toEqual(driven.run);
  });

  it('a journal with one event for each skipped stage still reads', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b')), { started: false });
    evolve(driven.run, { type: 'stage_skipped', at: 2, stage: 'a', reason: 'when' });
    evolve(driven.run, { type: 'stages_skipped', at: 3, stages: ['b'], reason: 'when' });
    expect(driven.statuses()).toEqual({ a: 'SKIPPED', b: 'SKIPPED' });
  });

  it('a run without stages is SKIPPED at once; one whose stages were all skipped is SUCCESS', () => {
    expect(new DrivenRun(pipeline()).run.status).toBe('SKIPPED');
    expect(new DrivenRun(pipeline(stage('a', { when: { kind: 'literal', value: false } }))).run.status).toBe('SUCCESS');
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
    const driven = new DrivenRun(
      pipeline(
        stage('a', { when: deploys, env: { DEPLOY: ['yes'] } }),
        stage('b', { when: deploys, env: { DEPLOY: ['no'] } }),
      ),
    );
    expect(driven.queued()).toEqual(['a']);
    expect(driven.stage('b')).toMatchObject({ status: 'SKIPPED', reason: 'when' });
  });

  it('always() runs after a failed dependency, once all have ended', () => {
    const driven = new DrivenRun(
      pipeline(stage('a'), stage('b'), stage('z', { after: ['a', 'b'], when: always, runsAfterFailure: true })),
    );
    driven.grant('a');
    driven.fail('a');
    expect(driven.stage('z').status).toBe('PENDING');
    driven.grant('b');
    driven.succeed('b');
    expect(driven.queued()).toEqual(['z']);
  });

  it('failure() runs where an ancestor failed, also behind a skipped stage, and is skipped else', () => {
    const definition = pipeline(
      stage('a'),
      stage('b', { after: ['a'] }),
      stage('notify', { after: ['b'], when: failure, runsAfterFailure: true }),
    );
    const failed = new DrivenRun(definition);
    failed.grant('a');
    failed.fail('a');
    expect(failed.queued()).toEqual(['notify']);
    const fine = new DrivenRun(definition);
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
      const driven = new DrivenRun(
        pipeline(stage('a', { outputs: ['go'] }), stage('b', { after: ['a'], when: equals })),
      );
      driven.grant('a');
      driven.succeed('a', { go });
      expect(driven.stage('b').status).toBe(status);
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
    const driven = new DrivenRun(retried(['failure']));
    driven.grant('a');
    const decided = driven.fail('a');
    expect(decided?.events).toMatchObject([{ type: 'stage_retrying', attempt: 1, dueAt: driven.at + 1_000 }]);
    expect(driven.tell({ type: 'wake', at: driven.at + 999 })?.events).toEqual([]);
    expect(types(driven.tell({ type: 'wake', at: driven.at + 1 }))).toEqual(['stages_queued']);
    driven.grant('a');
    expect(driven.stage('a').attempt).toBe(2);
    driven.succeed('a');
    expect(driven.run.status).toBe('SUCCESS');
  });

  it('attempts never exceed the bound', () => {
    const driven = new DrivenRun(retried(['failure'], 2));
    for (let attempt = 1; attempt <= 3; attempt++) {
      driven.grant('a');
      driven.fail('a');
      driven.tell({ type: 'wake', at: driven.at + 1_000 });
    }
    expect(driven.run.status).toBe('FAILED');
    expect(driven.stage('a').attempt).toBe(3);
  });

  it('exponential backoff doubles', () => {
    const driven = new DrivenRun(retried(['failure'], 3, 'exponential'));
    const delays: number[] = [];
    for (let attempt = 1; attempt <= 3; attempt++) {
      driven.grant('a');
      driven.fail('a');
      delays.push((driven.stage('a').dueAt ?? 0) - driven.at);
      driven.tell({ type: 'wake', at: driven.stage('a').dueAt ?? 0 });
    }
    expect(delays).toEqual([1_000, 2_000, 4_000]);
  });

  it.each([
    ['lost', 'failure'],
    ['failure', 'lost'],
    ['timeout', 'failure'],
  ] as const)('what is retried on %s is not on %s', (on, cause) => {
    const driven = new DrivenRun(retried([on]));
    driven.grant('a');
    if (cause === 'lost') driven.lose('a');
    else driven.fail('a');
    expect(driven.run.status).toBe('FAILED');
  });

  it.each([
    ['failure', ['exit', 'signal', 'oom', 'service']],
    ['lost', ['evicted', 'image']],
    ['never', ['checkout', 'quota', 'log_limit', 'pipeline_file']],
  ] as const)('%s is what is retried after %j', (cause, reasons) => {
    for (const reason of reasons) {
      for (const on of ['failure', 'timeout', 'lost'] as const) {
        const driven = new DrivenRun(retried([on]));
        driven.grant('a');
        driven.fail('a', reason);
        expect([reason, on, driven.stage('a').status]).toEqual([reason, on, on === cause ? 'PENDING' : 'FAILED']);
      }
    }
  });

  it('a lost runner without a retry interrupts the run', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.grant('a');
    driven.lose('a');
    expect(driven.run).toMatchObject({ status: 'FAILED', outcome: 'interrupted' });
    expect(driven.stage('a').reason).toBe('runner_lost');
  });

  it('a grant that came to nothing costs no retry, and its number is not used again (P12)', () => {
    const driven = new DrivenRun(retried(['failure'], 0));
    driven.grant('a');
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(driven.stage('a')).toMatchObject({ status: 'QUEUED', failures: 0 });
    driven.grant('a');
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 2 });
    expect(driven.stage('a').startedAt).toBeUndefined();
    driven.grant('a');
    expect(driven.stage('a').attempt).toBe(3);
  });

  it('P12: what never ran is no attempt to anybody: it is neither counted, nor told again', () => {
    const driven = new DrivenRun(retried(['failure'], 1));
    const shown = (): (number | undefined)[] => viewOf(driven.run).stages.map(({ attempt }) => attempt);
    driven.grant('a');
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(shown()).toEqual([0]);
    driven.grant('a');
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 2 });
    driven.grant('a');
    expect(shown()).toEqual([1]);
    expect(workOf(driven.run, planOf(driven.definition), 'a').number).toBe(1);
    driven.fail('a');
    driven.tell({ type: 'wake', at: driven.stage('a').dueAt ?? 0 });
    driven.grant('a');
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 4 });
    driven.grant('a');
    driven.succeed('a');
    expect(shown()).toEqual([2]);
    const told = driven.events.flatMap((event) => publicEventsOf(event, () => ({ text: '', truncated: false })));
    expect(told.map((event) => `${event.type} ${'attempt' in event ? event.attempt : ''}`.trim())).toEqual([
      'stage_started 1',
      'stage_retrying 1',
      'stage_started 2',
      'stage_completed 2',
      'pipeline_completed',
    ]);
  });
});

describe('matrix', () => {
  it('max_parallel holds, and the next takes the turn of one that ends', () => {
    const driven = new DrivenRun(pipeline(...matrix('m', 4, { maxParallel: 2, failFast: false })));
    expect(driven.queued()).toEqual(['m (n=0)', 'm (n=1)']);
    driven.grant('m (n=0)');
    driven.fail('m (n=0)');
    expect(driven.queued()).toEqual(['m (n=1)', 'm (n=2)']);
  });

  it('a stage that waits for its retry keeps its turn under max_parallel', () => {
    const driven = new DrivenRun(
      pipeline(
        ...matrix('m', 2, {
          maxParallel: 1,
          failFast: false,
          retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure'] },
        }),
      ),
    );
    driven.grant('m (n=0)');
    driven.fail('m (n=0)');
    expect(driven.queued()).toEqual([]);
    driven.tell({ type: 'wake', at: driven.at + 1_000 });
    expect(driven.queued()).toEqual(['m (n=0)']);
  });

  it('fail_fast ends those that wait and stops those that run', () => {
    const driven = new DrivenRun(pipeline(...matrix('m', 3)));
    driven.grant('m (n=0)');
    driven.grant('m (n=1)');
    const decided = driven.fail('m (n=0)');
    expect(driven.stage('m (n=2)')).toMatchObject({ status: 'CANCELLED', reason: 'cancelled' });
    expect(decided?.effects).toContainEqual({
      type: 'stop-attempt',
      stage: 'm (n=1)',
      attempt: 1,
      reason: 'cancelled',
    });
    expect(driven.run.status).toBe('RUNNING');
    driven.fail('m (n=1)', 'cancelled');
    expect(driven.stage('m (n=1)').status).toBe('CANCELLED');
    expect(driven.run.status).toBe('FAILED');
  });

  it('an attempt that was being stopped for its timeout has no successor once fail_fast has ended its matrix', () => {
    const driven = new DrivenRun(
      pipeline(...matrix('m', 2, { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['timeout'] } })),
    );
    driven.grant('m (n=0)');
    driven.grant('m (n=1)');
    driven.tell({ type: 'wake', at: driven.at + 200_000 });
    expect(driven.stage('m (n=1)').live?.stopping).toBe('timeout');
    driven.lose('m (n=0)');
    expect(driven.stage('m (n=0)').status).toBe('PENDING');
    const other = new DrivenRun(
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
    const driven = new DrivenRun(pipeline(stage('a')), { settings: { queueTimeoutMs: 5_000 } });
    expect(nextDeadline(driven.run, planOf(driven.definition), { queueTimeoutMs: 5_000 })).toBe(driven.at + 5_000);
    driven.tell({ type: 'wake', at: driven.at + 5_000 });
    expect(driven.stage('a')).toMatchObject({ status: 'FAILED', reason: 'no_runner' });
    expect(driven.run.status).toBe('FAILED');
  });

  it('an attempt that its runner does not end in time is stopped, and fails as a timeout', () => {
    const driven = new DrivenRun(pipeline(stage('a', { timeoutMs: 10_000 })));
    driven.grant('a');
    const deadline = nextDeadline(driven.run, planOf(driven.definition), settings) ?? 0;
    expect(deadline).toBe(driven.at + 10_000 + 30_000);
    const decided = driven.tell({ type: 'wake', at: deadline });
    expect(decided?.effects).toContainEqual({ type: 'stop-attempt', stage: 'a', attempt: 1, reason: 'timeout' });
    driven.fail('a', 'cancelled');
    expect(driven.stage('a')).toMatchObject({ status: 'FAILED', reason: 'timeout' });
  });

  it('an ended run has no deadline', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.tell({ type: 'cancel' });
    expect(nextDeadline(driven.run, planOf(driven.definition), settings)).toBeUndefined();
  });
});

describe('cancel (P14)', () => {
  it('ends the run at once, stops what lives, and counts what had not ended', () => {
    const driven = new DrivenRun(
      pipeline(stage('a'), stage('b'), stage('z', { after: ['a'], when: always, runsAfterFailure: true })),
    );
    driven.grant('a');
    driven.grant('b');
    driven.succeed('b');
    const decided = driven.tell({ type: 'cancel' });
    expect(types(decided)).toEqual(['run_cancelled']);
    expect(decided?.effects).toEqual([{ type: 'stop-attempt', stage: 'a', attempt: 1, reason: 'cancelled' }]);
    expect(driven.run).toMatchObject({ status: 'CANCELLED', cancelledStages: 2 });
    expect(driven.statuses()).toEqual({ a: 'CANCELLED', b: 'SUCCESS', z: 'CANCELLED' });
  });

  it.each(['result', 'return-grant', 'lose'] as const)(
    'the run settles when the last attempt is gone, told by %s',
    (type) => {
      const driven = new DrivenRun(pipeline(stage('a')));
      driven.grant('a');
      driven.tell({ type: 'cancel' });
      const decided =
        type === 'result'
          ? driven.succeed('a')
          : type === 'lose'
            ? driven.lose('a')
            : driven.tell({ type, stage: 'a', attempt: 1 });
      expect(types(decided)).toEqual(['attempt_gone', 'run_stopped']);
      expect(decided?.events[0]).toMatchObject(
        type === 'lose' ? { logSequence: 3 } : { logBytes: type === 'result' ? 7 : 0 },
      );
      expect(decided?.events[1]).toMatchObject({ status: 'CANCELLED', cancelledStages: 1 });
      expect(decided?.effects).toEqual([{ type: 'settle' }]);
      expect(driven.stage('a').status).toBe('CANCELLED');
    },
  );

  it('a run of which nothing lives is cancelled and stopped at once', () => {
    const decided = new DrivenRun(pipeline(stage('a'))).tell({ type: 'cancel' });
    expect(types(decided)).toEqual(['run_cancelled', 'run_stopped']);
    expect(decided?.effects).toEqual([{ type: 'settle' }]);
  });

  it('a quarantined run is stopped as FAILED when its last attempt is gone', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.grant('a');
    expect(types(driven.tell({ type: 'quarantine', cause: 'x' }))).toEqual(['run_quarantined']);
    expect(driven.lose('a')?.events.at(-1)).toMatchObject({ type: 'run_stopped', status: 'FAILED' });
  });

  it('nothing is granted, and nothing ends twice, afterwards', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b')));
    driven.tell({ type: 'cancel' });
    expect(driven.grant('a')).toBeUndefined();
    expect(driven.tell({ type: 'cancel' })).toBeUndefined();
    expect(driven.tell({ type: 'quarantine', cause: 'x' })).toBeUndefined();
    expect(driven.run.status).toBe('CANCELLED');
  });
});

describe('bounds and workspaces', () => {
  it('a grant that came to nothing binds no workspace: all that waits can go elsewhere (P12, P19)', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b')));
    driven.grant('a', 'r1');
    const decided = driven.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(driven.run.workspaces).toEqual({});
    expect(decided?.effects).toEqual([{ type: 'offer-stages', stages: ['a', 'b'] }]);
  });

  it('a workspace that a stage has used stays bound when a later grant comes to nothing', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b')));
    driven.grant('a', 'r1');
    driven.grant('b', 'r1');
    expect(driven.tell({ type: 'return-grant', stage: 'b', attempt: 1 })?.effects).toEqual([
      { type: 'offer-stages', stages: ['b'] },
    ]);
    expect(driven.run.workspaces).toEqual({ '': 'r1' });
  });

  it("outputs beyond a run's budget fail the stage with reason quota", () => {
    const names = Array.from({ length: RUN_OUTPUTS_MAX / STAGE_OUTPUTS_MAX + 1 }, (_, index) => `s${index}`);
    const driven = new DrivenRun(pipeline(...names.map((name) => stage(name, { outputs: ['x'] }))));
    for (const name of names) {
      driven.grant(name);
      driven.succeed(name, { x: 'y'.repeat(STAGE_OUTPUTS_MAX - 1) });
    }
    expect(names.filter((name) => driven.stage(name).status === 'FAILED')).toEqual([names.at(-1)]);
    expect(driven.stage(names.at(-1) ?? '')).toMatchObject({ status: 'FAILED', reason: 'quota' });
  });

  it('outputs that a stage has published are counted as often, however many come after them', () => {
    const countsAfter = (more: number): number => {
      const names = Array.from({ length: 2 + more }, (_, index) => `s${index}`);
      const driven = new DrivenRun(pipeline(...names.map((name) => stage(name, { outputs: ['x'] }))));
      let counts = 0;
      const ownKeys = (outputs: Record<string, string>): (string | symbol)[] => {
        counts += 1;
        return Reflect.ownKeys(outputs);
      };
      const first = new Proxy<Record<string, string>>({ x: 'y' }, { ownKeys });
      for (const name of names) {
        driven.grant(name);
        driven.succeed(name, name === 's0' ? first : { x: 'y' });
      }
      return counts;
    };
    expect(countsAfter(20)).toBe(countsAfter(0));
  });

  it("outputs beyond a stage's budget fail it with reason quota", () => {
    const driven = new DrivenRun(pipeline(stage('a', { outputs: ['x'] })));
    driven.grant('a');
    driven.succeed('a', { x: 'y'.repeat(STAGE_OUTPUTS_MAX) });
    expect(driven.stage('a')).toMatchObject({ status: 'FAILED', reason: 'quota' });
  });

  it("the first grant binds a run's shared workspace, a lost runner sets it free (P19)", () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b'), stage('f', { workspace: 'fresh' })));
    driven.grant('f', 'r9');
    expect(driven.run.workspaces).toEqual({});
    driven.grant('a', 'r1');
    expect(driven.run.workspaces).toEqual({ '': 'r1' });
    expect(driven.tell({ type: 'lose-workspace', runner: 'r2' })).toBeUndefined();
    const decided = driven.tell({ type: 'lose-workspace', runner: 'r1' });
    expect(decided?.effects).toEqual([{ type: 'offer-stages', stages: ['b'] }]);
    expect(driven.run.workspaces).toEqual({});
  });
});
