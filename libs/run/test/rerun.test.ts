import { describe, expect, it } from 'vitest';
import type { PipelineDefinition } from '@penstock/pipeline';
import {
  adoptionOf,
  adoptionsOf,
  bitsOf,
  eventViewOf,
  gatesBefore,
  planOf,
  publicEventsOf,
  rightAt,
  stagesIn,
  viewOf,
  type RepeatedRun,
  type RerunWish,
} from '../src/index.ts';
import { always, DrivenRun, matrix, pipeline, stage, types } from './support.ts';

const gate = (name: string, after: string[] = []) =>
  stage(name, {
    after,
    commands: [],
    approval: { quorum: 1, timeoutMs: 60_000, preventSelf: false },
  });

const three = pipeline(stage('build'), stage('test', { after: ['build'] }), stage('ship', { after: ['test'] }));

/** A run of which these stages have succeeded, and the next one has failed. */
function parentOf(definition: PipelineDefinition, succeeded: readonly string[], failed?: string): DrivenRun {
  const parent = new DrivenRun(definition);
  for (const name of succeeded) {
    if (parent.grant(name) === undefined)
      parent.tell({ type: 'decide-gate', stage: name, person: 'ada', by: 'ada', decision: 'approved' });
    else parent.succeed(name, { from: name });
    if (parent.run.held) parent.tell({ type: 'admit' });
  }
  if (failed !== undefined) {
    parent.grant(failed);
    parent.fail(failed);
  }
  return parent;
}

function repeated({ run, events }: DrivenRun): RepeatedRun {
  return { state: run, events };
}

function adopted(parent: DrivenRun, wish: RerunWish, definition = parent.definition): string[] | string {
  const plan = planOf(definition);
  const adoption = adoptionOf(repeated(parent), plan, wish);
  return adoption.ok
    ? adoption.stages.map((index) => definition.stages[index]?.name ?? '')
    : `${adoption.code}: ${adoption.message}`;
}

/** A rerun that has been created, and nothing else. */
function rerunOf(parent: DrivenRun, wish: RerunWish, held?: 'group'): DrivenRun {
  const adoption = adoptionOf(repeated(parent), planOf(parent.definition), wish);
  const adopts = adoption.ok ? bitsOf(adoption.stages) : undefined;
  const lineage = { parent: 'p', version: parent.run.version, root: 'p', actors: ['ada'], adopts };
  return new DrivenRun(parent.definition, { lineage, held });
}

function adoptAll(run: DrivenRun, parent: DrivenRun): (string | undefined)[] {
  return (adoptionsOf(repeated(parent), run.run) ?? []).flatMap((stages) => types(run.tell({ type: 'adopt', stages })));
}

describe('what a rerun takes over', () => {
  it('nothing where nothing is said', () => {
    expect(adopted(parentOf(three, ['build'], 'test'), {})).toEqual([]);
  });

  it('what has succeeded and comes after nothing that has not', () => {
    expect(adopted(parentOf(three, ['build'], 'test'), { onlyFailed: true })).toEqual(['build']);
  });

  it('what stands before the stages that are named', () => {
    const parent = parentOf(three, ['build', 'test', 'ship']);
    expect(adopted(parent, { from: ['test'] })).toEqual(['build']);
    expect(adopted(parent, { from: ['ship'] })).toEqual(['build', 'test']);
  });

  it('a stage that was skipped is decided anew', () => {
    const definition = pipeline(stage('a'), stage('b', { after: ['a'] }), stage('c', { when: always }));
    const parent = parentOf(definition, ['c'], 'a');
    expect(parent.stage('b').status).toBe('SKIPPED');
    expect(adopted(parent, { from: ['a'] })).toEqual(['c']);
  });

  it('the name of a matrix means all of it, and so does that of an extension', () => {
    const definition = pipeline(stage('lint'), ...matrix('test', 2), stage('ext/one'), stage('ext/two'));
    const parent = parentOf(definition, ['lint', 'test (n=0)', 'test (n=1)', 'ext/one', 'ext/two']);
    expect(adopted(parent, { from: ['test'] })).toEqual(['lint', 'ext/one', 'ext/two']);
    expect(adopted(parent, { from: ['ext'] })).toEqual(['lint', 'test (n=0)', 'test (n=1)']);
    expect(adopted(parent, { from: ['test (n=1)'] })).toEqual(['lint', 'test (n=0)', 'ext/one', 'ext/two']);
  });

  it('refuses what names no stage, both ways at once, and a run of which nothing is left to do', () => {
    const parent = parentOf(three, ['build', 'test', 'ship']);
    expect(adopted(parent, { from: ['nobody'] })).toBe("BAD_USER_INPUT: 'from': the pipeline has no stage 'nobody'");
    expect(adopted(parent, { from: ['test'], onlyFailed: true })).toMatch(/^BAD_USER_INPUT: /);
    expect(adopted(parent, { onlyFailed: true })).toMatch(/^CONFLICT: /);
  });

  it('of a live run, what has succeeded so far', () => {
    const parent = parentOf(three, ['build']);
    parent.grant('test');
    expect(adopted(parent, { onlyFailed: true })).toEqual(['build']);
  });

  it('with another file, only what is the same up to there (RERUN-3)', () => {
    const parent = parentOf(three, ['build', 'test'], 'ship');
    const other = (name: string, more = {}) => stage(name, { ...more, commands: [{ script: 'other', bindings: {} }] });
    const [build, test, ship] = [
      stage('build'),
      stage('test', { after: ['build'] }),
      stage('ship', { after: ['test'] }),
    ];
    expect(adopted(parent, { onlyFailed: true }, pipeline(build, test, other('ship', { after: ['test'] })))).toEqual([
      'build',
      'test',
    ]);
    expect(adopted(parent, { onlyFailed: true }, pipeline(other('build'), test, ship))).toEqual([]);
    expect(adopted(parent, { onlyFailed: true }, pipeline(build, other('test', { after: ['build'] }), ship))).toEqual([
      'build',
    ]);
  });

  it('with another file compares what the stages of a matrix share once', () => {
    let reads = 0;
    const shared = () => [{ toJSON: () => ((reads += 1), { script: 'make', bindings: {} }) }] as unknown as [];
    const file = (last: string) =>
      pipeline(...matrix('m', 20, { commands: shared() }), stage('z', { commands: [{ script: last, bindings: {} }] }));
    const old = file('old');
    const parent = parentOf(
      old,
      old.stages.map(({ name }) => name),
    );
    reads = 0;
    expect(adopted(parent, { from: ['z'] }, file('new'))).toHaveLength(20);
    expect(reads).toBe(2);
  });

  it('no gate before anything that executes (RERUN-2)', () => {
    const definition = pipeline(
      gate('early'),
      stage('build', { after: ['early'] }),
      gate('ask', ['build']),
      stage('ship', { after: ['ask'] }),
      gate('late', ['build']),
    );
    const parent = parentOf(definition, ['early', 'build', 'ask', 'late'], 'ship');
    expect(adopted(parent, { onlyFailed: true })).toEqual(['build', 'late']);
    const done = parentOf(definition, ['early', 'build', 'ask', 'late', 'ship']);
    expect(adopted(done, { from: ['late'] })).toEqual(['early', 'build', 'ask', 'ship']);
  });

  it('is written as bits', () => {
    for (const stages of [[0], [7, 8], [0, 1, 1_999]]) expect(stagesIn(bitsOf(stages))).toEqual(stages);
    expect(bitsOf([])).toBeUndefined();
  });
});

describe('a rerun', () => {
  it('begins when all that it takes over is there, and never runs it (P30)', () => {
    const parent = parentOf(three, ['build'], 'test');
    const run = rerunOf(parent, { onlyFailed: true });
    expect(run.events.map(({ type }) => type)).toEqual(['run_created']);
    expect(run.grant('test')).toBeUndefined();
    expect(adoptAll(run, parent)).toEqual(['stages_adopted', 'stages_queued']);
    expect(run.stage('build')).toMatchObject({
      status: 'SUCCESS',
      adopted: true,
      attempt: 0,
      outputs: { from: 'build' },
    });
    expect(run.stage('build').startedAt).toBeUndefined();
    expect(run.grant('build')).toBeUndefined();
    run.grant('test');
    run.succeed('test');
    run.grant('ship');
    run.succeed('ship');
    expect(run.run.status).toBe('SUCCESS');
  });

  it('takes nothing over twice, and nothing that it was not to', () => {
    const parent = parentOf(three, ['build'], 'test');
    const run = rerunOf(parent, { onlyFailed: true });
    expect(types(run.tell({ type: 'adopt', stages: [{ stage: 'ship' }, { stage: 'build' }] }))).toEqual([
      'stages_adopted',
      'stages_queued',
    ]);
    expect(run.stage('ship').status).toBe('PENDING');
    expect(run.tell({ type: 'adopt', stages: [{ stage: 'build' }] })).toBeUndefined();
  });

  it('waits for its turn as any other, whichever comes first', () => {
    const parent = parentOf(three, ['build'], 'test');
    const late = rerunOf(parent, { onlyFailed: true }, 'group');
    expect(adoptAll(late, parent)).toEqual(['stages_adopted']);
    expect(types(late.tell({ type: 'admit' }))).toEqual(['run_admitted', 'stages_queued']);
    const early = rerunOf(parent, { onlyFailed: true }, 'group');
    expect(types(early.tell({ type: 'admit' }))).toEqual(['run_admitted']);
    expect(adoptAll(early, parent)).toEqual(['stages_adopted', 'stages_queued']);
  });

  it('whose parent is gone ends FAILED', () => {
    const parent = parentOf(three, ['build'], 'test');
    const run = rerunOf(parent, { onlyFailed: true });
    expect(types(run.tell({ type: 'lose-parent' }))).toEqual(['stages_skipped', 'run_completed']);
    expect(viewOf(run.run)).toMatchObject({ status: 'FAILED', reason: 'parent' });
  });

  it('adopts nothing once it has ended', () => {
    const parent = parentOf(three, ['build'], 'test');
    const run = rerunOf(parent, { onlyFailed: true });
    run.tell({ type: 'cancel' });
    expect(run.tell({ type: 'adopt', stages: [{ stage: 'build' }] })).toBeUndefined();
    expect(run.tell({ type: 'lose-parent' })).toBeUndefined();
  });

  it('what executes waits for the gates before it, also behind what was taken over (RERUN-2)', () => {
    const definition = pipeline(gate('ask'), stage('build', { after: ['ask'] }), stage('ship', { after: ['build'] }));
    expect(gatesBefore(planOf(definition), 2)).toEqual([0]);
    const parent = parentOf(definition, ['ask', 'build'], 'ship');
    const approved = rerunOf(parent, { onlyFailed: true });
    expect(adoptAll(approved, parent)).toEqual(['stages_adopted', 'gates_queued', 'run_rested']);
    expect(approved.stage('ship').status).toBe('PENDING');
    approved.tell({ type: 'decide-gate', stage: 'ask', person: 'bob', by: 'bob', decision: 'approved' });
    approved.tell({ type: 'admit' });
    expect(approved.stage('ship').status).toBe('QUEUED');
    const rejected = rerunOf(parent, { onlyFailed: true });
    adoptAll(rejected, parent);
    rejected.tell({ type: 'decide-gate', stage: 'ask', person: 'bob', by: 'bob', decision: 'rejected' });
    expect(rejected.stage('ship').status).toBe('SKIPPED');
    expect(rejected.run.status).toBe('FAILED');
  });

  it('tells in lists that fit a commit what it takes over', () => {
    const stages = Array.from({ length: 12 }, (_, index) => stage(`s${index}`));
    const definition = pipeline(...stages, stage('last'));
    const parent = new DrivenRun(definition);
    for (const { name } of stages) {
      parent.grant(name);
      parent.succeed(name, { big: '\u0001'.repeat(60_000) });
    }
    parent.grant('last');
    parent.fail('last');
    const run = rerunOf(parent, { onlyFailed: true });
    const lists = adoptionsOf(repeated(parent), run.run) ?? [];
    expect(lists.length).toBeGreaterThan(8);
    for (const list of lists) expect(JSON.stringify(list).length).toBeLessThan(512 * 1024);
    run.tell({ type: 'adopt', stages: lists[0] ?? [] });
    expect(run.grant('last')).toBeUndefined();
    // Who takes over goes on where it was.
    expect((adoptionsOf(repeated(parent), run.run) ?? []).flat()).toHaveLength(11);
  });

  it('is no rerun of a run that is not the one that was read', () => {
    const run = rerunOf(parentOf(three, ['build'], 'test'), { onlyFailed: true });
    expect(adoptionsOf(repeated(new DrivenRun(three)), run.run)).toBeUndefined();
  });

  it('is told to clients as a success without a text', () => {
    const parent = parentOf(three, ['build'], 'test');
    const run = rerunOf(parent, { onlyFailed: true });
    adoptAll(run, parent);
    const event = run.events.find(({ type }) => type === 'stages_adopted');
    if (event === undefined) throw new Error('nothing was adopted');
    const none = () => ({ text: 'x', truncated: false });
    expect(publicEventsOf(event, none)).toEqual([
      {
        type: 'stage_completed',
        stage: 'build',
        status: 'Success',
        logs: '',
        timestamp: new Date(event.at).toISOString(),
        attempt: 0,
        adopted: true,
      },
    ]);
    expect(eventViewOf(2, event, true).summary).toBe("'build' stands as in the run that this one repeats");
    expect(viewOf(run.run).stages[0]).toMatchObject({ adopted: true, startedAt: null, status: 'SUCCESS' });
  });

  it('none of its lineage decides where nobody may decide about what they began', () => {
    const own = { approvers: undefined, preventSelf: true };
    const run = { tenant: 'user/1', actor: 'bob', lineage: { actors: ['Alice'] } };
    const person = (name: string) => ({ by: name, names: [name], tenants: ['user/1'] });
    expect(['bob', 'alice', 'carol'].map((name) => rightAt(own, run, person(name)))).toEqual([
      'self',
      'self',
      'granted',
    ]);
  });
});
