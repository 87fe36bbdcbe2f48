/** Gates and places (P26), as the owner of a partition keeps them. */
import { describe, expect, it } from 'vitest';
import type { DecideReply, DecideRequest } from '@penstock/bus';
import type { ApprovalDefinition, StageDefinition, Template } from '@penstock/pipeline';
import { LiveRun } from '@penstock/scheduler/testing';
import { definitions, Harness, HOUR_MS, settings, stage, text } from './support.ts';

function gate(
  name: string,
  more: Partial<StageDefinition> = {},
  approval: Partial<ApprovalDefinition<Template>> = {},
): StageDefinition {
  return stage(name, {
    commands: [],
    approval: { quorum: 1, timeoutMs: HOUR_MS, preventSelf: false, ...approval },
    ...more,
  });
}

const SHIP = text([gate('gate'), stage('ship', { after: ['gate'] })]);
const ONE_PLACE = { limits: { pipelineRunLimit: 1_000, maxConcurrent: 1 } };

function decide(
  harness: Harness,
  runId: string,
  more: Partial<Omit<DecideRequest, 'person'>> & { readonly by?: string; readonly tenants?: readonly string[] } = {},
): DecideReply[] {
  const { by = 'alice', tenants = ['ada'], ...rest } = more;
  const replies: DecideReply[] = [];
  const person = { id: `user/${by}`, by, names: [by], tenants };
  harness.partition.decide({ runId, stage: 'gate', decision: 'approved', ...rest, person }, (reply) => {
    replies.push(reply);
  });
  return replies;
}

function codes(replies: readonly DecideReply[]): string[] {
  return replies.map((reply) => (reply.ok ? 'ok' : reply.code));
}

describe('P26: a decision at a gate', () => {
  it('is answered once its commit is stored, with the run, and what follows from it stands in the same commit', () => {
    const harness = new Harness();
    const { id } = harness.create(SHIP);
    harness.settle();
    const replies = decide(harness, id);
    expect(replies).toEqual([]);
    const { runs } = harness.acknowledge();
    expect(runs[0]?.events.map(({ type }) => type)).toEqual([
      'gate_decided',
      'stage_completed',
      'run_held',
      'run_admitted',
      'stages_queued',
    ]);
    expect(codes(replies)).toEqual(['ok']);
  });

  it('said again changes nothing while the gate waits; after the decision it is CONFLICT', () => {
    const harness = new Harness();
    const { id } = harness.create(text([gate('gate', {}, { quorum: 2 })]));
    harness.settle();
    const first = decide(harness, id);
    harness.settle();
    const commits = harness.appended.length;
    const again = decide(harness, id);
    expect([...codes(first), ...codes(again), harness.appended.length - commits]).toEqual(['ok', 'ok', 0]);
    const second = decide(harness, id, { by: 'bob' });
    harness.settle();
    expect([...codes(second), ...codes(decide(harness, id, { by: 'carol' }))]).toEqual(['ok', 'CONFLICT']);
  });

  it('is refused to who may not, at a stage that is no gate, before it waits, and in a run that has ended', () => {
    const harness = new Harness();
    const { id } = harness.create(
      text([stage('test'), gate('gate', {}, { approvers: ['alice'] }), gate('later', { after: ['test'] })]),
    );
    harness.settle();
    expect(codes(decide(harness, id, { by: 'bob' }))).toEqual(['FORBIDDEN']);
    expect(codes(decide(harness, id, { stage: 'later', tenants: ['eve'] }))).toEqual(['FORBIDDEN']);
    expect(codes(decide(harness, id, { stage: 'test' }))).toEqual(['BAD_USER_INPUT']);
    expect(codes(decide(harness, id, { stage: 'nothing' }))).toEqual(['BAD_USER_INPUT']);
    expect(codes(decide(harness, id, { comment: 'x'.repeat(1_001) }))).toEqual(['BAD_USER_INPUT']);
    expect(codes(decide(harness, id, { stage: 'later' }))).toEqual(['CONFLICT']);
    harness.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    harness.settle();
    expect(codes(decide(harness, id))).toEqual(['CONFLICT']);
    expect(codes(decide(harness, harness.id()))).toEqual(['NOT_FOUND']);
  });
});

describe('P26: places', () => {
  it('a run of which only gates are open has none, and another of its key goes on', () => {
    const harness = new Harness();
    harness.session('r1-a', { credits: 4 });
    const { id } = harness.create(SHIP, ONE_PLACE);
    harness.create(text([stage('build')]), ONE_PLACE);
    harness.settle();
    expect(harness.jobs.map(({ message }) => message.stage)).toEqual(['build']);
    decide(harness, id);
    harness.settle();
    expect(harness.jobs.map(({ message }) => message.stage)).toEqual(['build']);
    harness.jobs[0]?.answer('accepted');
    harness.result(harness.job(0));
    harness.settle();
    expect(harness.jobs.map(({ message }) => message.stage)).toEqual(['build', 'ship']);
  });

  it('are taken in the order of creation by runs whose stages have fallen due', () => {
    const harness = new Harness();
    harness.session('r1-a', { credits: 4 });
    const runs = [harness.create(SHIP, ONE_PLACE), harness.create(SHIP, ONE_PLACE)];
    harness.create(text([stage('build')]), ONE_PLACE);
    harness.settle();
    for (const { id } of runs.toReversed()) {
      decide(harness, id);
      harness.settle();
    }
    harness.jobs[0]?.answer('accepted');
    harness.result(harness.job(0));
    harness.settle();
    expect(harness.jobs.slice(1).map(({ message }) => message.runId)).toEqual([runs[0]?.id]);
  });

  it('a group keeps its turn while its first run waits at a gate', () => {
    const harness = new Harness();
    harness.session('r1-a', { credits: 4 });
    const grouped = (stages: readonly StageDefinition[]) =>
      text(stages, { concurrency: { group: ['deploy'], cancelInProgress: false } });
    const { id } = harness.create(grouped([gate('gate'), stage('ship', { after: ['gate'] })]));
    harness.create(grouped([gate('gate'), stage('next')]));
    harness.settle();
    expect(harness.jobs).toEqual([]);
    decide(harness, id, { decision: 'rejected' });
    harness.settle();
    expect(harness.jobs.map(({ message }) => message.stage)).toEqual(['next']);
  });
});

describe('P26: a take-over', () => {
  it('finds the gate with what was said, and its deadline re-anchored', () => {
    const before = new Harness();
    const { id } = before.create(text([gate('gate', {}, { quorum: 2 }), stage('ship', { after: ['gate'] })]));
    before.settle();
    decide(before, id);
    before.settle();
    const [live] = before.partition.liveRuns;
    const events = structuredClone([...(live?.events ?? [])]);
    const yaml = live?.state.yaml ?? '';
    const run = LiveRun.restore(id, definitions.find(yaml).definition, { events, sequence: 100 }, settings);
    const after = new Harness({ runs: [run] });
    after.later(HOUR_MS / 2);
    after.settle();
    expect(run.state.stages.get(0)).toMatchObject({ status: 'QUEUED', approvals: [{ by: 'alice' }] });
    expect(codes(decide(after, id))).toEqual(['ok']);
    // Far deadlines are found by looking through the runs, in some ticks.
    for (const ms of [HOUR_MS / 2, 1_000, 1_000]) after.later(ms);
    after.settle();
    expect(run.state.stages.get(0)).toMatchObject({ status: 'FAILED', reason: 'timeout' });
  });

  it('a clock that was set forward by an hour ends no gate', () => {
    const harness = new Harness();
    harness.create(SHIP);
    harness.settle();
    harness.now += 2 * HOUR_MS;
    harness.later(1_000);
    const [run] = harness.partition.liveRuns;
    expect(run?.state.stages.get(0)?.status).toBe('QUEUED');
  });
});
