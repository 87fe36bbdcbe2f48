import { describe, expect, it } from 'vitest';
import { evolve, newRun, planOf, RunInvariantError, type RunEvent, type RunState } from '@penstock/run';
import { RunActor } from '@penstock/run/machine';
import { createdEvent, pipeline, RUN_ID, settings, stage, DrivenRun, types } from './support.ts';

describe('the phases of a run', () => {
  it('a held run hears only its admission, a cancel and its quarantine', () => {
    const driven = new DrivenRun(pipeline(stage('a')), { held: 'group' });
    expect(driven.run).toMatchObject({ status: 'QUEUED', held: true });
    expect(driven.grant('a')).toBeUndefined();
    expect(driven.tell({ type: 'wake' })).toBeUndefined();
    expect(types(driven.tell({ type: 'admit' }))).toEqual(['run_admitted', 'stages_queued']);
    expect(driven.tell({ type: 'admit' })).toBeUndefined();
  });

  it('P23: one that is admitted is PENDING until its first grant, and one that has begun goes on being RUNNING', () => {
    const driven = new DrivenRun(pipeline(stage('a')), { held: 'group' });
    driven.tell({ type: 'admit' });
    expect(driven.run).toMatchObject({ status: 'PENDING', held: false });
    driven.grant('a');
    expect(driven.run.status).toBe('RUNNING');
    evolve(driven.run, { type: 'run_held', at: 5_000, reason: 'quota' });
    evolve(driven.run, { type: 'run_admitted', at: 6_000 });
    expect(driven.run.status).toBe('RUNNING');
  });

  it('a held run that is cancelled has settled', () => {
    const driven = new DrivenRun(pipeline(stage('a')), { held: 'group' });
    expect(driven.tell({ type: 'cancel' })?.effects).toEqual([{ type: 'settle' }]);
  });

  it('a run that ends as it begins has settled, with its reason', () => {
    const driven = new DrivenRun(pipeline(), { started: false });
    expect(driven.tell({ type: 'start', ended: { status: 'FAILED', reason: 'checkout' } })).toMatchObject({
      events: [{ type: 'run_completed', status: 'FAILED', reason: 'checkout' }],
      effects: [{ type: 'settle' }],
    });
    expect(driven.run).toMatchObject({ status: 'FAILED', reason: 'checkout', finishedAt: driven.at });
    expect(driven.tell({ type: 'cancel' })).toBeUndefined();
  });

  it('what names an attempt that does not live decides nothing (P12)', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.grant('a');
    expect(driven.tell({ type: 'result', stage: 'a', attempt: 2, status: 'success', logBytes: 0 })).toBeUndefined();
    expect(driven.tell({ type: 'lose', stage: 'a', attempt: 0 })).toBeUndefined();
    expect(driven.tell({ type: 'return-grant', stage: 'nobody', attempt: 1 })).toBeUndefined();
    expect(driven.grant('a')).toBeUndefined();
    driven.succeed('a');
    expect(driven.succeed('a')).toBeUndefined();
  });

  it('a settled run hears nothing', () => {
    const driven = new DrivenRun(pipeline());
    for (const type of ['cancel', 'admit', 'wake'] as const) expect(driven.tell({ type })).toBeUndefined();
  });

  it('quarantine fails the run with its cause, and stops what lives', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b')));
    driven.grant('a');
    const decided = driven.tell({ type: 'quarantine', cause: 'it threw' });
    expect(driven.run).toMatchObject({ status: 'FAILED', outcome: 'quarantined', cause: 'it threw' });
    expect(decided?.effects).toEqual([{ type: 'stop-attempt', stage: 'a', attempt: 1, reason: 'cancelled' }]);
  });

  it('a decision that throws reaches the caller, who rebuilds the run', () => {
    const poison = stage('a');
    Object.defineProperty(poison, 'retry', {
      get: () => {
        throw new TypeError('poison');
      },
    });
    const driven = new DrivenRun(pipeline(poison));
    driven.grant('a');
    expect(() => driven.fail('a')).toThrow('poison');
  });
});

describe('events and state', () => {
  /** A run with a bit of everything. */
  const told = (rests = false): DrivenRun => {
    const driven = new DrivenRun(
      pipeline(
        stage('a', { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['lost'] } }),
        stage('b'),
        stage('c', { after: ['b'] }),
        stage('d', { allowFailure: true }),
      ),
      { rests },
    );
    driven.grant('a');
    driven.grant('b');
    driven.grant('d');
    driven.lose('a');
    driven.fail('d');
    driven.succeed('b', { v: '1' });
    driven.tell({ type: 'lose-workspace', runner: 'r1' });
    driven.tell({ type: 'wake', at: driven.at + 1_000 });
    driven.grant('a', 'r2');
    driven.grant('c', 'r2');
    return driven;
  };

  const folded = (driven: DrivenRun): RunState => {
    const plan = planOf(driven.definition);
    const [created, ...rest] = driven.events;
    const run = newRun(RUN_ID, created as ReturnType<typeof createdEvent>, plan);
    for (const event of rest) evolve(run, event);
    return run;
  };

  it('folding the events anew makes the same state, at every version', () => {
    const driven = told();
    const again = folded(driven);
    expect(JSON.stringify(again)).toBe(JSON.stringify(driven.run));
    expect(again.version).toBe(driven.events.length);
  });

  it('a run that rests after each command decides as one that never does', () => {
    const awake = told();
    const resting = told(true);
    for (const driven of [awake, resting]) driven.tell({ type: 'cancel' });
    expect(resting.events).toEqual(awake.events);
    expect(JSON.stringify(resting.run)).toBe(JSON.stringify(awake.run));
  });

  it('STAGES-1: what was read of a stage that waits does not change with it, and stages of a run know nothing of those of another', () => {
    const definition = pipeline(stage('a'), stage('b'));
    const [one, other] = [new DrivenRun(definition), new DrivenRun(definition)];
    const before = one.stage('a');
    one.grant('a');
    expect(before).toMatchObject({ status: 'QUEUED', attempt: 0 });
    expect(one.statuses()).toEqual({ a: 'RUNNING', b: 'QUEUED' });
    expect(other.statuses()).toEqual({ a: 'QUEUED', b: 'QUEUED' });
  });

  it('STAGES-2: as JSON a stage has what it has had, and nothing else', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b', { after: ['a'] })));
    expect(JSON.parse(JSON.stringify(driven.run.stages))).toEqual([
      { name: 'a', after: [], status: 'QUEUED', attempt: 0, failures: 0, queuedAt: driven.at },
      { name: 'b', after: ['a'], status: 'PENDING', attempt: 0, failures: 0 },
    ]);
    const queuedAt = driven.at;
    driven.grant('a');
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(JSON.parse(JSON.stringify(driven.run.stages.get(0)))).toEqual({
      name: 'a',
      after: [],
      status: 'QUEUED',
      attempt: 1,
      returned: 1,
      lastReturned: 1,
      failures: 0,
      queuedAt,
    });
  });

  it('a run restored from its events goes on where it stood', () => {
    const driven = told();
    const actor = new RunActor({ run: folded(driven), settings });
    actor.tell({ type: 'result', at: driven.at, stage: 'a', attempt: 2, status: 'success', logBytes: 0 });
    const decided = actor.tell({
      type: 'result',
      at: driven.at,
      stage: 'c',
      attempt: 1,
      status: 'success',
      logBytes: 0,
    });
    expect(types(decided)).toEqual(['stage_completed', 'run_completed']);
  });

  it('a cancelled run that is restored waits for its attempts, and for nothing else', () => {
    const driven = told();
    driven.tell({ type: 'cancel' });
    const actor = new RunActor({ run: folded(driven), settings });
    expect(actor.tell({ type: 'cancel', at: 1 })).toBeUndefined();
    expect(types(actor.tell({ type: 'lose', at: 1, stage: 'a', attempt: 2 }))).toEqual(['attempt_gone']);
    expect(actor.tell({ type: 'lose', at: 1, stage: 'c', attempt: 1 })?.effects).toEqual([{ type: 'settle' }]);
  });

  const grant: RunEvent = {
    type: 'stage_started',
    at: 1,
    stage: 'a',
    attempt: 1,
    runner: 'r',
    session: 's',
    credit: 1,
  };
  it.each<[string, RunEvent[]]>([
    ['is created twice', [createdEvent()]],
    ['grants a stage that lives', [grant, { ...grant, attempt: 2 }]],
    ['ends an attempt that does not live', [{ type: 'stage_returned', at: 1, stage: 'a', attempt: 1 }]],
    [
      'stops an attempt that does not live',
      [{ type: 'stage_stopping', at: 1, stage: 'a', attempt: 1, reason: 'timeout' }],
    ],
    [
      'ends a stage twice',
      [
        { type: 'stage_skipped', at: 1, stage: 'a', reason: 'when' },
        { type: 'stage_skipped', at: 1, stage: 'a', reason: 'when' },
      ],
    ],
    [
      'ends twice',
      [
        { type: 'run_cancelled', at: 1, cancelledStages: 1 },
        { type: 'run_completed', at: 1, status: 'FAILED' },
      ],
    ],
    [
      'is stopped while an attempt lives',
      [
        { type: 'stages_queued', at: 1, stages: ['a'] },
        grant,
        { type: 'run_cancelled', at: 1, cancelledStages: 1 },
        { type: 'run_stopped', at: 1, status: 'CANCELLED', cancelledStages: 1 },
      ],
    ],
    ['is stopped before it has ended', [{ type: 'run_stopped', at: 1, status: 'CANCELLED', cancelledStages: 1 }]],
    ['knows a stage that does not exist', [{ ...grant, stage: 'nobody' }]],
  ])('an event stream that %s is refused', (_what, events) => {
    const plan = planOf(pipeline(stage('a')));
    const run = newRun(RUN_ID, createdEvent(), plan);
    expect(() => {
      for (const event of events) evolve(run, event);
    }).toThrow(RunInvariantError);
  });
});
