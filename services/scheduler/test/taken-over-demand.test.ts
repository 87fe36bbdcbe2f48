/** What a new owner offers of the runs that it takes over: the stages that wait, and no others (P6, P19). */
import { expect, it } from 'vitest';
import { createdOf } from './restored-runs.ts';
import { Harness, NOW, stage, text } from './support.ts';

const yaml = text([
  stage('runs', { runsOn: ['a'] }),
  stage('waits', { runsOn: ['b'] }),
  stage('comes-after', { runsOn: ['c'], after: ['waits'] }),
]);

it('P6: a stage that runs and one that is not due are offered by no owner, one that waits is', () => {
  const world = new Harness({ start: false });
  world.dispatch.sessionSeen({ runner: 'r', session: 's', labels: [], slots: 1, attempts: [] });
  const started = {
    type: 'stage_started',
    at: NOW,
    stage: 'runs',
    attempt: 1,
    runner: 'r',
    session: 's',
    credit: 1,
  } as const;
  const restored = createdOf(yaml).restored([{ type: 'stages_queued', at: NOW, stages: ['runs', 'waits'] }, started]);
  world.start({ sequence: 100, commitNumber: 1, runs: [restored] });
  expect(world.dispatch.demand().flat()).toEqual([{ labels: ['b'], count: 1, below: 1 }]);
});
