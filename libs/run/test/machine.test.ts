import { describe, expect, it } from 'vitest';
import { evolve, newRun, planOf, RunActor, RunInvariantError, type RunEvent } from '@penstock/run';
import { createdEvent, pipeline, RUN_ID, settings, stage, Story, types } from './support.ts';

describe('the phases of a run', () => {
  it('a held run hears only its admission, a cancel and its quarantine', () => {
    const story = new Story(pipeline(stage('a')), { held: 'group' });
    expect(story.run).toMatchObject({ status: 'QUEUED', held: true });
    expect(story.grant('a')).toBeUndefined();
    expect(story.tell({ type: 'wake' })).toBeUndefined();
    expect(types(story.tell({ type: 'admit' }))).toEqual(['run_admitted', 'stages_queued']);
    expect(story.tell({ type: 'admit' })).toBeUndefined();
  });

  it('a held run that is cancelled has settled', () => {
    const story = new Story(pipeline(stage('a')), { held: 'group' });
    expect(story.tell({ type: 'cancel' })?.effects).toEqual([{ type: 'settle' }]);
  });

  it('a run that ends as it begins has settled, with its reason', () => {
    const story = new Story(pipeline(), { started: false });
    expect(story.tell({ type: 'start', ended: { status: 'FAILED', reason: 'checkout' } })).toMatchObject({
      events: [{ type: 'run_completed', status: 'FAILED', reason: 'checkout' }],
      effects: [{ type: 'settle' }],
    });
    expect(story.run).toMatchObject({ status: 'FAILED', reason: 'checkout', finishedAt: story.at });
    expect(story.tell({ type: 'cancel' })).toBeUndefined();
  });

  it('what names an attempt that does not live decides nothing (P12)', () => {
    const story = new Story(pipeline(stage('a')));
    story.grant('a');
    expect(story.tell({ type: 'result', stage: 'a', attempt: 2, status: 'success', logBytes: 0 })).toBeUndefined();
    expect(story.tell({ type: 'lose', stage: 'a', attempt: 0, logBytes: 0 })).toBeUndefined();
    expect(story.tell({ type: 'return-grant', stage: 'nobody', attempt: 1 })).toBeUndefined();
    expect(story.grant('a')).toBeUndefined();
    story.succeed('a');
    expect(story.succeed('a')).toBeUndefined();
  });

  it('a settled run hears nothing', () => {
    const story = new Story(pipeline());
    for (const type of ['cancel', 'admit', 'wake'] as const) expect(story.tell({ type })).toBeUndefined();
  });

  it('quarantine fails the run with its cause, and stops what lives', () => {
    const story = new Story(pipeline(stage('a'), stage('b')));
    story.grant('a');
    const decided = story.tell({ type: 'quarantine', cause: 'it threw' });
    expect(story.run).toMatchObject({ status: 'FAILED', outcome: 'quarantined', cause: 'it threw' });
    expect(decided?.effects).toEqual([{ type: 'stop-attempt', stage: 'a', attempt: 1, reason: 'cancelled' }]);
  });

  it('a decision that throws reaches the caller, who rebuilds the run', () => {
    const poison = stage('a');
    Object.defineProperty(poison, 'retry', {
      get: () => {
        throw new TypeError('poison');
      },
    });
    const story = new Story(pipeline(poison));
    story.grant('a');
    expect(() => story.fail('a')).toThrow('poison');
  });
});

describe('events and state', () => {
  /** A run with a bit of everything. */
  const told = (): Story => {
    const story = new Story(
      pipeline(
        stage('a', { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['lost'] } }),
        stage('b'),
        stage('c', { after: ['b'] }),
        stage('d', { allowFailure: true }),
      ),
    );
    story.grant('a');
    story.grant('b');
    story.grant('d');
    story.lose('a');
    story.fail('d');
    story.succeed('b', { v: '1' });
    story.tell({ type: 'lose-workspace', runner: 'r1' });
    story.tell({ type: 'wake', at: story.at + 1_000 });
    story.grant('a', 'r2');
    story.grant('c', 'r2');
    return story;
  };

  it('folding the events anew makes the same state, at every version', () => {
    const story = told();
    const plan = planOf(story.definition);
    const [created, ...rest] = story.events;
    const folded = newRun(RUN_ID, created as ReturnType<typeof createdEvent>, plan);
    for (const event of rest) evolve(folded, plan, event);
    expect(folded).toEqual(story.run);
    expect(folded.version).toBe(story.events.length);
  });

  it('a run restored from its events goes on where it stood', () => {
    const story = told();
    const actor = new RunActor({ run: structuredClone(story.run), definition: story.definition, settings });
    actor.tell({ type: 'result', at: story.at, stage: 'a', attempt: 2, status: 'success', logBytes: 0 });
    const decided = actor.tell({
      type: 'result',
      at: story.at,
      stage: 'c',
      attempt: 1,
      status: 'success',
      logBytes: 0,
    });
    expect(types(decided)).toEqual(['stage_completed', 'run_completed']);
  });

  it('a cancelled run that is restored waits for its attempts, and for nothing else', () => {
    const story = told();
    story.tell({ type: 'cancel' });
    const actor = new RunActor({ run: structuredClone(story.run), definition: story.definition, settings });
    expect(actor.tell({ type: 'cancel', at: 1 })).toBeUndefined();
    expect(types(actor.tell({ type: 'lose', at: 1, stage: 'a', attempt: 2, logBytes: 0 }))).toEqual(['attempt_gone']);
    expect(actor.tell({ type: 'lose', at: 1, stage: 'c', attempt: 1, logBytes: 0 })?.effects).toEqual([
      { type: 'settle' },
    ]);
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
    ['knows a stage that does not exist', [{ ...grant, stage: 'nobody' }]],
  ])('a story that %s is refused', (_what, events) => {
    const plan = planOf(pipeline(stage('a')));
    const run = newRun(RUN_ID, createdEvent(), plan);
    expect(() => {
      for (const event of events) evolve(run, plan, event);
    }).toThrow(RunInvariantError);
  });
});
