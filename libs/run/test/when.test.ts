/** What a `when` reads, and what it costs whoever decides: a run's owner decides for all runs of its partition. */
import { expect, it, vi } from 'vitest';
import type { Expression, StageDefinition, Template } from '@penstock/pipeline';
import { evolve, newRun, planOf, viewOf, type RunCreated } from '@penstock/run';
import { DrivenRun, failure, matrix, pipeline, RUN_ID, stage } from './support.ts';

const LONG = 'y'.repeat(60_000);
const output: Expression = { kind: 'path', path: ['stages', 'a', 'outputs', 'v'] };
const variable = (name: string): Expression => ({ kind: 'path', path: ['env', name] });
const yes: Expression = { kind: 'literal', value: 'yes' };
const times = (count: number): Template => Array.from({ length: count }, () => ({ expression: output }));
const same = (left: Expression, right: Expression): Expression => ({ kind: 'binary', operator: '==', left, right });

/** What becomes of stages after one that publishes a long output. */
function driven(...stages: readonly StageDefinition[]): DrivenRun {
  const run = new DrivenRun(pipeline(stage('a', { outputs: ['v'] }), ...stages));
  run.grant('a');
  run.succeed('a', { v: LONG });
  return run;
}

it('what comes before a stage is not looked through for each stage that asks whether something failed', () => {
  const alarms = Array.from({ length: 50 }, (_, index) =>
    stage(`alarm-${index}`, { after: ['b'], when: failure, runsAfterFailure: true }),
  );
  const definition = pipeline(stage('a'), stage('b', { after: ['a'], runsAfterFailure: true }), ...alarms);
  const plan = planOf(definition);
  let reads = 0;
  for (const planned of plan.stages.slice(0, 2)) {
    for (const name of ['dependencies', 'dependents'] as const) {
      const value = planned[name];
      Object.defineProperty(planned, name, { get: () => ((reads += 1), value) });
    }
  }
  const run = new DrivenRun(definition);
  run.grant('a');
  run.fail('a');
  run.grant('b');
  reads = 0;
  run.succeed('b');
  expect(run.queued()).toHaveLength(50);
  expect(reads).toBeLessThan(10);
});

it('reads the variables that it names, and no others', () => {
  const run = driven(
    stage('b', { after: ['a'], env: { FLAG: ['yes'], OTHER: times(100) }, when: same(variable('FLAG'), yes) }),
    stage('c', { after: ['a'], env: { FLAG: times(1) }, when: same(variable('FLAG'), yes) }),
    stage('d', { after: ['a'], when: same(variable('FLAG'), yes) }),
  );
  expect(run.statuses()).toEqual({ a: 'SUCCESS', b: 'QUEUED', c: 'SKIPPED', d: 'SKIPPED' });
});

it('looks once for what it names, for all cells of a matrix', () => {
  let looks = 0;
  const env = new Proxy<Record<string, Template>>(
    { FLAG: ['yes'], OTHER: ['no'] },
    { ownKeys: (target) => ((looks += 1), Reflect.ownKeys(target)) },
  );
  const when = same(variable('FLAG'), yes);
  const cells = Array.from({ length: 20 }, (_, index) => stage(`cell-${index}`, { after: ['a'], env, when }));
  const run = new DrivenRun(pipeline(stage('a', { outputs: ['v'] }), ...cells));
  run.grant('a');
  looks = 0;
  run.succeed('a', { v: 'x' });
  expect(run.queued()).toHaveLength(20);
  expect(looks).toBe(1);
});

it('a variable that it names sees those before it, and none behind it', () => {
  const copy: Template = [{ expression: variable('FLAG') }];
  const run = driven(
    stage('b', { after: ['a'], env: { FLAG: ['yes'], COPY: copy }, when: same(variable('COPY'), yes) }),
    stage('c', { after: ['a'], env: { COPY: copy, FLAG: ['yes'] }, when: same(variable('COPY'), yes) }),
  );
  expect(run.statuses()).toEqual({ a: 'SUCCESS', b: 'QUEUED', c: 'SKIPPED' });
});

it('a stage whose `when` reads more than 128 KiB fails, and its run with it', () => {
  const env = { A: times(100), B: times(100) };
  const text: Expression = { kind: 'text', parts: times(100) };
  for (const more of [{ env, when: same(variable('A'), variable('B')) }, { when: same(text, text) }]) {
    const run = driven(stage('b', { after: ['a'], ...more }), stage('c', { after: ['b'] }));
    expect(run.statuses()).toEqual({ a: 'SUCCESS', b: 'FAILED', c: 'SKIPPED' });
    expect(run.stage('b').reason).toBe('quota');
    expect(run.run.status).toBe('FAILED');
  }
});

it('many of them fail one after the other, a matrix at once, and the events say the same', () => {
  const more = { env: { A: times(3) }, when: same(variable('A'), yes), runsAfterFailure: true };
  const chain = Array.from({ length: 600 }, (_, index) =>
    stage(`s${index}`, { ...more, after: [index === 0 ? 'a' : `s${index - 1}`] }),
  );
  const cells = matrix('m', 50, { ...more, after: ['a'] });
  const run = driven(...chain, ...cells, stage('z', { after: ['a'] }));
  expect(run.stage('s599')).toMatchObject({ status: 'FAILED', reason: 'quota' });
  expect(run.stage('m (n=0)').status).toBe('FAILED');
  expect(run.stage('m (n=1)').status).toBe('CANCELLED');
  expect(run.queued()).toEqual(['z']);
  const [created, ...events] = run.events;
  const again = newRun(RUN_ID, created as RunCreated, planOf(run.definition));
  for (const event of events) evolve(again, event);
  expect(viewOf(again)).toEqual(viewOf(run.run));
});

it('a run gives its place back once all that fail have failed, and not between two of them', () => {
  const more = { env: { A: times(3) }, when: same(variable('A'), yes), runsAfterFailure: true, after: ['a'] };
  const approval = { quorum: 1, timeoutMs: 86_400_000, preventSelf: false };
  const gate = stage('g', { after: ['a'], commands: [], approval });
  const run = driven(gate, stage('x', more), stage('y', more), stage('z', { after: ['y'], runsAfterFailure: true }));
  expect(run.statuses()).toMatchObject({ g: 'QUEUED', x: 'FAILED', y: 'FAILED', z: 'QUEUED' });
  expect(run.events.map(({ type }) => type)).not.toContain('run_rested');
});

it('what comes after many that end in one decision is not read anew for each of them', () => {
  const many = matrix('m', 100, { env: { A: times(3) }, when: same(variable('A'), yes), after: ['a'] });
  const cells = many.map((cell) => ({ ...cell, matrix: cell.matrix && { ...cell.matrix, failFast: false } }));
  const after = cells.map(({ name }) => name);
  const behind = Array.from({ length: 20 }, (_, index) => stage(`e${index}`, { after, runsAfterFailure: true }));
  const run = new DrivenRun(pipeline(stage('a', { outputs: ['v'] }), ...cells, ...behind));
  let reads = 0;
  for (const planned of run.run.stages.plan.stages.slice(-20)) {
    const { dependencies } = planned;
    Object.defineProperty(planned, 'dependencies', { get: () => ((reads += 1), dependencies) });
  }
  run.grant('a');
  reads = 0;
  run.succeed('a', { v: LONG });
  expect(run.stage('e0').status).toBe('QUEUED');
  expect(reads).toBeLessThan(20 * 20);
});

it('long outputs are compared once in a decision, for however many stages of a matrix', () => {
  const other: Expression = { kind: 'path', path: ['stages', 'b', 'outputs', 'v'] };
  const after = ['a', 'b'];
  const run = driven(stage('b', { outputs: ['v'] }), ...matrix('m', 50, { after, when: same(output, other) }));
  run.grant('b');
  const kept = vi.spyOn(WeakMap.prototype, 'set');
  run.succeed('b', { v: `${LONG.slice(1)}y` });
  const comparisons = kept.mock.calls.filter(([, value]) => 'same' in Object(value));
  kept.mockRestore();
  expect(run.queued()).toHaveLength(50);
  expect(comparisons).toHaveLength(1);
});
