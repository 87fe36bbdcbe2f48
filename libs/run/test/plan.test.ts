import { planOf } from '@penstock/run';
import { describe, expect, it, vi } from 'vitest';
import { matrix, pipeline, stage } from './support.ts';

describe('what a stage comes after, in few words', () => {
  it('is a whole matrix by its name, and a part of one by the names of its stages', () => {
    const test = matrix('test', 3);
    const [first, second] = test.map(({ name }) => name) as [string, string];
    const all = test.map(({ name }) => name);
    const plan = planOf(
      pipeline(
        stage('lint'),
        ...test,
        stage('ship', { after: [...all, 'lint'] }),
        stage('some', { after: [second, 'lint', first] }),
      ),
    );
    const after = (name: string) => plan.stages[plan.indexOf.get(name) ?? -1]?.after;
    expect(after('ship')).toEqual(['test', 'lint']);
    expect(after('some')).toEqual([second, 'lint', first]);
    expect(after('lint')).toEqual([]);
  });

  it('is found without a look at all matrices of a file for each of its stages', () => {
    const count = 200;
    const definition = pipeline(
      stage('first'),
      ...Array.from({ length: count }, (_, index) => matrix(`m${index}`, 1, { after: ['first'] })).flat(),
    );
    const [iterated, every] = [vi.spyOn(Array.prototype, 'filter'), vi.spyOn(Array.prototype, 'every')];
    planOf(definition);
    const looks =
      every.mock.calls.length + iterated.mock.contexts.reduce<number>((sum, list) => sum + (list as []).length, 0);
    vi.restoreAllMocks();
    expect(looks).toBeLessThan(10 * count);
  });
});
