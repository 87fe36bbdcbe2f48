import { describe, expect, it } from 'vitest';
import { endingOf } from '../src/ending.ts';
import { DrivenRun, pipeline, stage } from './support.ts';

function ended(more: Parameters<typeof stage>[1], how: (driven: DrivenRun) => void): ReturnType<typeof endingOf> {
  const driven = new DrivenRun(pipeline(stage('a', more)));
  driven.grant('a');
  how(driven);
  return endingOf(driven.run);
}

describe('a run whose stages have all ended', () => {
  it('has succeeded where nothing failed, or nothing that counts', () => {
    expect(ended({}, (driven) => driven.succeed('a'))).toEqual({ status: 'SUCCESS' });
    expect(ended({ allowFailure: true }, (driven) => driven.fail('a'))).toEqual({ status: 'SUCCESS' });
  });

  it('has failed, and was interrupted where it lost a runner', () => {
    expect(ended({}, (driven) => driven.fail('a'))).toEqual({ status: 'FAILED' });
    expect(ended({}, (driven) => driven.lose('a'))).toEqual({ status: 'FAILED', outcome: 'interrupted' });
  });

  it('was skipped where there were none', () => {
    expect(endingOf(new DrivenRun(pipeline(), { started: false }).run)).toEqual({ status: 'SKIPPED' });
  });
});
