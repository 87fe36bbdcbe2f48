/** Which kept files of earlier stages a stage's folder begins with. */
import type { PipelineDefinition } from '@penstock/pipeline';
import { describe, expect, it } from 'vitest';
import { adoptionOf, adoptionsOf, bitsOf, planOf, workOf, type RerunWish } from '@penstock/run';
import { DrivenRun, pipeline, stage } from './support.ts';

const artifacts = { paths: ['out'], when: 'success', required: true } as const;
const kept = { files: 1, bytes: 1, expiresAt: 9 };

function keep(driven: DrivenRun, ...names: string[]): void {
  for (const name of names) {
    driven.grant(name);
    const { attempt } = driven.stage(name);
    const list = { ...kept, manifest: name.padEnd(64, '0') };
    driven.tell({ type: 'result', stage: name, attempt, status: 'success', logBytes: 0, artifacts: list });
  }
}

function rerunOf(parent: DrivenRun, wish: RerunWish): DrivenRun {
  const { definition } = parent;
  const repeated = { state: parent.run, events: parent.events };
  const adoption = adoptionOf(repeated, planOf(definition), wish);
  if (!adoption.ok) throw new Error(adoption.message);
  const lineage = { parent: 'p', version: parent.run.version, root: 'p', actors: [], adopts: bitsOf(adoption.stages) };
  const run = new DrivenRun(definition, { lineage });
  for (const stages of adoptionsOf(repeated, run.run) ?? []) run.tell({ type: 'adopt', stages });
  return run;
}

/** By the stages that have kept them; in brackets what only others need. */
function inherited(driven: DrivenRun, name: string): string[] {
  const { inherits = [] } = workOf(driven.run, planOf(driven.definition), name);
  return inherits.map(({ stage: source, forOthers }) => (forOthers === true ? `(${source})` : source));
}

const TWO_SIDES: PipelineDefinition = pipeline(
  stage('a', { artifacts }),
  stage('b', { artifacts }),
  stage('lint', {}),
  stage('useA', { after: ['a'] }),
  stage('useB', { after: ['b'] }),
);

function failedOnBothSides(): DrivenRun {
  const parent = new DrivenRun(TWO_SIDES);
  keep(parent, 'a', 'b');
  for (const name of ['lint', 'useA', 'useB']) {
    parent.grant(name);
    parent.fail(name);
  }
  return parent;
}

describe('what the shared folder of a run begins with', () => {
  it('in a rerun it has what all stages come after that are still to run there, whichever makes it', () => {
    const run = rerunOf(failedOnBothSides(), { onlyFailed: true });
    expect(inherited(run, 'lint')).toEqual(['(a)', '(b)']);
    expect(inherited(run, 'useA')).toEqual(['a', '(b)']);
    expect(inherited(run, 'useB')).toEqual(['(a)', 'b']);
  });

  it('is told no more to stages that come once one has succeeded in it', () => {
    const run = rerunOf(failedOnBothSides(), { onlyFailed: true });
    run.grant('lint');
    run.succeed('lint');
    expect(inherited(run, 'useA')).toEqual(['a']);
  });

  it('after its loss it has what the stages of the run itself have kept, however many have succeeded before', () => {
    const run = new DrivenRun(TWO_SIDES);
    keep(run, 'a', 'b');
    expect(inherited(run, 'useA')).toEqual(['a']);
    run.tell({ type: 'lose-workspace', runner: 'r1' });
    expect(inherited(run, 'lint')).toEqual(['(a)', '(b)']);
  });

  it("has nothing for stages that have ended, have a folder of their own or share another runner's", () => {
    const parent = new DrivenRun(
      pipeline(
        ...['a', 'b', 'c', 'd'].map((name) => stage(name, { artifacts })),
        stage('lint'),
        stage('ended', { after: ['a'] }),
        stage('alone', { after: ['b'], workspace: 'fresh' }),
        stage('elsewhere', { after: ['c'], runsOn: ['arm64'] }),
        stage('named', { after: ['c', 'd'], artifacts: { ...artifacts, from: ['d'] } }),
      ),
    );
    keep(parent, 'a', 'b', 'c', 'd', 'ended');
    const run = rerunOf(parent, { onlyFailed: true });
    expect(inherited(run, 'lint')).toEqual(['(d)']);
    expect(inherited(run, 'alone')).toEqual(['b']);
    expect(inherited(run, 'elsewhere')).toEqual(['c']);
    expect(inherited(run, 'named')).toEqual(['d']);
  });
});
