/** What stages of the parent have added there, in its reruns (P30). */
import { parsePipeline, type PipelineDefinition } from '@penstock/pipeline';
import { describe, expect, it } from 'vitest';
import {
  addedTextOptions,
  adoptionOf,
  adoptionsOf,
  bitsOf,
  evolve,
  newRun,
  planOf,
  readAdded,
  viewOf,
  type RunEvent,
  type RerunWish,
} from '../src/index.ts';
import { always, DrivenRun, matrix, RUN_ID, stage, types } from './support.ts';

const CEILING = { secrets: [], audiences: [] };
const PLAN = stage('plan', { generates: CEILING });
const CHAIN = 'x: {run: a}\ny: {after: x, run: b}';

function generating(...stages: PipelineDefinition['stages']): PipelineDefinition {
  return { name: 'ship', schedule: [], stages, generation: { env: {}, extensions: [] } };
}

const FILE = generating(
  stage('build'),
  { ...PLAN, after: ['build'] },
  stage('deploy', { after: ['plan'] }),
  stage('lint'),
);

/** The stage succeeds and adds what the text means. */
function add(driven: DrivenRun, name: string, text: string): void {
  driven.grant(name);
  const parsed = parsePipeline(text, addedTextOptions(driven.run.stages.plan, name) ?? {});
  driven.tell({
    type: 'result',
    stage: name,
    attempt: driven.stage(name).attempt,
    status: 'success',
    logBytes: 0,
    outputs: { from: name },
    added: { text, bytes: 100, fileBytes: 100, meaning: parsed.ok ? parsed.definition : undefined },
  });
}

function succeed(driven: DrivenRun, ...names: string[]): void {
  for (const name of names) {
    driven.grant(name);
    driven.succeed(name, { from: name });
  }
}

/** `build`, `plan` and what it adds, then these. */
function parentOf(...succeeded: string[]): DrivenRun {
  const parent = new DrivenRun(FILE);
  succeed(parent, 'lint', 'build');
  add(parent, 'plan', CHAIN);
  succeed(parent, ...succeeded);
  return parent;
}

const whole = () => parentOf('plan/x', 'plan/y', 'deploy');

/** A rerun that has taken over all that it is to. */
function rerunOf(parent: DrivenRun, wish: RerunWish, definition = parent.definition): DrivenRun {
  const repeated = { state: parent.run, events: parent.events };
  const adoption = adoptionOf(repeated, planOf(definition), wish);
  if (!adoption.ok) throw new Error(`${adoption.code}: ${adoption.message}`);
  const lineage = { parent: 'p', version: parent.run.version, root: 'p', actors: [], adopts: bitsOf(adoption.stages) };
  const run = new DrivenRun(definition, { lineage });
  for (const stages of adoptionsOf(repeated, run.run) ?? []) run.tell({ type: 'adopt', stages });
  expect(run.run.adoptionsLeft).toBeUndefined();
  return run;
}

function refused(parent: DrivenRun, wish: RerunWish, definition = parent.definition): string {
  const adoption = adoptionOf({ state: parent.run, events: parent.events }, planOf(definition), wish);
  return adoption.ok ? 'ok' : `${adoption.code}: ${adoption.message}`;
}

const adopted = (run: DrivenRun) => run.run.stages.filter((each) => each.adopted === true).map(({ name }) => name);

describe('a stage that has added others (RERUN-4)', () => {
  it('is taken over with them, and they run again where they have not succeeded', () => {
    const parent = parentOf('plan/x');
    parent.grant('plan/y');
    parent.fail('plan/y');
    const run = rerunOf(parent, { onlyFailed: true });
    expect(types({ events: run.events, effects: [] })).toEqual([
      'run_created',
      'stages_adopted',
      'stages_added',
      'stages_adopted',
      'stages_queued',
    ]);
    expect(run.statuses()).toEqual({
      build: 'SUCCESS',
      plan: 'SUCCESS',
      deploy: 'PENDING',
      lint: 'SUCCESS',
      'plan/x': 'SUCCESS',
      'plan/y': 'QUEUED',
    });
    expect(viewOf(run.run).stages.find(({ name }) => name === 'plan/x')?.outputs).toEqual([
      { key: 'from', value: 'plan/x' },
    ]);
    expect(run.grant('plan')).toBeUndefined();
    succeed(run, 'plan/y', 'deploy');
    expect(run.run.status).toBe('SUCCESS');
  });

  it('leaves nothing to run again where all have succeeded', () => {
    expect(refused(whole(), { onlyFailed: true })).toMatch(/^CONFLICT: there is nothing to run again/);
  });

  it('runs again where it is named, and adds anew', () => {
    const run = rerunOf(whole(), { from: ['plan'] });
    expect(adopted(run)).toEqual(['build', 'lint']);
    expect(run.run.stages.length).toBe(4);
    add(run, 'plan', 'z: {run: c}');
    expect(run.queued()).toEqual(['plan/z']);
  });

  it('runs again where something that it comes after does, and else not', () => {
    expect(adopted(rerunOf(whole(), { from: ['build'] }))).toEqual(['lint']);
    expect(adopted(rerunOf(whole(), { from: ['lint'] }))).toEqual(['build', 'plan', 'deploy', 'plan/x', 'plan/y']);
    const file = generating(stage('soft', { allowFailure: true }), { ...PLAN, after: ['soft'] }, stage('last'));
    const parent = new DrivenRun(file);
    parent.grant('soft');
    parent.fail('soft');
    add(parent, 'plan', CHAIN);
    succeed(parent, 'plan/x', 'plan/y', 'last');
    // What has failed is decided anew, whoever is named.
    expect(adopted(rerunOf(parent, { from: ['last'] }))).toEqual([]);
  });

  it('stands while one that it has added runs again by name', () => {
    const run = rerunOf(whole(), { from: ['plan/y'] });
    expect(adopted(run)).toEqual(['build', 'plan', 'lint', 'plan/x']);
    expect(run.queued()).toEqual(['plan/y']);
  });

  it('says what is the matter with a name that it has not added', () => {
    expect(refused(whole(), { from: ['plan/z'] })).toBe(
      "BAD_USER_INPUT: 'from': 'plan' has added no stage 'plan/z' to the run: name 'plan' to run it again",
    );
    const edited = { ...FILE, generation: { env: { A: ['b'] }, extensions: [] } };
    expect(refused(whole(), { from: ['plan/y'] }, edited)).toBe(
      "BAD_USER_INPUT: 'from': 'plan/y' was added by 'plan', which has to run again with this file: name 'plan'",
    );
  });

  it('runs again in a live run that has not had its result', () => {
    const parent = new DrivenRun(FILE);
    succeed(parent, 'build');
    parent.grant('plan');
    const run = rerunOf(parent, { onlyFailed: true });
    expect(adopted(run)).toEqual(['build']);
    expect(run.queued()).toEqual(['plan', 'lint']);
  });

  it('may have added nothing', () => {
    const parent = new DrivenRun(FILE);
    succeed(parent, 'build', 'lint');
    add(parent, 'plan', '{}');
    parent.grant('deploy');
    parent.fail('deploy');
    expect(adopted(rerunOf(parent, { onlyFailed: true }))).toEqual(['build', 'plan', 'lint']);
  });

  it('of those that were added is taken over as well, or not, by itself', () => {
    const parent = new DrivenRun(FILE);
    succeed(parent, 'build', 'lint');
    add(parent, 'plan', 'more: {run: x, generates: true}\nother: {run: x}');
    add(parent, 'plan/more', CHAIN);
    succeed(parent, 'plan/other', 'plan/more/x', 'plan/more/y', 'deploy');
    expect(adopted(rerunOf(parent, { from: ['plan/more/y'] }))).toEqual([
      'build',
      'plan',
      'lint',
      'plan/more',
      'plan/other',
      'plan/more/x',
    ]);
    const again = rerunOf(parent, { from: ['plan/more'] });
    expect(adopted(again)).toEqual(['build', 'plan', 'lint', 'plan/other']);
    expect(again.run.stages.length).toBe(6);
  });

  it('stands before or behind others as the file has them, whichever was done first', () => {
    const file = generating(stage('a', { generates: CEILING }), stage('b', { generates: CEILING }), stage('last'));
    const parent = new DrivenRun(file);
    add(parent, 'b', CHAIN);
    add(parent, 'a', CHAIN);
    succeed(parent, 'b/x', 'b/y', 'a/x', 'a/y');
    parent.grant('last');
    parent.fail('last');
    const run = rerunOf(parent, { onlyFailed: true });
    expect(run.run.stages.map(({ name }) => name)).toEqual(['a', 'b', 'last', 'a/x', 'a/y', 'b/x', 'b/y']);
    expect(adopted(run)).toEqual(['a', 'b', 'a/x', 'a/y', 'b/x', 'b/y']);
    const outputs = run.run.stages.map((each) => each.outputs?.['from']);
    expect(outputs).toEqual(['a', 'b', undefined, 'a/x', 'a/y', 'b/x', 'b/y']);
    // One of them runs again: what the other has added moves up.
    expect(rerunOf(parent, { from: ['a'] }).run.stages.map(({ name }) => name)).toEqual([
      'a',
      'b',
      'last',
      'b/x',
      'b/y',
    ]);
  });

  it('gives its rerun what a rerun of that takes over in turn', () => {
    const first = rerunOf(whole(), { from: ['deploy'] });
    first.grant('deploy');
    first.fail('deploy');
    const second = rerunOf(first, { onlyFailed: true });
    expect(adopted(second)).toEqual(['build', 'plan', 'lint', 'plan/x', 'plan/y']);
    expect(second.queued()).toEqual(['deploy']);
  });

  it('runs again with another file that reads its text otherwise, or has no room for it', () => {
    const parent = whole();
    const [build, plan, deploy, lint] = FILE.stages as [typeof PLAN, typeof PLAN, typeof PLAN, typeof PLAN];
    const changed = { ...deploy, commands: [{ script: 'other', bindings: {} }] };
    expect(adopted(rerunOf(parent, { onlyFailed: true }, generating(build, plan, changed, lint)))).toEqual([
      'build',
      'plan',
      'lint',
      'plan/x',
      'plan/y',
    ]);
    const other = { ...FILE, generation: { env: { A: ['b'] }, extensions: [] } };
    expect(adopted(rerunOf(parent, { onlyFailed: true }, other))).toEqual(['build', 'lint']);
    const crowd = Array.from({ length: 8 }, (_, index) => matrix(`m${index}`, 250)).flat();
    const full = generating(build, plan, deploy, lint, ...crowd.slice(0, 1_995));
    expect(adopted(rerunOf(parent, { onlyFailed: true }, full))).toEqual(['build', 'lint']);
    const repeated = { state: parent.run, events: parent.events };
    const large = adoptionOf(repeated, planOf(other), { onlyFailed: true }, 768 * 1024);
    expect(large).toMatchObject({ ok: true, stages: [0, 3] });
  });

  it('is asked for what its text is read with alone: what all texts are read with is compared once', () => {
    const count = 20;
    const generators = Array.from({ length: count }, (_, index) => stage(`g${index}`, { generates: CEILING }));
    const file = generating(...generators, stage('last'));
    const parent = new DrivenRun(file);
    for (const { name } of generators) {
      add(parent, name, 'x: {run: a}');
      succeed(parent, `${name}/x`);
    }
    succeed(parent, 'last');
    let reads = 0;
    const env = { toJSON: () => ((reads += 1), {}) } as unknown as Record<string, []>;
    const edited = { ...file, generation: { env, extensions: [] } };
    const adoption = adoptionOf({ state: parent.run, events: parent.events }, planOf(edited), { from: ['last'] });
    expect(adoption.ok && adoption.stages).toHaveLength(2 * count);
    expect(reads).toBe(1);
  });

  it('costs nobody a look at all others: what is known of the file is carried on from text to text', () => {
    const readsOf = (count: number): number => {
      const generators = Array.from({ length: count }, (_, index) => stage(`g${index}`, { generates: CEILING }));
      let reads = 0;
      const watched = Object.defineProperty(stage('last'), 'workspace', {
        enumerable: true,
        get: () => ((reads += 1), 'shared'),
      });
      const parent = new DrivenRun(generating(...generators, watched));
      for (const { name } of generators) {
        add(parent, name, 'x: {run: a}');
        succeed(parent, `${name}/x`);
      }
      succeed(parent, 'last');
      const edited = planOf(generating(...generators, watched));
      reads = 0;
      const adoption = adoptionOf({ state: parent.run, events: parent.events }, edited, { from: ['last'] });
      expect(adoption.ok && adoption.stages).toHaveLength(2 * count);
      return reads;
    };
    expect(readsOf(20)).toBe(readsOf(2));
  });

  it('comes after what is decided anew and skipped: it runs again', () => {
    const file = generating(
      stage('a'),
      stage('b', { after: ['a'], when: { kind: 'literal', value: false } }),
      stage('plan', { generates: CEILING, after: ['b'], when: always, runsAfterFailure: true }),
      stage('last'),
    );
    const parent = new DrivenRun(file);
    succeed(parent, 'a');
    add(parent, 'plan', CHAIN);
    succeed(parent, 'plan/x', 'plan/y', 'last');
    expect(parent.stage('b').status).toBe('SKIPPED');
    expect(adopted(rerunOf(parent, { from: ['last'] }))).toEqual(['a']);
  });

  it('is read again from the journal as it was taken over', async () => {
    const run = rerunOf(whole(), { from: ['plan/y'] });
    // As a journal has them: without names, and nobody knows what their texts mean.
    const events = (structuredClone(run.events) as RunEvent[]).map((event) =>
      event.type === 'stages_added' ? { ...event, stages: [] } : event,
    );
    await readAdded(FILE, events, async (text, options) => parsePipeline(text, options));
    const [created, ...rest] = events as [Extract<RunEvent, { type: 'run_created' }>, ...RunEvent[]];
    const folded = newRun(RUN_ID, created, planOf(FILE));
    for (const event of rest) evolve(folded, event);
    expect(viewOf(folded)).toEqual(viewOf(run.run));
  });

  it('goes on where a take-over finds it, whichever part is there', () => {
    const file = generating(PLAN, ...Array.from({ length: 8 }, (_, index) => stage(`s${index}`)), stage('last'));
    const parent = new DrivenRun(file);
    add(parent, 'plan', CHAIN);
    for (const name of ['plan/x', 'plan/y', ...Array.from({ length: 8 }, (_, index) => `s${index}`)]) {
      parent.grant(name);
      parent.succeed(name, { big: '\u0001'.repeat(60_000) });
    }
    parent.grant('last');
    parent.fail('last');
    const repeated = { state: parent.run, events: parent.events };
    const adoption = adoptionOf(repeated, planOf(file), { onlyFailed: true });
    const adopts = adoption.ok ? bitsOf(adoption.stages) : undefined;
    const run = new DrivenRun(file, { lineage: { parent: 'p', version: 1, root: 'p', actors: [], adopts } });
    let parts = 0;
    for (
      let [first] = adoptionsOf(repeated, run.run) ?? [];
      first !== undefined;
      [first] = adoptionsOf(repeated, run.run) ?? []
    ) {
      expect(run.queued()).toEqual([]);
      run.tell({ type: 'adopt', stages: first });
      parts += 1;
    }
    expect(parts).toBeGreaterThan(5);
    expect(adopted(run)).toHaveLength(11);
    expect(run.queued()).toEqual(['last']);
  });
});
