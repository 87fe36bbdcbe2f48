/** What stages wait for within their run, and since when: by journaled times. */
import type { PipelineDefinition } from '@penstock/pipeline';
import { adoptionOf, adoptionsOf, bitsOf, planOf, waitsOf, type Wait } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { DrivenRun, matrix, pipeline, stage } from './support.ts';

function waitsIn({ run, at }: DrivenRun, name: string, lengthMs?: number): readonly Wait[] {
  const { stages = [] } = waitsOf(run, {
    now: at,
    inTheWay: [],
    turn: () => ({ kind: 'quota', message: 'It waits for its turn.' }),
    runner: () => ({ kind: 'runner', message: 'It waits for a runner.', etaMs: 0 }),
    remainingOf: () => lengthMs,
  });
  return stages.find(([of]) => of === name)?.[1] ?? [];
}

const gate = (name: string, after: string[] = []) =>
  stage(name, { after, commands: [], approval: { quorum: 1, timeoutMs: 60_000, preventSelf: false } });

/** All stages of it have succeeded; these are to run again. */
function rerunOf(definition: PipelineDefinition, from: readonly string[]): DrivenRun {
  const parent = new DrivenRun(definition);
  for (const { name, approval } of definition.stages)
    if (approval !== undefined) {
      parent.tell({ type: 'decide-gate', stage: name, person: 'ada', by: 'ada', decision: 'approved' });
      // It had no place while only people were waited for.
      if (parent.run.held) parent.tell({ type: 'admit' });
    } else {
      parent.grant(name);
      parent.succeed(name);
    }
  const adoption = adoptionOf({ state: parent.run, events: parent.events }, planOf(definition), { from });
  if (!adoption.ok) throw new Error(adoption.message);
  const lineage = { parent: 'p', version: parent.run.version, root: 'p', actors: [], adopts: bitsOf(adoption.stages) };
  const rerun = new DrivenRun(definition, { lineage });
  for (const stages of adoptionsOf({ state: parent.run, events: parent.events }, rerun.run) ?? [])
    rerun.tell({ type: 'adopt', stages });
  return rerun;
}

describe('a stage of a rerun', () => {
  it('waits for the gate that is decided anew, whatever is taken over between the two', () => {
    const definition = pipeline(gate('ok'), stage('build', { after: ['ok'] }), stage('ship', { after: ['build'] }));
    const rerun = rerunOf(definition, ['ship']);
    expect(rerun.statuses()).toEqual({ ok: 'QUEUED', build: 'SUCCESS', ship: 'PENDING' });
    expect(waitsIn(rerun, 'ship')).toMatchObject([
      { kind: 'dependency', holder: 'ok', message: "It comes after 'ok'." },
    ]);
  });

  it('under max_parallel has no place among those that wait before the gate is decided', () => {
    const definition = pipeline(
      gate('ok'),
      stage('build', { after: ['ok'] }),
      ...matrix('t', 3, { after: ['build'], maxParallel: 1 }),
    );
    const rerun = rerunOf(definition, ['t']);
    for (const n of [0, 1, 2])
      expect(waitsIn(rerun, `t (n=${n})`)).toMatchObject([{ kind: 'dependency', holder: 'ok' }]);
  });
});

describe('since when a stage waits', () => {
  it('for its next attempt: since the last one failed', () => {
    const driven = new DrivenRun(
      pipeline(stage('a', { retry: { max: 3, backoff: 'exponential', delayMs: 8_000, on: ['failure'] } })),
    );
    for (let failures = 1; failures <= 2; failures++) {
      driven.grant('a');
      driven.fail('a');
      const failedAt = driven.at;
      expect(waitsIn(driven, 'a')).toMatchObject([{ kind: 'backoff', since: failedAt, etaMs: 8_000 * failures }]);
      driven.tell({ type: 'wake', due: undefined, at: driven.at + 8_000 * failures });
    }
  });

  it('for its turn in a matrix: since all that it comes after has ended', () => {
    const driven = new DrivenRun(
      pipeline(stage('a'), stage('b'), ...matrix('t', 2, { after: ['a', 'b'], maxParallel: 1 })),
    );
    driven.grant('a');
    driven.grant('b');
    driven.succeed('a');
    driven.succeed('b');
    const since = driven.at;
    driven.grant('t (n=0)');
    expect(waitsIn(driven, 't (n=1)')).toMatchObject([{ kind: 'concurrency', holder: 't (n=0)', since }]);
  });

  it('for its turn in a matrix that comes after nothing: since its run has a place', () => {
    const driven = new DrivenRun(pipeline(...matrix('t', 2, { maxParallel: 1 })), { held: 'group' });
    driven.tell({ type: 'admit' });
    const since = driven.at;
    driven.grant('t (n=0)');
    expect(waitsIn(driven, 't (n=1)')).toMatchObject([{ kind: 'concurrency', since }]);
  });
});

describe('how long a stage waits', () => {
  it('is what all before it take, the longest way', () => {
    const driven = new DrivenRun(
      pipeline(
        stage('ship', { after: ['test', 'build'] }),
        stage('test', { after: ['build'] }),
        stage('build', { after: ['plan'] }),
        stage('plan'),
      ),
    );
    expect(waitsIn(driven, 'ship', 1_000)).toMatchObject([{ kind: 'dependency', etaMs: 3_000 }]);
    expect(waitsIn(driven, 'build', 1_000)).toMatchObject([{ kind: 'dependency', etaMs: 1_000 }]);
    expect(waitsIn(driven, 'ship')).not.toMatchObject([{ etaMs: expect.any(Number) as number }]);
  });

  it('is said of a chain of as many stages as a file may have, the last of which stands first', () => {
    const last = 1_999;
    const stages = Array.from({ length: last + 1 }, (_, index) =>
      stage(`s${index}`, { after: index === last ? [] : [`s${index + 1}`] }),
    );
    const driven = new DrivenRun(pipeline(...stages));
    expect(waitsIn(driven, 's0', 1_000)).toMatchObject([{ kind: 'dependency', etaMs: last * 1_000 }]);
  });
});
