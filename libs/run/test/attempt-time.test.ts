import { describe, expect, it } from 'vitest';
import { attemptMs } from '@penstock/run';
import { createdEvent, pipeline, stage, Story } from './support.ts';

const times = (story: Story): (number | undefined)[] =>
  story.events.flatMap((_, index) => attemptMs(story.events, index) ?? []);

describe('the time of attempts', () => {
  it('is from the grant to the end, each attempt by itself', () => {
    const story = new Story(
      pipeline(stage('a', { retry: { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure'] } })),
    );
    story.grant('a');
    story.tell({ type: 'wake', at: story.at + 4_000 });
    story.fail('a');
    story.tell({ type: 'wake', at: story.at + 60_000 });
    story.grant('a');
    story.succeed('a');
    expect(times(story)).toEqual([5_000, 1_000]);
  });

  it('of a grant that was given back is none, nor of a stage that never started', () => {
    const story = new Story(pipeline(stage('a'), stage('b', { after: ['a'] })));
    story.grant('a');
    story.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    story.tell({ type: 'wake', at: story.at + 100_000_000 });
    expect(story.stage('a').reason).toBe('no_runner');
    expect(times(story)).toEqual([]);
  });

  it('of a cancelled run goes on until its processes are gone', () => {
    const story = new Story(pipeline(stage('a')));
    story.grant('a');
    story.tell({ type: 'cancel' });
    story.tell({ type: 'return-grant', stage: 'a', attempt: 1 });
    expect(times(story)).toEqual([2_000]);
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
