/** Gates and places (P26), as the machine decides them. */
import { describe, expect, it } from 'vitest';
import type { ApprovalDefinition, StageDefinition, Template } from '@penstock/pipeline';
import { awaitsOnlyPeople } from '../src/gates.ts';
import { eventViewOf, evolve, publicEventsOf, rightAt, viewOf } from '../src/index.ts';
import { DrivenRun, pipeline, stage, types } from './support.ts';

const DAY_MS = 86_400_000;

function gate(
  name: string,
  more: Partial<StageDefinition> = {},
  approval: Partial<ApprovalDefinition<Template>> = {},
): StageDefinition {
  return stage(name, {
    commands: [],
    approval: { quorum: 1, timeoutMs: DAY_MS, preventSelf: false, ...approval },
    ...more,
  });
}

function says(run: DrivenRun, person: string, decision: 'approved' | 'rejected' = 'approved', name = 'gate') {
  return run.tell({ type: 'decide-gate', stage: name, person, by: person, decision });
}

describe('P26: a gate', () => {
  it('is queued with its deadline, waits for no runner and holds no place', () => {
    const run = new DrivenRun(pipeline(gate('gate'), stage('ship', { after: ['gate'] })));
    expect(run.events.slice(1)).toEqual([
      { type: 'gates_queued', at: 2_000, stages: ['gate'], dueAt: 2_000 + DAY_MS },
      { type: 'run_rested', at: 2_000 },
    ]);
    expect(run.stage('gate').status).toBe('QUEUED');
    expect(run.run.status).toBe('QUEUED');
    expect(run.grant('gate')).toBeUndefined();
  });

  it('is looked at once what comes before it has ended, and its `when` first', () => {
    const never = { kind: 'literal', value: false } as const;
    const run = new DrivenRun(
      pipeline(stage('test'), gate('gate', { after: ['test'], when: never }), gate('other', { after: ['test'] })),
    );
    expect(run.stage('gate').status).toBe('PENDING');
    run.grant('test');
    expect(types(run.succeed('test'))).toEqual(['stage_completed', 'stages_skipped', 'gates_queued', 'run_rested']);
    expect(run.statuses()).toEqual({ test: 'SUCCESS', gate: 'SKIPPED', other: 'QUEUED' });
  });

  it('is decided by so many different people; the same said again changes nothing', () => {
    const run = new DrivenRun(pipeline(gate('gate', {}, { quorum: 2 }), stage('ship', { after: ['gate'] })));
    expect(types(says(run, 'alice'))).toEqual(['gate_decided']);
    expect(types(says(run, 'alice'))).toEqual([]);
    expect(run.stage('gate').status).toBe('QUEUED');
    expect(types(says(run, 'bob'))).toEqual(['gate_decided', 'stage_completed', 'run_held']);
    expect(run.stage('gate')).toMatchObject({ status: 'SUCCESS', attempt: 0 });
    expect(says(run, 'carol')).toBeUndefined();
  });

  it('one rejection decides, also of somebody who has approved before', () => {
    const run = new DrivenRun(pipeline(gate('gate', {}, { quorum: 2 }), stage('ship', { after: ['gate'] })));
    says(run, 'alice');
    expect(types(says(run, 'alice', 'rejected'))).toEqual([
      'gate_decided',
      'stage_completed',
      'stages_skipped',
      'run_completed',
    ]);
    expect(run.stage('gate')).toMatchObject({ status: 'FAILED', reason: 'rejected' });
    expect(run.run.status).toBe('FAILED');
  });

  it('counts people, not decisions', () => {
    const run = new DrivenRun(pipeline(gate('gate', {}, { quorum: 3 })));
    says(run, 'alice');
    const again = { type: 'gate_decided', stage: 'gate', person: 'alice', by: 'alice', decision: 'approved' } as const;
    evolve(run.run, { ...again, at: 4_000, approved: 1, quorum: 3 });
    says(run, 'bob');
    expect(run.stage('gate').status).toBe('QUEUED');
  });

  it('ends FAILED with reason timeout at its deadline, however short others wait for a runner', () => {
    const run = new DrivenRun(pipeline(gate('gate', {}, { timeoutMs: 50_000 })), {
      settings: { queueTimeoutMs: 5_000 },
    });
    run.tell({ type: 'wake', at: 30_000 });
    expect(run.stage('gate').status).toBe('QUEUED');
    run.tell({ type: 'wake', at: 52_000 });
    expect(run.stage('gate')).toMatchObject({ status: 'FAILED', reason: 'timeout' });
  });

  it('decides nothing in a run that was cancelled', () => {
    const run = new DrivenRun(pipeline(gate('gate')));
    run.tell({ type: 'cancel' });
    expect(says(run, 'alice')).toBeUndefined();
    expect(run.stage('gate').status).toBe('CANCELLED');
  });

  it('is not queued while its run waits for its group', () => {
    const run = new DrivenRun(pipeline(gate('gate')), { held: 'group' });
    expect(run.stage('gate').status).toBe('PENDING');
    expect(types(run.tell({ type: 'admit' }))).toEqual(['run_admitted', 'gates_queued', 'run_rested']);
  });
});

describe('P26: a place', () => {
  it('stays with a run in which anything else can go on', () => {
    const run = new DrivenRun(pipeline(gate('gate'), stage('test'), stage('ship', { after: ['gate'] })));
    expect([run.run.rested, run.run.status]).toEqual([undefined, 'PENDING']);
    run.grant('test');
    expect(types(says(run, 'alice'))).toEqual(['gate_decided', 'stage_completed', 'stages_queued']);
  });

  it('is not waited for by a run whose other stages wait for a runner: it is PENDING, and QUEUED once people alone are waited for', () => {
    const run = new DrivenRun(
      pipeline(gate('gate'), stage('test'), gate('second', { after: ['gate'] }), stage('ship', { after: ['second'] })),
    );
    expect(types(says(run, 'alice'))).toEqual(['gate_decided', 'stage_completed', 'gates_queued']);
    expect(run.run.status).toBe('PENDING');
    run.tell({ type: 'wake', at: 2_000 + DAY_MS, due: ['test'] });
    expect([run.run.rested, run.run.status]).toEqual([true, 'QUEUED']);
  });

  it('is given back in the decision after which only gates are open, and asked for again once a stage falls due', () => {
    const run = new DrivenRun(
      pipeline(stage('test'), gate('gate', { after: ['test'] }), stage('ship', { after: ['gate'] })),
    );
    run.grant('test');
    const rested = run.succeed('test');
    expect(types(rested)).toEqual(['stage_completed', 'gates_queued', 'run_rested']);
    expect(rested?.effects).toContainEqual({ type: 'rest' });
    const due = says(run, 'alice');
    expect(types(due)).toEqual(['gate_decided', 'stage_completed', 'run_held']);
    expect(due?.effects).toContainEqual({ type: 'want-place' });
    expect([run.run.status, run.run.held, run.queued()]).toEqual(['RUNNING', true, []]);
    expect(types(run.tell({ type: 'admit' }))).toEqual(['run_admitted', 'stages_queued']);
    expect(run.queued()).toEqual(['ship']);
  });

  it('is not waited for by gates: those of a run that waits for its place are queued and decided', () => {
    const run = new DrivenRun(
      pipeline(gate('gate'), gate('second', { after: ['gate'] }), stage('ship', { after: ['gate'] })),
    );
    expect(types(says(run, 'alice'))).toEqual(['gate_decided', 'stage_completed', 'gates_queued', 'run_held']);
    expect(types(says(run, 'alice', 'approved', 'second'))).toEqual(['gate_decided', 'stage_completed']);
    expect(run.run.status).toBe('QUEUED');
    expect(types(run.tell({ type: 'admit' }))).toEqual(['run_admitted', 'stages_queued']);
    expect(run.run.status).toBe('PENDING');
  });

  it('is kept while a retry is due', () => {
    const retry = { max: 1, backoff: 'constant', delayMs: 60_000, on: ['failure'] } as const;
    const run = new DrivenRun(pipeline(stage('test', { retry }), gate('gate')));
    run.grant('test');
    expect(types(run.fail('test'))).toEqual(['stage_retrying']);
    expect(run.run.rested).toBeUndefined();
  });
});

describe('P26: who may decide', () => {
  const run = { tenant: 'user/1', actor: 'alice' };
  const person = (by: string, tenants: string[] = []) => ({
    by,
    names: [by.toLowerCase(), `${by}@example.com`],
    tenants,
  });

  it('is whoever may cancel the run, where nobody is named', () => {
    const anybody = { approvers: undefined, preventSelf: false };
    expect(rightAt(anybody, run, person('bob', ['user/1']))).toBe('granted');
    expect(rightAt(anybody, run, person('bob', ['user/2']))).toBe('forbidden');
  });

  it('is whoever is named by a login or an address, in whatever case, and nobody else', () => {
    const named = { approvers: ['Bob', 'carol@example.com'], preventSelf: false };
    expect(['bob', 'carol', 'dave'].map((name) => rightAt(named, run, person(name, ['user/1'])))).toEqual([
      'granted',
      'granted',
      'forbidden',
    ]);
  });

  it('is not whoever has begun the run, where that is asked for', () => {
    const others = { approvers: ['alice', 'bob'], preventSelf: true };
    expect(rightAt(others, run, person('Alice'))).toBe('self');
    expect(rightAt(others, { ...run, actor: 'alice@example.com' }, person('alice'))).toBe('self');
    expect(rightAt(others, run, person('bob'))).toBe('granted');
  });
});

describe('P26: what is shown of a gate', () => {
  const message = ['Ship ', { expression: { kind: 'path', path: ['inputs', 'version'] } }, '?'] as Template;

  it('is who may decide, what is asked while it waits, and what was said', () => {
    const run = new DrivenRun(pipeline(gate('gate', {}, { approvers: ['alice'], quorum: 1, message })));
    const shown = () => viewOf(run.run).stages[0];
    expect(shown()?.gate).toEqual({ quorum: 1, approvers: ['alice'], dueAt: 2_000 + DAY_MS, message: 'Ship ?' });
    run.tell({
      type: 'decide-gate',
      stage: 'gate',
      person: 'user/1',
      by: 'alice',
      decision: 'approved',
      comment: 'fine',
    });
    expect(shown()).toMatchObject({ gate: { quorum: 1, approvers: ['alice'] }, status: 'SUCCESS' });
    expect(shown()?.gate).not.toHaveProperty('message');
    expect(shown()?.approvals).toEqual([
      { person: 'user/1', by: 'alice', decision: 'approved', comment: 'fine', at: 3_000 },
    ]);
  });

  it('is of a long message no more than fits: not each output that it names is read, and none is kept with it', () => {
    const expression = { kind: 'path', path: ['stages', 'build', 'outputs', 'notes'] } as const;
    const whole = Array.from({ length: 80 }, () => ({ expression }));
    const within = [{ expression: { kind: 'text', parts: whole } as const }];
    const run = new DrivenRun(
      pipeline(
        stage('build', { outputs: ['notes'] }),
        gate('gate', { after: ['build'] }, { message: whole }),
        gate('other', { after: ['build'] }, { message: within }),
      ),
    );
    run.grant('build');
    let reads = 0;
    const outputs = { notes: '' };
    Object.defineProperty(outputs, 'notes', { enumerable: true, get: () => ((reads += 1), 'y'.repeat(60_000)) });
    run.succeed('build', outputs);
    reads = 0;
    const [, shown, other] = viewOf(run.run, ['build', 'gate']).stages.concat(viewOf(run.run, ['other']).stages);
    expect(shown?.gate?.message).toBe(`${'y'.repeat(1_999)}…`);
    expect(other?.gate?.message).toBe('The message is too long to be shown.');
    expect(reads).toBeLessThan(100);
  });

  it('is told to watchers as stage_approval, and in the history without the id of the person', () => {
    const run = new DrivenRun(pipeline(gate('gate', {}, { quorum: 2 })));
    says(run, 'alice');
    const decided = run.events.at(-1);
    if (decided?.type !== 'gate_decided') throw new Error('nothing was decided');
    expect(publicEventsOf(decided, () => ({ text: '', truncated: false }))).toEqual([
      {
        type: 'stage_approval',
        stage: 'gate',
        by: 'alice',
        decision: 'approved',
        comment: undefined,
        approved: 1,
        quorum: 2,
        timestamp: '1970-01-01T00:00:03.000Z',
      },
    ]);
    const { summary, data } = eventViewOf(4, decided, true);
    expect(summary).toBe("'gate' was approved by alice (1 of 2)");
    expect(data).not.toContain('person');
  });
});

describe('people alone are waited for', () => {
  it('where a gate is open and nothing else has begun, is queued or is to be retried', () => {
    const retry = { max: 1, backoff: 'constant', delayMs: 1_000, on: ['failure'] } as const;
    const driven = new DrivenRun(pipeline(gate('gate'), stage('test', { retry })));
    expect(awaitsOnlyPeople(driven.run)).toBe(false);
    driven.grant('test');
    expect(awaitsOnlyPeople(driven.run)).toBe(false);
    driven.fail('test');
    expect(driven.stage('test').dueAt).toBeDefined();
    expect(awaitsOnlyPeople(driven.run)).toBe(false);
    driven.tell({ type: 'wake', at: driven.stage('test').dueAt ?? 0 });
    driven.grant('test');
    driven.succeed('test');
    expect(awaitsOnlyPeople(driven.run)).toBe(true);
    says(driven, 'alice');
    expect(awaitsOnlyPeople(driven.run)).toBe(false);
  });
});
