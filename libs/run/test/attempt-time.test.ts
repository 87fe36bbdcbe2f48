import { describe, expect, it } from 'vitest';
import { attemptMs } from '@penstock/run';
import { createdEvent, pipeline, stage, DrivenRun } from './support.ts';

const times = (driven: DrivenRun): (number | undefined)[] =>
  driven.events.flatMap((_, index) => attemptMs(driven.events, index) ?? []);

describe('the time of attempts', () => {
  it('is from the grant to the end, each attempt by itself', () => {
    const driven = new DrivenRun(
      pipeline(stage('a', { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure'] } })),
    );
    driven.grant('a');
    driven.tell({ type: 'wake', at: driven.at + 4_000 });
    driven.fail('a');
    driven.tell({ type: 'wake', at: driven.at + 60_000 });
    driven.grant('a');
    driven.succeed('a');
    expect(times(driven)).toEqual([5_000, 1_000]);
  });

  it('of a grant that was given back is none, nor of a stage that never started', () => {
    const driven = new DrivenRun(pipeline(stage('a'), stage('b', { after: ['a'] })));
    driven.grant('a');
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    driven.tell({ type: 'wake', at: driven.at + 100_000_000 });
    expect(driven.stage('a').reason).toBe('no_runner');
    expect(times(driven)).toEqual([]);
  });

  it('of a cancelled run goes on until its processes are gone', () => {
    const driven = new DrivenRun(pipeline(stage('a')));
    driven.grant('a');
    driven.tell({ type: 'cancel' });
    driven.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(times(driven)).toEqual([2_000]);
  });

  it('is never negative, whatever a clock did', () => {
    const started = {
      type: 'stage_started',
      at: 9_000,
      stage: 'a',
      attempt: 1,
      runner: 'r',
      session: 's',
      credit: 1,
    } as const;
    expect(attemptMs([createdEvent(), started, { type: 'attempt_gone', at: 1_000, stage: 'a', attempt: 1 }], 2)).toBe(
      0,
    );
  });
});
