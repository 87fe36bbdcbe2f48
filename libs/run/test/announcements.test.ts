/** What webhooks are told of a run: which events, and the run as it stood right after each. */
import type { PipelineDefinition } from '@penstock/pipeline';
import {
  announcementBody,
  announcementsIn,
  evolve,
  newRun,
  planOf,
  type AnnouncementBody,
  type Lineage,
  type RunEvent,
  type RunId,
} from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { createdEvent, DrivenRun, matrix, pipeline, RUN_ID, stage } from './support.ts';

function bodiesOf(definition: PipelineDefinition, events: readonly RunEvent[], after = 0): AnnouncementBody[] {
  return announcementsIn(events, after).map((announcement) => {
    const [created, ...others] = events.slice(0, announcement.version);
    if (created?.type !== 'run_created') throw new RangeError('no run');
    const state = newRun(RUN_ID, created, planOf(definition));
    for (const event of others) evolve(state, event);
    return announcementBody(announcement, state);
  });
}

const told = (bodies: readonly AnnouncementBody[]): unknown[] =>
  bodies.map(({ type, data }) => [
    type,
    data.run.status,
    ...data.stages.map(({ name, status }) => `${name} ${status}`),
  ]);

describe('announcements', () => {
  it('P35: each tells of the run as it stood right after its event, from the beginning to the end', () => {
    const run = new DrivenRun(pipeline(stage('a'), stage('b', { after: ['a'] })));
    run.grant('a');
    run.succeed('a', { url: 'https://a.example' });
    run.grant('b');
    run.fail('b');
    const bodies = bodiesOf(run.definition, run.events);
    expect(told(bodies)).toEqual([
      ['run.started', 'PENDING', 'a PENDING', 'b PENDING'],
      ['stage.completed', 'RUNNING', 'a SUCCESS'],
      ['stage.completed', 'RUNNING', 'b FAILED'],
      ['run.completed', 'FAILED', 'a SUCCESS', 'b FAILED'],
    ]);
    expect(bodies.map(({ data }) => data.version)).toEqual([...new Set(bodies.map(({ data }) => data.version))]);
    expect(bodies[1]).toMatchObject({
      timestamp: new Date(
        run.events[bodies[1]?.data.version === undefined ? 0 : bodies[1].data.version - 1]?.at ?? 0,
      ).toISOString(),
      data: { stages: [{ outputs: [{ key: 'url', value: 'https://a.example' }], exitCode: 0, attempt: 1 }] },
    });
    expect(bodies.at(-1)?.data.run).toMatchObject({ id: RUN_ID, finishedAt: expect.any(String), trusted: true });
    expect(bodies.map(({ data }) => data.run.verdict)).toEqual([null, null, null, 'failed']);
    expect(bodies.at(-1)?.data.run.verdictEvidence).toEqual(["'b' failed (exit code 1)"]);
    // Behind a version only what comes behind it.
    const [, , third, fourth] = bodies;
    expect(bodiesOf(run.definition, run.events, bodies[1]?.data.version)).toEqual([third, fourth]);
  });

  it('end with the end of a run, whichever it is', () => {
    const cancelled = new DrivenRun(pipeline(stage('a')));
    cancelled.grant('a');
    cancelled.tell({ type: 'cancel' });
    cancelled.lose('a');
    expect(told(bodiesOf(cancelled.definition, cancelled.events)).at(-1)).toEqual([
      'run.completed',
      'CANCELLED',
      'a CANCELLED',
    ]);
    const quarantined = new DrivenRun(pipeline(stage('a')));
    quarantined.tell({ type: 'quarantine', cause: 'it threw' });
    expect(told(bodiesOf(quarantined.definition, quarantined.events)).at(-1)).toEqual([
      'run.completed',
      'FAILED',
      'a CANCELLED',
    ]);
    const ends = [cancelled, quarantined].map(({ events }) =>
      announcementsIn(events, 0).filter(({ type }) => type === 'run.completed'),
    );
    expect(ends.map(({ length }) => length)).toEqual([1, 1]);
  });

  it('say of a rerun which run was before it and which was the first of all', () => {
    const [parent, root] = ['0192f0c1-2b3c-7abc-8def-00000000000b', '0192f0c1-2b3c-7abc-8def-00000000000a'] as RunId[];
    const events = [createdEvent({ lineage: { parent, version: 1, root, actors: [] } as Lineage })];
    const [body] = bodiesOf(pipeline(stage('a')), events);
    expect(body?.data.run).toMatchObject({ parentRunId: parent, rootRunId: root });
    const [first] = bodiesOf(pipeline(stage('a')), [createdEvent()]);
    expect(first?.data.run).toMatchObject({ parentRunId: null, rootRunId: null });
  });

  it('ask for what a run waits for people for, and say that it goes on when somebody has approved', () => {
    const held = createdEvent({ held: 'approval' });
    const events: RunEvent[] = [held, { type: 'run_approved', at: 2_000, by: 'ada' }];
    expect(told(bodiesOf(pipeline(stage('a')), events))).toEqual([
      ['approval.requested', 'QUEUED'],
      ['run.started', 'PENDING', 'a PENDING'],
    ]);
  });

  it('of a run that is larger than a receiver holds leave stages out, and say how many', () => {
    const run = new DrivenRun(pipeline(...matrix('m'.repeat(100), 2_000)));
    const [body] = bodiesOf(run.definition, run.events);
    const { stages = [], stagesLeftOut = 0 } = body?.data ?? {};
    expect(stages.length).toBeGreaterThan(100);
    expect(stages.length + stagesLeftOut).toBe(2_000);
    expect(JSON.stringify(body).length).toBeLessThan(132 * 1024);
  });
});
