import { matchesFilter, refsOf } from '@penstock/run';
import { describe, expect, it } from 'vitest';

const run = { pipelineName: 'build', status: 'FAILED', repository: 'o/r', ref: 'refs/heads/main' } as const;
const bare = { pipelineName: 'build', status: 'FAILED' } as const;

describe('the filter of a list of runs', () => {
  it('an empty one lets every run pass', () => {
    expect([matchesFilter(run, {}), matchesFilter(bare, {})]).toEqual([true, true]);
  });

  it('every condition has to hold, and a run from no repository is of none', () => {
    const all = { pipelineName: 'build', status: 'FAILED', repository: 'o/r', refs: refsOf('main') } as const;
    expect(matchesFilter(run, all)).toBe(true);
    for (const other of [
      { pipelineName: 'Build' },
      { status: 'SUCCESS' },
      { repository: 'o' },
      { refs: ['main'] },
    ] as const)
      expect(matchesFilter(run, { ...all, ...other })).toBe(false);
    expect(matchesFilter(bare, { repository: 'o/r' })).toBe(false);
    expect(matchesFilter(bare, { refs: refsOf('main') })).toBe(false);
  });

  it('half a surrogate pair in a name is compared as the store keeps it', () => {
    expect(matchesFilter({ ...bare, pipelineName: 'a\ud800' }, { pipelineName: 'a\ufffd' })).toBe(true);
  });

  it('a short ref is a branch or a tag, a full one itself', () => {
    expect(refsOf('v1')).toEqual(['v1', 'refs/heads/v1', 'refs/tags/v1']);
    expect(refsOf('refs/pull/7/head')).toEqual(['refs/pull/7/head']);
  });
});
