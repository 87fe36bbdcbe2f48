import { describe, expect, it } from 'vitest';
import { planOf, sharedNames } from '@penstock/run';
import { DrivenRun, pipeline, stage } from './support.ts';

const two = (): Parameters<typeof planOf>[0] => pipeline(stage('a'), stage('b'), stage('c', { after: ['a'] }));

describe('lists of names that runs of one definition have alike', () => {
  it('are one list, and those that differ stay as they are', () => {
    const plan = planOf(two());
    const first = sharedNames(plan, ['a', 'b']);
    expect(first).toEqual(['a', 'b']);
    expect(sharedNames(plan, ['a', 'b'])).toBe(first);
    for (const other of [['a'], ['a', 'c'], ['a', 'b', 'c'], []]) {
      const given = [...other];
      expect(sharedNames(plan, given)).toBe(given);
      expect(given).toEqual(other);
    }
    expect(sharedNames(plan, ['a', 'b'])).toBe(first);
    expect(sharedNames(planOf(two()), ['a', 'b'])).not.toBe(first);
  });

  it('are kept of no more names than twice the stages', () => {
    const plan = planOf(two());
    sharedNames(plan, ['a', 'b', 'c']);
    const second = sharedNames(plan, ['b', 'c', 'a']);
    expect(sharedNames(plan, ['b', 'c', 'a'])).toBe(second);
    const third = ['c'];
    expect(sharedNames(plan, third)).toBe(third);
    expect(sharedNames(plan, ['c'])).not.toBe(third);
  });

  it('are those of the stages that fall due together, in every run', () => {
    const definition = two();
    const queuedIn = ({ events }: DrivenRun): readonly string[] | undefined =>
      events.flatMap((event) => (event.type === 'stages_queued' ? [event.stages] : []))[0];
    const [one, other] = [new DrivenRun(definition), new DrivenRun(definition)];
    expect(queuedIn(one)).toEqual(['a', 'b']);
    expect(queuedIn(other)).toBe(queuedIn(one));
  });
});
