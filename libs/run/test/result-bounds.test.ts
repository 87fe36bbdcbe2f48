import { describe, expect, it } from 'vitest';
import { RUN_OUTPUTS_MAX, STAGE_OUTPUTS_MAX } from '@penstock/run';
import { joiningOf, outputsFit } from '../src/result-bounds.ts';
import type { PlannedStage } from '../src/plan.ts';
import { DrivenRun, pipeline, stage } from './support.ts';

const GENERATING = { secrets: [], audiences: [] };

function ofSize(size: number): Record<string, string> {
  return { k: 'x'.repeat(size - 1) };
}

describe('outputs', () => {
  it('are taken up to the bound of one stage', () => {
    const { run } = new DrivenRun(pipeline(stage('a')));
    expect(outputsFit(run, undefined)).toBe(true);
    expect(outputsFit(run, ofSize(STAGE_OUTPUTS_MAX))).toBe(true);
    expect(outputsFit(run, ofSize(STAGE_OUTPUTS_MAX + 1))).toBe(false);
  });

  it('are taken up to the bound of the run, whose other outputs count', () => {
    const names = Array.from({ length: RUN_OUTPUTS_MAX / STAGE_OUTPUTS_MAX }, (_, index) => `s${index}`);
    const driven = new DrivenRun(pipeline(...names.map((name) => stage(name))));
    for (const name of names.slice(1)) {
      driven.grant(name);
      driven.succeed(name, ofSize(STAGE_OUTPUTS_MAX));
    }
    expect(outputsFit(driven.run, ofSize(STAGE_OUTPUTS_MAX))).toBe(true);
    driven.grant('s0');
    driven.succeed('s0', ofSize(2));
    expect(outputsFit(driven.run, ofSize(STAGE_OUTPUTS_MAX))).toBe(false);
  });
});

describe('stages that a result adds', () => {
  const driven = new DrivenRun(pipeline(stage('plan', { generates: GENERATING }), stage('plain')));
  const [plan, plain] = driven.run.stages.plan.stages as [PlannedStage, PlannedStage];
  const result = { type: 'result', at: 7, stage: 'plan', attempt: 1, status: 'success', logBytes: 0 } as const;
  const added = { text: 'a: {run: x}', bytes: 11, fileBytes: 11, meaning: pipeline(stage('plan/a')) };

  it('are one event, with their names', () => {
    const event = { type: 'stages_added', at: 7, stage: 'plan', text: added.text, bytes: 11, stages: ['plan/a'] };
    expect(joiningOf(driven.run, plan, { ...result, added })).toEqual(event);
  });

  it('are none where it adds none, and of a stage that may not', () => {
    expect(joiningOf(driven.run, plan, result)).toBeUndefined();
    expect(joiningOf(driven.run, plan, { ...result, added: { ...added, meaning: pipeline() } })).toBeUndefined();
    expect(joiningOf(driven.run, plain, { ...result, added })).toBeUndefined();
  });

  it('cannot join where they mean nothing or have the name of another, and where there is no room', () => {
    expect(joiningOf(driven.run, plan, { ...result, added: { ...added, meaning: undefined } })).toBe('pipeline_file');
    expect(joiningOf(driven.run, plan, { ...result, added: { ...added, meaning: pipeline(stage('plain')) } })).toBe(
      'pipeline_file',
    );
    expect(joiningOf(driven.run, plan, { ...result, added: { ...added, bytes: 2 ** 30 } })).toBe('quota');
  });
});
